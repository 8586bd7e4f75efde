//! Mbarriers: phases, and what the CPU backend reports of wrong counts.

use cutlet_device::cluster::cluster_sync;
use cutlet_device::fp8::F8E5M2;
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::tma::{LoadOptions, TmaBox, tma_load};
use cutlet_device::{Shared, SharedMemory, cluster_rank, sync_threads, thread_idx};

use crate::fixture::{Matrix, failure, launch, says};

#[test]
fn a_barrier_goes_through_phases() {
    launch(64, 1, 1, || {
        let barrier = Mbarrier::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            // SAFETY: no thread uses the barrier yet.
            unsafe { barrier.init(64) };
        }
        sync_threads();
        for phase in 0..5 {
            barrier.arrive();
            while !barrier.try_wait(phase % 2) {}
            barrier.wait(phase % 2);
        }
    })
    .unwrap();
}

/// The error of a cluster in which one thread does `wrong` with a barrier for one arrival.
fn error_of(wrong: impl Fn(Mbarrier, Shared<u8>) + Sync) -> String {
    failure(launch(32, 2, 2, || {
        let mut shared = SharedMemory::new();
        let tile: Shared<u8> = shared.take_aligned::<u8, 1024>(4096);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: no thread uses the barrier yet.
            unsafe { barrier.init(1) };
        }
        cluster_sync();
        if thread_idx().get() == 0 && cluster_rank().get() == 0 {
            wrong(barrier, tile);
        }
        cluster_sync();
    }))
}

#[test]
fn wrong_byte_counts_are_reported() {
    let matrix = Matrix::<F8E5M2>::new(64, 64, 5);
    let map = matrix.map(TmaBox {
        extent: [64, 16],
        swizzle_bytes: 16,
    });
    let load = |barrier, tile| {
        // SAFETY: the map is of this matrix, and the tile has room for its box.
        unsafe { tma_load(&map, [0, 0], tile, barrier, LoadOptions::DEFAULT) };
    };
    // Too many bytes are announced: a thread waits for the rest.
    says(
        &error_of(|barrier, tile| {
            barrier.arrive_expect_tx(1025);
            load(barrier, tile.cast::<u8>());
            barrier.wait(0);
        }),
        &[
            "deadlock",
            "block (0, 0, 0) thread (0, 0, 0)",
            "lacks 0 of 1 arrivals and 1 bytes",
        ],
    );
    // Too few are announced.
    says(
        &error_of(|barrier, tile| {
            barrier.arrive_expect_tx(1000);
            load(barrier, tile.cast::<u8>());
        }),
        &["block (0, 0, 0), thread (0, 0, 0)", "24 bytes too many"],
    );
    // The bytes of the second box are not announced. The next phase gets them.
    says(
        &error_of(|barrier, tile| {
            barrier.arrive_expect_tx(1024);
            load(barrier, tile.cast::<u8>());
            load(barrier, tile.cast::<u8>().offset(1024));
        }),
        &[
            "the kernel ends while the mbarrier",
            "1024 bytes that no expect_tx announced",
        ],
    );
}

#[test]
fn wrong_phases_and_arrivals_are_reported() {
    says(
        &error_of(|barrier, _| barrier.wait(0)),
        &["deadlock", "the phase of parity 0", "lacks 1 of 1 arrivals"],
    );
    says(
        &error_of(|barrier, _| {
            barrier.arrive();
            barrier.wait(0);
            barrier.wait(1);
        }),
        &["deadlock", "the phase of parity 1", "lacks 1 of 1 arrivals"],
    );
    says(
        &error_of(|barrier, _| while !barrier.try_wait(0) {}),
        &["deadlock", "spins"],
    );
    says(
        &error_of(|barrier, _| {
            barrier.expect_tx(16);
            barrier.arrive();
            barrier.arrive();
        }),
        &["one arrival too many", "waits for 16 more bytes"],
    );
    says(
        &error_of(|_, tile| Mbarrier::from_shared(tile.cast()).arrive()),
        &["is not an mbarrier"],
    );
    says(
        &error_of(|barrier, _| barrier.arrive_remote(2)),
        &["there is no block 2 in a cluster of 2 blocks"],
    );
}

#[test]
fn a_block_that_has_ended_cannot_be_signalled() {
    let message = failure(launch(32, 2, 2, || {
        let barrier = Mbarrier::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            // SAFETY: no thread uses the barrier yet.
            unsafe { barrier.init(1) };
        }
        cluster_sync();
        if cluster_rank().get() == 1 {
            // The other block ends meanwhile.
            for _ in 0..3 {
                sync_threads();
            }
            barrier.arrive_remote(0);
        }
    }));
    says(&message, &["block 0 of the cluster has ended"]);
}
