//! Mbarriers.

use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::{kernel, sync_threads, thread_idx};

/// Every operation on an mbarrier.
#[kernel(threads = 32, cluster = 2, arch = "sm_90a")]
pub fn mbarriers(#[shared] barrier: Mbarrier) {
    let first = thread_idx().is_first();
    if first {
        // SAFETY: no thread uses the mbarrier before the block's barrier.
        unsafe { barrier.init(5) };
        fence_mbarrier_init();
    }
    sync_threads();
    if first {
        barrier.expect_tx(16);
        barrier.arrive_expect_tx(16);
        barrier.arrive();
        barrier.arrive_remote(1);
    }
    barrier.arrive_if(first);
    barrier.arrive_remote_if(1, first);
    while !barrier.try_wait(0) {}
    barrier.wait(1);
    sync_threads();
    if first {
        // SAFETY: no thread uses the mbarrier any more.
        unsafe { barrier.invalidate() };
    }
}
