//! Who is running: every index and extent.

use cutlet_device::{
    Dim3, GlobalMut, block_dim, block_idx, cluster_rank, cluster_size, grid_dim, kernel, lane_idx,
    multiprocessor_idx, thread_idx, warp_idx,
};

/// All of them; where a target has no clusters, those of clusters are constants.
///
/// # Safety
/// There are places for 15 numbers at `numbers`.
#[kernel(threads = 64)]
pub unsafe fn indices(numbers: GlobalMut<u32>) {
    let store = |place: i64, values: &[u32]| {
        for (nth, value) in values.iter().enumerate() {
            // SAFETY: the caller promises that there is a place.
            unsafe { numbers.store(place + nth as i64, *value) };
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
