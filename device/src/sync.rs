//! Barriers of a block and of a warp, and memory fences.

/// The barrier of all threads of the block. Each thread then sees the earlier writes of all threads.
///
/// Every thread of the block must call it. The CPU backend reports a thread that does not.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads() {
    imp::sync_threads();
}

/// The barrier of all lanes of the warp. Each lane then sees the earlier writes of all lanes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_warp() {
    imp::sync_warp();
}

/// Waits at named barrier `id` until `threads` threads of the block have called this function or [`barrier_arrive`].
/// `id` is 0 to 15, and 0 is the barrier of [`sync_threads`]. `threads` is a multiple of 32, and whole warps call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn barrier_sync(id: u32, threads: u32) {
    imp::barrier_sync(id, threads);
}

/// Arrives at named barrier `id` without waiting. See [`barrier_sync`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn barrier_arrive(id: u32, threads: u32) {
    imp::barrier_arrive(id, threads);
}

/// Waits until `condition` holds. The condition reads memory that other blocks write, by
/// [`atomic_load`](crate::atomic_load).
///
/// The other blocks must be able to run at the same time. On a GPU they must be resident, or the kernel hangs. The CPU
/// backend always runs them, and reports a wait that never ends.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait_until(condition: impl Fn() -> bool) {
    imp::wait_until(condition);
}

/// Makes this thread's earlier writes visible to all threads of the block before its later writes.
#[inline(always)]
pub fn thread_fence_block() {
    imp::fence_block();
}

/// Makes this thread's earlier writes visible to all threads of the device before its later writes.
#[inline(always)]
pub fn thread_fence() {
    imp::fence_device();
}

/// Makes this thread's writes to shared memory visible to TMA and `wgmma`, which use the async proxy. A thread calls it
/// after it wrote a tile by ordinary stores. Hopper and newer GPUs have this fence.
///
/// The CPU backend has one proxy only, so a missing fence shows on a GPU alone.
#[inline(always)]
pub fn fence_async_shared() {
    imp::fence_async_shared();
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    // The intrinsics are convergent: LLVM does not move them into divergent code. Inline assembly is not.
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.bar.warp.sync"]
        fn bar_warp_sync(mask: u32);
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
        fn barrier_cta_sync(id: u32, threads: u32);
        #[link_name = "llvm.nvvm.barrier.cta.arrive.aligned.count"]
        fn barrier_cta_arrive(id: u32, threads: u32);
    }

    #[inline(always)]
    pub fn sync_threads() {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { core::arch::nvptx::_syncthreads() };
    }

    #[inline(always)]
    pub fn sync_warp() {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { bar_warp_sync(u32::MAX) };
    }

    #[inline(always)]
    pub fn barrier_sync(id: u32, threads: u32) {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { barrier_cta_sync(id, threads) };
    }

    #[inline(always)]
    pub fn barrier_arrive(id: u32, threads: u32) {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { barrier_cta_arrive(id, threads) };
    }

    #[inline(always)]
    pub fn wait_until(condition: impl Fn() -> bool) {
        while !condition() {}
    }

    #[inline(always)]
    pub fn fence_block() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.acq_rel.cta;", options(nostack)) };
    }

    #[inline(always)]
    pub fn fence_device() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.acq_rel.gpu;", options(nostack)) };
    }

    #[inline(always)]
    pub fn fence_async_shared() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use core::sync::atomic::{Ordering, fence};

    /// The threads of a block take turns on one core, so they see each other's writes.
    pub use cutlet_simt::fence as fence_block;
    use cutlet_simt::{WaitKind, yield_until};
    pub use cutlet_simt::{barrier_arrive, barrier_sync, sync_threads, sync_warp};

    #[track_caller]
    pub fn wait_until(condition: impl Fn() -> bool) {
        yield_until(
            WaitKind::Grid,
            format_args!("waits for other blocks"),
            condition,
        );
    }

    pub fn fence_device() {
        fence(Ordering::AcqRel);
        fence_block();
    }

    pub fn fence_async_shared() {}
}
