//! Fences between a thread's own accesses and those of the asynchronous units that read and write
//! shared memory.

/// Makes what this thread wrote to shared memory visible to TMA and `wgmma`, which access it past
/// the thread's own path: between writing a tile with ordinary stores and handing it to them.
///
/// The CPU backend does not model the two paths; the fence is needed nevertheless.
#[inline(always)]
pub fn fence_async_shared() {
    imp::fence_async_shared();
}

/// Makes the initial state of the barriers that this thread initialised visible to the cluster and
/// to TMA; follow it by a block or cluster barrier.
#[inline(always)]
pub fn fence_mbarrier_init() {
    imp::fence_mbarrier_init();
}

pub(super) use imp::fence_tensor_map;

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn fence_async_shared() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) };
    }

    #[inline(always)]
    pub fn fence_mbarrier_init() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.mbarrier_init.release.cluster;", options(nostack)) };
    }

    /// The builder gives PTX with such a comment this version or a later one.
    #[inline(always)]
    pub fn fence_tensor_map(map: *const u8) {
        // SAFETY: a fence only orders.
        unsafe {
            asm!(
                "// cutlet-isa 8.3",
                "fence.proxy.tensormap::generic.acquire.gpu [{}], 128;",
                in(reg64) map,
                options(nostack)
            );
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn fence_async_shared() {}
    pub fn fence_mbarrier_init() {}
    pub fn fence_tensor_map(_: *const u8) {}
}
