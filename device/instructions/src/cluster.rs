//! Clusters: their barrier, and accesses to the shared memory of other blocks.

use cutlet_device::cluster::{
    cluster_arrive, cluster_arrive_relaxed, cluster_sync, cluster_wait, load_cluster, map_shared,
    store_async, store_cluster,
};
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::{DeviceData, Shared, SharedArray, kernel};

/// The barrier of a cluster.
#[kernel(threads = 32, cluster = 2, arch = "sm_90a")]
pub fn cluster_barrier() {
    cluster_arrive();
    cluster_wait();
    cluster_arrive_relaxed();
    cluster_wait();
    cluster_sync();
}

/// A load and a store.
///
/// # Safety
/// `shared` has `2 N` elements of another block.
#[inline(always)]
unsafe fn copy_cluster<T: DeviceData, const N: usize>(shared: Shared<T>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let values: [T; N] = load_cluster(shared);
        store_cluster(shared.offset(N as i64), values);
    }
}

/// Accesses of every width to another block's shared memory.
#[kernel(threads = 32, cluster = 2, arch = "sm_90a")]
pub fn cluster_accesses(
    #[shared] bytes: SharedArray<u8, 32>,
    #[shared] words: SharedArray<u64, 4>,
) {
    let (bytes, words) = (map_shared(*bytes, 1), map_shared(*words, 1));
    cluster_sync();
    // SAFETY: the memory is the kernel's, and no block ends before the cluster has met again.
    unsafe {
        copy_cluster::<u8, 1>(bytes);
        copy_cluster::<u8, 2>(bytes);
        copy_cluster::<u8, 4>(bytes);
        copy_cluster::<u8, 8>(bytes);
        copy_cluster::<u8, 16>(bytes);
        copy_cluster::<u64, 1>(words);
        copy_cluster::<u64, 2>(words);
    }
    cluster_sync();
}

/// Stores of every width that count at a barrier of another block.
///
/// # Safety
/// The other block of the cluster has initialised the barrier, announced the bytes, and waits for them.
#[kernel(threads = 32, cluster = 2, arch = "sm_90a")]
pub unsafe fn cluster_stores(#[shared] words: SharedArray<u32, 8>, #[shared] barrier: Mbarrier) {
    let (words, barrier) = (map_shared(*words, 1), map_shared(barrier.word(), 1));
    // SAFETY: as promised by the caller.
    unsafe {
        store_async(words, [1; 1], barrier);
        store_async(words.offset(2), [1; 2], barrier);
        store_async(words.offset(4), [1; 4], barrier);
    }
}
