//! Clusters: their barrier, and each other's shared memory.

use cutlet_device::sm90::{
    cluster_arrive, cluster_arrive_relaxed, cluster_sync, cluster_wait, load_cluster, map_shared,
    store_async, store_cluster,
};
use cutlet_device::{DeviceData, Shared, SharedMemory, kernel};

/// The barrier of a cluster.
#[kernel(threads = 32, cluster = 2, arch = "sm_90a")]
pub fn cluster_barrier() {
    cluster_arrive();
    cluster_wait();
    cluster_arrive_relaxed();
    cluster_wait();
    cluster_sync();
}

/// One access each way.
///
/// # Safety
/// There are two times `N` elements at `shared`, which another block owns.
#[inline(always)]
unsafe fn exchange<T: DeviceData, const N: usize>(shared: Shared<T>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let values: [T; N] = load_cluster(shared);
        store_cluster(shared.offset(N as i64), values);
    }
}

/// Accesses of every width to another block's shared memory.
#[kernel(threads = 32, cluster = 2, shared = 64, arch = "sm_90a")]
pub fn cluster_accesses() {
    let mut shared = SharedMemory::new();
    let bytes = map_shared(shared.take::<u8>(32), 1);
    let words = map_shared(shared.take::<u64>(4), 1);
    cluster_sync();
    // SAFETY: there is so much, and no block ends before all have met again.
    unsafe {
        exchange::<u8, 1>(bytes);
        exchange::<u8, 2>(bytes);
        exchange::<u8, 4>(bytes);
        exchange::<u8, 8>(bytes);
        exchange::<u8, 16>(bytes);
        exchange::<u64, 1>(words);
        exchange::<u64, 2>(words);
    }
    cluster_sync();
}

/// Stores of every width that count at a barrier of another block.
///
/// # Safety
/// The cluster's other block has initialised the barrier, told it what will come, and waits for it.
#[kernel(threads = 32, cluster = 2, shared = 48, arch = "sm_90a")]
pub unsafe fn cluster_stores() {
    let mut shared = SharedMemory::new();
    let words = map_shared(shared.take::<u32>(8), 1);
    let barrier = map_shared(shared.take::<u64>(1), 1);
    // SAFETY: as promised by the caller.
    unsafe {
        store_async(words, [1; 1], barrier);
        store_async(words.offset(2), [1; 2], barrier);
        store_async(words.offset(4), [1; 4], barrier);
    }
}
