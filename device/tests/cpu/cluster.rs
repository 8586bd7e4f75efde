//! Clusters: shared memory of other blocks, and the cluster's barrier.

use cutlet_device::cluster::{
    cluster_arrive, cluster_sync, cluster_wait, load_cluster, map_shared, store_cluster,
};
use cutlet_device::{Shared, SharedMemory, cluster_rank, sync_threads, thread_idx};

use crate::fixture::{failure, launch, says};

#[test]
fn blocks_of_a_cluster_reach_each_others_memory() {
    launch(32, 4, 4, || {
        let mut shared = SharedMemory::new();
        let mine: Shared<u32> = shared.take(32);
        let (rank, thread) = (cluster_rank().get(), thread_idx().get());
        let next = map_shared(mine.offset(i64::from(thread)), (rank + 1) % 4);
        // SAFETY: every thread writes one word of the next block, which does not end before the barrier.
        unsafe {
            store_cluster(next, [100 * rank + thread]);
            cluster_arrive();
            cluster_wait();
            assert_eq!(mine.load(i64::from(thread)), (rank + 3) % 4 * 100 + thread);
            let [same] = load_cluster(next);
            assert_eq!(same, 100 * rank + thread);
        }
        cluster_sync();
    })
    .unwrap();
}

#[test]
fn shared_addresses_of_a_cluster_contain_the_blocks_rank() {
    let address = || SharedMemory::new().take::<u32>(1).address();
    launch(32, 2, 1, || assert_eq!(address(), 0)).unwrap();
    launch(32, 4, 2, || {
        let rank = cluster_rank().get();
        let own = Shared::<u32>::from_address(address());
        assert_eq!(map_shared(own, rank).address(), own.address());
        assert_ne!(map_shared(own, 1 - rank).address(), own.address());
        assert_ne!(own.address(), 0);
    })
    .unwrap();
}

#[test]
fn a_missing_thread_at_the_clusters_barrier_is_named() {
    let message = failure(launch(32, 2, 2, || {
        if thread_idx().get() == 5 {
            sync_threads();
        }
        cluster_sync();
    }));
    says(
        &message,
        &[
            "deadlock",
            "the cluster's barrier for 64 threads, of which 62 are there",
        ],
    );
    let message = failure(launch(32, 2, 2, || {
        cluster_arrive();
    }));
    says(&message, &["ended between cluster_arrive and cluster_wait"]);
}
