//! Proxy fences: they order a thread's accesses and those of TMA and `wgmma`.

/// Makes this thread's writes to shared memory visible to TMA and `wgmma`, which use the async proxy. A thread calls it
/// after it wrote a tile by ordinary stores.
///
/// The CPU backend has one proxy only, so a missing fence shows on a GPU alone.
#[inline(always)]
pub fn fence_async_shared() {
    imp::fence_async_shared();
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn fence_async_shared() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn fence_async_shared() {}
}
