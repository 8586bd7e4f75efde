//! Asynchronous copies and reads that a thread did not wait for: the CPU backend reports their misuse.

use cutlet_device::cluster::{Multicast, cluster_sync, map_shared, store_async};
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::sm90::*;
use cutlet_device::tile::KMajorTile;
use cutlet_device::tma::{
    LoadOptions, TmaBox, tma_load, tma_store, tma_store_commit, tma_store_wait_read,
};
use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{
    GlobalMut, Shared, SharedMemory, atomic_load, atomic_store, cluster_rank, sync_threads,
    sync_warp, thread_idx, wait_until, warp_idx,
};
use cutlet_simt::SimtError;
use half::bf16;

use crate::fixture::{Matrix, failure, fill, launch, says};

/// Runs `body` in a block of 64 threads after its first thread started to load a tile of 1024 bytes. The tile begins at
/// address 0, and its bytes count in phase 0 of the first barrier.
fn while_loading(body: impl Fn(Shared<f32>, [Mbarrier; 2]) + Sync) -> Result<(), SimtError> {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        swizzle_bytes: 16,
    });
    launch(64, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
        let barriers = [(); 2].map(|()| Mbarrier::take(&mut shared));
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barriers yet, and the map has the tile's box.
            unsafe {
                for barrier in barriers {
                    barrier.init(1);
                }
                barriers[0].arrive_expect_tx(1024);
                tma_load(&map, [0, 0], tile, barriers[0], LoadOptions::DEFAULT);
            }
        }
        sync_threads();
        body(tile, barriers);
    })
}

/// Reads the first element of a tile.
fn first(tile: Shared<f32>) -> f32 {
    // SAFETY: shared memory is initialised.
    unsafe { tile.load(0) }
}

const TOO_EARLY: &[&str] = &[
    "shared memory at address 0",
    "too early",
    "count in phase 0 of the mbarrier at shared address 1024",
    "has not waited for the end of that phase (parity 0)",
];

#[test]
fn a_tile_cannot_be_used_before_its_phase_was_waited_for() {
    let fails = |parts: &[&str], body: &(dyn Fn(Shared<f32>, [Mbarrier; 2]) + Sync)| {
        let message = failure(while_loading(body));
        says(&message, TOO_EARLY);
        says(&message, parts);
    };
    // The phase has ended, but this thread has not waited for it.
    fails(&["thread (33, 0, 0)", "is used"], &|tile, _| {
        if thread_idx().get() == 33 {
            first(tile);
        }
    });
    fails(&["thread (5, 0, 0)", "is used"], &|tile, _| {
        if thread_idx().get() == 5 {
            // SAFETY: the tile is written too early on purpose.
            unsafe { tile.store(0, 1.0) };
        }
    });
    // The phase before the first counts as ended. A wait for it says nothing about the tile.
    fails(&["is used"], &|tile, barriers| {
        barriers[1].wait(1);
        first(tile);
    });
    let target = Matrix::<f32>::new(16, 16, 8);
    let map = target.map(TmaBox {
        extent: [16, 16],
        swizzle_bytes: 16,
    });
    fails(&["is read by a TMA store"], &|tile, barriers| {
        // SAFETY: the map has the tile's box.
        unsafe { tma_store(&map, [0, 0], tile) };
        tma_store_commit();
        // This wait is too late.
        barriers[0].wait(0);
        tma_store_wait_read::<0>();
    });
    fails(&["is overwritten"], &|tile, barriers| {
        if thread_idx().get() == 33 {
            barriers[1].arrive_expect_tx(1024);
            // SAFETY: the map has the tile's box.
            unsafe { tma_load(&map, [0, 0], tile, barriers[1], LoadOptions::DEFAULT) };
        }
    });
}

#[test]
fn a_wait_covers_threads_that_synchronise_after_it() {
    let value = Matrix::<f32>::new(16, 16, 7).at(0, 0);
    let check = |tile| assert_eq!(first(tile), value);
    while_loading(|tile, barriers| {
        barriers[0].wait(0);
        check(tile);
    })
    .unwrap();
    while_loading(|tile, barriers| {
        while !barriers[0].try_wait(0) {}
        check(tile);
    })
    .unwrap();
    // One thread waits for its block.
    while_loading(|tile, barriers| {
        if thread_idx().get() == 33 {
            barriers[0].wait(0);
        }
        sync_threads();
        check(tile);
    })
    .unwrap();
    // One thread waits for its warp, but not for the other warp.
    let for_warp = |all: bool| {
        while_loading(|tile, barriers| {
            if thread_idx().get() == 33 {
                barriers[0].wait(0);
            }
            sync_warp();
            if all || warp_idx().get() == 1 {
                check(tile);
            }
        })
    };
    for_warp(false).unwrap();
    says(&failure(for_warp(true)), TOO_EARLY);
    // One thread signals another by an mbarrier.
    while_loading(|tile, barriers| match thread_idx().get() {
        33 => {
            barriers[0].wait(0);
            barriers[1].arrive();
        }
        34 => {
            barriers[1].wait(0);
            check(tile);
        }
        _ => {}
    })
    .unwrap();
    // One thread signals another by a flag.
    let mut flag = 0u32;
    let flag = GlobalMut::from_ptr(&raw mut flag)
        .as_ptr()
        .expose_provenance();
    let flag = || GlobalMut::<u32>::from_ptr(std::ptr::with_exposed_provenance_mut(flag));
    // SAFETY: the flag is there.
    while_loading(|tile, barriers| unsafe {
        match thread_idx().get() {
            33 => {
                barriers[0].wait(0);
                atomic_store(flag(), 0, 1);
            }
            34 => {
                wait_until(|| atomic_load(flag(), 0) == 1);
                check(tile);
            }
            _ => {}
        }
    })
    .unwrap();
}

#[test]
fn a_barrier_can_be_initialised_again() {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        swizzle_bytes: 16,
    });
    let run = |waits: u32| {
        launch(32, 1, 1, || {
            let mut shared = SharedMemory::new();
            let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
            let barrier = Mbarrier::take(&mut shared);
            for life in 0..3 {
                if thread_idx().is_first() {
                    // SAFETY: no thread uses the barrier, and the map has the tile's box.
                    unsafe {
                        barrier.init(1);
                        barrier.arrive_expect_tx(1024);
                        tma_load(&map, [0, 0], tile, barrier, LoadOptions::DEFAULT);
                    }
                }
                sync_threads();
                if life < waits {
                    barrier.wait(0);
                }
                assert_eq!(first(tile), matrix.at(0, 0));
                sync_threads();
                if thread_idx().is_first() {
                    // SAFETY: no thread uses the barrier any more.
                    unsafe { barrier.invalidate() };
                }
            }
        })
    };
    run(3).unwrap();
    says(&failure(run(2)), &["is used too early", "(parity 0)"]);
}

#[test]
fn data_of_other_blocks_must_be_waited_for() {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        swizzle_bytes: 16,
    });
    // Block 0 loads the tile for both blocks, or stores one value to each.
    let run = |waits: bool, multicast: bool| {
        launch(32, 2, 2, || {
            let mut shared = SharedMemory::new();
            let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
            let words: Shared<u64> = shared.take(1);
            let barrier = Mbarrier::from_shared(words);
            if thread_idx().is_first() {
                // SAFETY: no thread uses the barrier yet.
                unsafe { barrier.init(1) };
                barrier.arrive_expect_tx(if multicast { 1024 } else { 4 });
            }
            cluster_sync();
            if thread_idx().is_first() && cluster_rank().is_first() {
                let options = LoadOptions::DEFAULT.multicast(Multicast::first(2));
                // SAFETY: the map has the tile's box, and all blocks wait below.
                unsafe {
                    if multicast {
                        tma_load(&map, [0, 0], tile, barrier, options);
                    } else {
                        for rank in 0..2 {
                            let (to, full) = (map_shared(tile, rank), map_shared(words, rank));
                            store_async(to, [matrix.at(0, 0)], full);
                        }
                    }
                }
            }
            cluster_sync();
            if waits || cluster_rank().is_first() {
                barrier.wait(0);
            }
            assert_eq!(first(tile), matrix.at(0, 0));
            cluster_sync();
        })
    };
    for multicast in [false, true] {
        run(true, multicast).unwrap();
        let message = failure(run(false, multicast));
        says(&message, &["block (1, 0, 0)", "is used"]);
        says(&message, TOO_EARLY);
    }
}

#[test]
fn an_operand_overwritten_too_early_by_stores_is_reported() {
    type Mma = Wgmma<8, bf16>;
    type TileA = KMajorTile<bf16, 64, 16, 32>;
    type TileB = KMajorTile<bf16, 8, 16, 32>;
    let result = launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        fill(a, |_, _| 1);
        fill(b, |_, _| 1);
        sync_threads();
        let mut accumulators = Accumulator::<Mma>::new();
        let group = warpgroup_arrive();
        // SAFETY: the operand is overwritten too early on purpose.
        unsafe {
            group.mma(
                &mut accumulators,
                a.operand_a().k_step(0),
                b.operand_b().k_step(0),
                false,
            );
        }
        group.commit();
        fill(a, |_, _| 3);
        accumulators.wait();
    });
    says(
        &failure(result),
        &["a wgmma races", "has a store by thread", "fixture.rs:"],
    );
}

/// The mistake of a [`one_stage_ring`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    ConsumerDoesNotWait,
    ConsumerIsOneParityOff,
    ConsumerForgetsToFlip,
    ConsumerReleasesEarly,
    ProducerDoesNotWait,
}

/// Fills one stage three times by warpgroup `producer`, and multiplies it by the other warpgroup.
fn one_stage_ring(producer: u32, mistake: Mistake) -> Result<(), SimtError> {
    type Mma = Wgmma<8, bf16>;
    type TileA = KMajorTile<bf16, 64, 16, 32>;
    type TileB = KMajorTile<bf16, 8, 16, 32>;
    const ROUNDS: i32 = 3;
    let a = Matrix::<bf16>::new(64, 16 * ROUNDS as usize, 9);
    let b = Matrix::<bf16>::new(8, 16 * ROUNDS as usize, 10);
    let (map_a, map_b) = (a.map(TileA::tile_box(1)), b.map(TileB::tile_box(1)));
    let expected: f32 = (0..a.columns).map(|k| a.at(0, k) * b.at(0, k)).sum();
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (tile_a, tile_b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        let (full, empty) = (Mbarrier::take(&mut shared), Mbarrier::take(&mut shared));
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barriers yet.
            unsafe {
                full.init(1);
                empty.init(1);
            }
        }
        sync_threads();
        let thread = warpgroup_thread_idx().get();
        if warpgroup_idx().get() == producer {
            for round in 0..if thread == 0 { ROUNDS } else { 0 } {
                if mistake != Mistake::ProducerDoesNotWait {
                    empty.wait((round as u32 + 1) % 2);
                }
                full.arrive_expect_tx(TileA::BYTES + TileB::BYTES);
                // SAFETY: the maps have these tiles' boxes.
                unsafe {
                    tile_a.load(&map_a, [0, 16 * round], full, LoadOptions::DEFAULT);
                    tile_b.load(&map_b, [0, 16 * round], full, LoadOptions::DEFAULT);
                }
            }
            return;
        }
        let mut accumulators = Accumulator::<Mma>::new();
        for round in 0..ROUNDS as u32 {
            match mistake {
                Mistake::ConsumerDoesNotWait => {}
                Mistake::ConsumerIsOneParityOff => full.wait((round + 1) % 2),
                Mistake::ConsumerForgetsToFlip => full.wait(0),
                _ => full.wait(round % 2),
            }
            let group = warpgroup_arrive();
            let (a, b) = (tile_a.operand_a().k_step(0), tile_b.operand_b().k_step(0));
            // SAFETY: the stage is full, unless this is the mistake.
            unsafe { group.mma(&mut accumulators, a, b, round > 0) };
            group.commit();
            let release = || empty.arrive_if(thread == 0);
            if mistake == Mistake::ConsumerReleasesEarly {
                release();
            }
            warpgroup_wait::<0>();
            if mistake != Mistake::ConsumerReleasesEarly {
                release();
            }
        }
        let accumulators = accumulators.wait();
        if thread == 0 {
            assert_eq!(accumulators.get(0), expected);
        }
    })
}

#[test]
fn a_ring_with_a_mistake_ends_in_an_error() {
    let read = "is read by wgmma too early, or was filled too early: the bytes on their way there count in phase 0";
    let stuck = "waits for the phase of parity 1 of the mbarrier at shared address 2304";
    let reused = "has read it by wgmma, and thread";
    let filled = "is overwritten too early: the bytes on their way there count in phase 0";
    // The warpgroup with the lower index runs first.
    for (mistake, producer_first, consumer_first) in [
        (Mistake::ConsumerDoesNotWait, read, reused),
        (Mistake::ConsumerIsOneParityOff, stuck, reused),
        (Mistake::ConsumerForgetsToFlip, reused, reused),
        (Mistake::ConsumerReleasesEarly, reused, reused),
        (Mistake::ProducerDoesNotWait, filled, filled),
    ] {
        says(&failure(one_stage_ring(0, mistake)), &[producer_first]);
        says(&failure(one_stage_ring(1, mistake)), &[consumer_first]);
    }
    one_stage_ring(0, Mistake::None).unwrap();
    one_stage_ring(1, Mistake::None).unwrap();
}
