//! Barriers of a block and of a warp, and memory fences.

/// Waits until all threads of the block are here. What any of them wrote before, all of them see
/// after.
///
/// Every thread of the block must call it; on the CPU, a launch where one does not ends in an error
/// that names it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads() {
    imp::sync_threads();
}

/// Waits until all lanes of the warp are here. What any of them wrote before, all of them see
/// after.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_warp() {
    imp::sync_warp();
}

/// Waits at barrier `id` (0 to 15; 0 is the one of [`sync_threads`]) until `threads` threads of the
/// block are there, by this function or by [`barrier_arrive`]. `threads` is a multiple of 32, and
/// whole warps call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn barrier_sync(id: u32, threads: u32) {
    imp::barrier_sync(id, threads);
}

/// Tells barrier `id` that this thread is there, without waiting; see [`barrier_sync`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn barrier_arrive(id: u32, threads: u32) {
    imp::barrier_arrive(id, threads);
}

/// Waits until `condition` holds, which other blocks bring about: it reads memory with
/// [`atomic_load`](crate::atomic_load).
///
/// The blocks waited for must be able to run meanwhile. On the CPU they are, and a wait that nobody
/// can end any more ends in an error; a GPU needs them to be resident, and hangs.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait_until(condition: impl Fn() -> bool) {
    imp::wait_until(condition);
}

/// Makes what this thread wrote before visible to all threads of the block before what it writes
/// after.
#[inline(always)]
pub fn thread_fence_block() {
    imp::fence_block();
}

/// Makes what this thread wrote before visible to all threads of the device before what it writes
/// after.
#[inline(always)]
pub fn thread_fence() {
    imp::fence_device();
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    // The intrinsics are convergent: LLVM keeps them where all threads meet. Inline assembly would
    // not be.
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
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use core::sync::atomic::{Ordering, fence};

    /// Threads of a block take turns on one core and see each other's writes without more.
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
}
