//! Barriers of blocks, warps and warpgroups, and fences.

use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_sync};
use cutlet_device::{
    barrier_arrive, barrier_sync, fence_async_shared, kernel, sync_threads, sync_warp,
    thread_fence, thread_fence_block, warp_idx,
};

/// Barriers, with fences between them.
#[kernel(threads = 64)]
pub fn barriers() {
    sync_warp();
    thread_fence_block();
    sync_threads();
    thread_fence();
    if warp_idx().is_first() {
        barrier_arrive(1, 64);
    } else {
        barrier_sync(1, 64);
    }
}

/// The barrier of a warpgroup, and the fence for the asynchronous proxy.
#[kernel(threads = 256, arch = "sm_90a")]
pub fn barriers_of_warpgroups() {
    fence_async_shared();
    warpgroup_sync(warpgroup_idx());
}
