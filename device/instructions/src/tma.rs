//! TMA: tensor maps, and loads and stores of boxes of every rank.

use cutlet_device::cluster::Multicast;
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::tma::{
    CacheHint, LoadOptions, TensorMap, prefetch_tensor_map, tma_load, tma_prefetch, tma_store,
    tma_store_commit, tma_store_wait, tma_store_wait_read,
};
use cutlet_device::{Global, Shared, SharedArray, kernel};

/// Fetches a box, loads it in each way, and stores it.
///
/// # Safety
/// `shared` has room for the map's box, and the tensor has a box at `at`.
#[inline(always)]
unsafe fn boxes<const R: usize>(
    map: &TensorMap,
    at: [i32; R],
    shared: Shared<f32>,
    barrier: Mbarrier,
) {
    let hinted = LoadOptions::DEFAULT.hint(CacheHint::EvictFirst);
    let to_others = LoadOptions::DEFAULT.hint(CacheHint::EvictLast);
    // SAFETY: as promised by the caller.
    unsafe {
        tma_prefetch(map, at);
        tma_load(map, at, shared, barrier, LoadOptions::DEFAULT);
        tma_load(map, at, shared, barrier, hinted);
        for blocks in [
            Multicast::first(2),
            Multicast::every(1, 2, 2),
            Multicast::own(),
        ] {
            tma_load(map, at, shared, barrier, to_others.multicast(blocks));
        }
        tma_store(map, at, shared);
    }
    tma_store_commit();
    tma_store_wait_read::<1>();
    tma_store_wait::<0>();
}

/// Boxes of tensors of rank 2 to 5.
///
/// # Safety
/// `matrix` has rank 2, and the others have rank 3 to 5. Their boxes have 128 bytes.
#[kernel(threads = 32, cluster = 4, arch = "sm_90a")]
pub unsafe fn boxes_of_every_rank(
    #[grid_constant] matrix: &TensorMap,
    #[grid_constant] stack: &TensorMap,
    #[grid_constant] stacks: &TensorMap,
    #[grid_constant] stacks_of_stacks: &TensorMap,
    #[shared] shared: SharedArray<f32, 32, 128>,
    #[shared] barrier: Mbarrier,
) {
    prefetch_tensor_map(matrix);
    // SAFETY: as promised by the caller.
    unsafe {
        boxes(matrix, [0, 1], *shared, barrier);
        boxes(stack, [0, 1, 2], *shared, barrier);
        boxes(stacks, [0, 1, 2, 3], *shared, barrier);
        boxes(stacks_of_stacks, [0, 1, 2, 3, 4], *shared, barrier);
    }
}

/// A tensor map in global memory.
///
/// # Safety
/// `map` has an element.
#[kernel(threads = 32, arch = "sm_90a")]
pub unsafe fn map_in_global(map: Global<TensorMap>) {
    // SAFETY: as promised by the caller.
    prefetch_tensor_map(unsafe { TensorMap::in_global(map) });
}
