//! What orders accesses to shared memory in a block and in a cluster, and what does not.

use cutlet_device::cluster::{
    cluster_arrive_relaxed, cluster_sync, cluster_wait, map_shared, store_async, store_cluster,
};
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::{
    Shared, SharedMemory, barrier_sync, cluster_rank, sync_threads, thread_idx, warp_idx,
};

use crate::fixture::{failure, launch, says};

/// How a block knows that its neighbour has written its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    Barrier,
    RelaxedBarrier,
    Nothing,
}

/// Each of two blocks writes a word of the other one, which reads it.
fn exchange(meeting: Meeting) -> Result<(), cutlet_simt::SimtError> {
    launch(32, 2, 2, || {
        let word: Shared<u32> = SharedMemory::new().take(1);
        if thread_idx().is_first() {
            let rank = cluster_rank().get();
            // SAFETY: the other block does not end before the barrier at the end.
            unsafe { store_cluster(map_shared(word, 1 - rank), [rank]) };
        }
        match meeting {
            Meeting::Barrier => cluster_sync(),
            Meeting::RelaxedBarrier => {
                cluster_arrive_relaxed();
                cluster_wait();
            }
            Meeting::Nothing => {}
        }
        // SAFETY: the word exists.
        unsafe { word.load(0) };
        cluster_sync();
    })
}

#[test]
fn blocks_of_a_cluster_meet_before_they_read() {
    exchange(Meeting::Barrier).unwrap();
    for meeting in [Meeting::RelaxedBarrier, Meeting::Nothing] {
        says(
            &failure(exchange(meeting)),
            &[
                "races: shared memory",
                "of block (",
                "let the cluster's blocks meet",
                "cpu/races.rs:",
            ],
        );
    }
}

/// Warp 0 writes a word, and warp 1 reads it after a wait for an mbarrier, or at once.
fn hand_over(waits: bool) -> Result<(), cutlet_simt::SimtError> {
    launch(64, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (word, full) = (shared.take::<u32>(1), Mbarrier::take(&mut shared));
        if thread_idx().is_first() {
            // SAFETY: nothing uses the barrier before the block's barrier.
            unsafe { full.init(1) };
        }
        sync_threads();
        // SAFETY: the word exists.
        unsafe {
            if thread_idx().is_first() {
                word.store(0, 1);
                full.arrive();
            }
            if warp_idx().get() == 1 {
                if waits {
                    full.wait(0);
                }
                word.load(0);
            }
        }
    })
}

#[test]
fn an_mbarrier_orders_what_its_arrivals_have_written() {
    hand_over(true).unwrap();
    says(
        &failure(hand_over(false)),
        &["races: shared memory at offset 0", "cpu/races.rs:"],
    );
}

#[test]
fn a_named_barrier_orders_its_own_threads_only() {
    let run = |reader: u32| {
        launch(96, 1, 1, || {
            let word: Shared<u32> = SharedMemory::new().take(1);
            let warp = warp_idx().get();
            // SAFETY: the word exists.
            unsafe {
                if thread_idx().is_first() {
                    word.store(0, 1);
                }
                if warp < 2 {
                    barrier_sync(1, 64);
                }
                if warp == reader {
                    word.load(0);
                }
            }
        })
    };
    run(1).unwrap();
    says(&failure(run(2)), &["races", "call sync_threads"]);
}

#[test]
fn bytes_that_others_still_read_are_not_copied_over() {
    let run = |synchronised: bool| {
        launch(64, 1, 1, || {
            let mut shared = SharedMemory::new();
            let (word, full) = (shared.take::<u32>(4), Mbarrier::take(&mut shared));
            if thread_idx().is_first() {
                // SAFETY: the words exist, and nothing uses them before the barrier.
                unsafe {
                    full.init(1);
                    word.store_vec(0, [0u32; 4]);
                }
            }
            sync_threads();
            // SAFETY: the words exist.
            unsafe {
                word.load(0);
                if synchronised {
                    sync_threads();
                }
                if thread_idx().get() == 62 {
                    full.arrive_expect_tx(16);
                    store_async(word, [1u32; 4], Shared::from_address(full.address()));
                }
            }
            full.wait(0);
        })
    };
    run(true).unwrap();
    says(
        &failure(run(false)),
        &["an asynchronous copy races", "has a load by thread"],
    );
}
