//! Pipelines: stages filled in pairs, by the threads of a warpgroup, and by the blocks of a cluster together.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::cluster::{Multicast, cluster_sync};
use cutlet_device::collective::*;
use cutlet_device::cp_async::cp_async;
use cutlet_device::tile::{KMajor, KMajorTile, OperandLayout, SwizzleSpan};
use cutlet_device::tma::LoadOptions;
use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{
    Global, Shared, SharedMemory, barrier_sync, cluster_rank, sync_threads, thread_idx,
};
use cutlet_layout_core::{StaticLayout, StaticSwizzle};
use half::f16;

use crate::fixture::{Element, Matrix, launch};

/// K-major tiles of `ROWS` rows, with 64 columns.
type Tile<const ROWS: usize> = KMajorTile<f16, ROWS, 64>;
type Layout<const ROWS: usize> = OperandLayout<f16, KMajor, ROWS, 64, 128>;
type Swizzle = SwizzleSpan<f16, 128>;
type Ring<const ROWS: usize, const STAGES: usize> =
    TileRing<f16, Layout<ROWS>, Swizzle, Stages<STAGES>>;

/// Loads nine tiles through a ring of `STAGES` stages in pairs, and checks that the consumer finds them in order.
fn check_pairs<const STAGES: usize>() {
    const K_TILES: i32 = 9;
    let matrix = Matrix::<f16>::new(64, 64 * K_TILES as usize, 5);
    let map = matrix.map(Tile::<64>::tile_box(1));
    let wrong = AtomicU32::new(0);
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let ring = Ring::<64, STAGES>::take(&mut shared);
        let pipeline = Pipeline::<Stages<STAGES>>::take(&mut shared);
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barriers before the block's barrier.
            unsafe { pipeline.init(1, 1) };
        }
        sync_threads();
        let thread = warpgroup_thread_idx();
        if warpgroup_idx().is_first() {
            if thread.get() == 0 {
                let mut producer = pipeline.producer();
                for k_tile in 0..K_TILES {
                    let filling = producer.acquire_in_pairs(Tile::<64>::BYTES);
                    let tile = ring.stage(filling.stage());
                    let (at, barrier) = ([0, 64 * k_tile], filling.barrier());
                    // SAFETY: the map is of this tile; the stage is empty.
                    unsafe {
                        tile.load(&map, at, barrier, LoadOptions::DEFAULT);
                    }
                }
                producer.drain();
            }
            return;
        }
        let mut consumer = pipeline.consumer();
        for k_tile in 0..K_TILES {
            let filled = consumer.wait();
            // SAFETY: the tile is loaded. Its first row is not swizzled.
            let value = unsafe { ring.stage(filled.stage()).start().load(0) };
            if value.number() != matrix.at(0, 64 * k_tile as usize) {
                wrong.fetch_add(1, Relaxed);
            }
            // All threads have read the stage.
            barrier_sync(1, 128);
            consumer.release(filled, thread);
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_ring_filled_in_pairs_keeps_the_order() {
    check_pairs::<2>();
    check_pairs::<4>();
    check_pairs::<3>();
}

/// The threads of a warpgroup copy a row of nine tiles each to a ring of `STAGES` stages, beside TMA, which loads a
/// second tile. Checks that each thread of the consumer finds what another thread copied, in order.
fn check_copies<const STAGES: usize>() {
    const K_TILES: i32 = 9;
    let matrix = Matrix::<f16>::new(64, 64 * K_TILES as usize, 5);
    let map = matrix.map(Tile::<64>::tile_box(1));
    let copied: Vec<u32> = (0..128 * K_TILES as u32).collect();
    let wrong = AtomicU32::new(0);
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let ring = Ring::<64, STAGES>::take(&mut shared);
        let words = shared.take::<u32>(128 * STAGES);
        let pipeline = Pipeline::<Stages<STAGES>>::take(&mut shared);
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barriers before the block's barrier.
            unsafe { pipeline.init(CopyProducer::<Stages<STAGES>>::ARRIVALS, 1) };
        }
        sync_threads();
        let thread = warpgroup_thread_idx();
        let word =
            |stage: StageIdx, thread: u32| words.offset(i64::from(128 * stage.get() + thread));
        if warpgroup_idx().is_first() {
            let mut producer = CopyProducer::new(pipeline, thread);
            for k_tile in 0..K_TILES {
                let filling = producer.acquire(Tile::<64>::BYTES);
                let from = Global::from_ptr(copied.as_ptr()).offset(i64::from(128 * k_tile));
                let own = i64::from(thread.get());
                // SAFETY: the map is of this tile, and the words exist; the stage is empty.
                unsafe {
                    if CopyProducer::<Stages<STAGES>>::loads_by_tma(thread) {
                        let (at, barrier) = ([0, 64 * k_tile], filling.barrier());
                        let tile = ring.stage(filling.stage());
                        tile.load(&map, at, barrier, LoadOptions::DEFAULT);
                    }
                    let to = word(filling.stage(), thread.get());
                    cp_async::<u32, 1>(to, from.offset(own), 1);
                }
                producer.commit();
            }
            producer.drain();
            return;
        }
        let mut consumer = pipeline.consumer();
        for k_tile in 0..K_TILES {
            let filled = consumer.wait();
            let other = 127 - thread.get();
            // SAFETY: the tile and the words are loaded. The tile's first row is not swizzled.
            let (value, copied) = unsafe {
                let value = ring.stage(filled.stage()).start().load(0);
                (value, word(filled.stage(), other).load(0))
            };
            let of_matrix = matrix.at(0, 64 * k_tile as usize);
            if value.number() != of_matrix || copied != 128 * k_tile as u32 + other {
                wrong.fetch_add(1, Relaxed);
            }
            // All threads have read the stage.
            barrier_sync(1, 128);
            consumer.release(filled, thread);
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_ring_that_threads_copy_to_keeps_the_order() {
    check_copies::<3>();
    check_copies::<4>();
    check_copies::<7>();
    check_copies::<8>();
}

/// Two blocks load tiles of `ROWS` rows together by multicast, and both check them.
fn check_multicast<const ROWS: usize>() {
    let matrix = Matrix::<f16>::new(ROWS, 256, 3);
    let map = matrix.map(Tile::<ROWS>::multicast_box(2));
    let wrong = AtomicU32::new(0);
    launch(128, 4, 2, || {
        let mut shared = SharedMemory::new();
        let ring = Ring::<ROWS, 2>::take(&mut shared);
        let pipeline = Pipeline::<Stages<2>, Cluster<2, 1>>::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: no thread uses the barriers before the cluster's barrier.
            unsafe { pipeline.init(1, 1) };
        }
        cluster_sync();
        let thread = warpgroup_thread_idx();
        let (mut producer, mut consumer) = (pipeline.producer(), pipeline.consumer());
        for k_tile in 0..4 {
            if thread.get() == 0 {
                let filling = producer.acquire(Tile::<ROWS>::BYTES);
                let options = LoadOptions::DEFAULT.multicast(Multicast::first(2));
                let tile = ring.stage(filling.stage());
                // SAFETY: the map is of a block's part of this tile, and the stage is empty in both blocks.
                unsafe {
                    tile.load_multicast(
                        2,
                        cluster_rank().get(),
                        k_tile as u32,
                        &map,
                        [0, 64 * k_tile],
                        filling.barrier(),
                        options,
                    );
                }
            }
            let filled = consumer.wait();
            let tile: Shared<f16> = ring.stage(filled.stage()).start();
            for i in (thread.get()..64 * ROWS as u32).step_by(128) {
                let index = Swizzle::apply(Layout::<ROWS>::LAYOUT.at(i64::from(i)) as u32);
                // SAFETY: the tile is loaded.
                let value = unsafe { tile.load(i64::from(index)) };
                let (row, column) = (i as usize % ROWS, i as usize / ROWS + 64 * k_tile as usize);
                if value.number() != matrix.at(row, column) {
                    wrong.fetch_add(1, Relaxed);
                }
            }
            sync_threads();
            consumer.release(filled, thread);
        }
        if thread.get() == 0 {
            producer.drain();
        }
        cluster_sync();
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn blocks_of_a_cluster_load_tiles_by_multicast() {
    check_multicast::<64>();
    // Half of 72 rows is no multiple of 8, so the blocks take turns to load whole tiles.
    check_multicast::<72>();
}
