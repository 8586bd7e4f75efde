//! Every index and extent.

use cutlet_device::{
    Dim3, GlobalMut, block_dim, block_idx, cluster_rank, cluster_size, grid_dim, kernel, lane_idx,
    multiprocessor_idx, thread_idx, warp_idx,
};

/// All indices and extents. On a target without clusters, those of the cluster are constants.
///
/// # Safety
/// `numbers` has 15 elements.
#[kernel(threads = 64)]
pub unsafe fn indices(numbers: GlobalMut<u32>) {
    let store = |first: i64, values: &[u32]| {
        for (nth, value) in values.iter().enumerate() {
            // SAFETY: the caller promises that the element exists.
            unsafe { numbers.store(first + nth as i64, *value) };
        }
    };
    let (Dim3 { x, y, z }, block) = (block_dim(), block_idx());
    store(0, &[thread_idx().get(), lane_idx().get(), warp_idx().get()]);
    store(3, &[x, y, z]);
    store(6, &[block.x.get(), block.y.get(), block.z.get()]);
    let Dim3 { x, y, z } = grid_dim();
    store(9, &[x, y, z]);
    store(12, &[multiprocessor_idx()]);
    store(13, &[cluster_rank().get(), cluster_size()]);
}
