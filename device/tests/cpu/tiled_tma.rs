//! Whole tiles that TMA copies by the words of tiled copies.

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::tile::{KMajor, KMajorTile, MnMajor, MnMajorTile};
use cutlet_device::tiled::{TmaLoad, TmaMatrix, TmaStore, copy_tile};
use cutlet_device::tma::{CacheHint, TensorMap, tma_store_commit, tma_store_wait};
use cutlet_device::{
    GlobalMut, SharedMemory, cluster_rank, fence_async_shared, sync_threads, thread_idx,
};
use cutlet_layout_core::L;
use half::bf16;

use crate::fixture::{Matrix, launch};

/// Copies the tiles of a matrix by one block, through shared memory. A tile of `$stored` has the extents of `$tile`.
macro_rules! check_copy {
    ($element:ty, $major:ty, $stored:ty, $tile:ty, [$m:literal, $n:literal], [$rows:literal, $columns:literal]) => {{
        // A tensor map has its consecutive dimension first, and MN-major tiles are of the transposed matrix.
        let is_k_major = <$major as cutlet_device::tile::Major>::IS_K_MAJOR;
        let (lines, length) = if is_k_major { ($rows, $columns) } else { ($columns, $rows) };
        let source = Matrix::<$element>::new(lines, length, 3);
        let target = Matrix {
            elements: vec![<$element>::default(); lines * length],
            rows: lines,
            columns: length,
        };
        let boxes = <$stored>::tile_box(1);
        let (from, to) = (source.map(boxes), target.map(boxes));
        launch(32, 1, 1, || {
            let mut shared = SharedMemory::new();
            let (tile, full) = (<$stored>::take(&mut shared), Mbarrier::take(&mut shared));
            if !thread_idx().is_first() {
                return;
            }
            // SAFETY: this thread alone uses barrier and tile. The maps are of this tile.
            unsafe {
                let (from, to) = (TmaMatrix::new(&from), TmaMatrix::new(&to));
                full.init(1);
                let mut phase = 0;
                for row in 0..($rows as u32).div_ceil($m) {
                    for column in 0..($columns as u32).div_ceil($n) {
                        full.arrive_expect_tx(<$stored>::BYTES);
                        let load = TmaLoad::with(full).hint(CacheHint::EvictFirst);
                        copy_tile(load, from.local_tile::<$tile>((row, column)), tile);
                        full.wait(phase);
                        phase ^= 1;
                        copy_tile(TmaStore, tile, to.local_tile::<$tile>((row, column)));
                        tma_store_commit();
                        tma_store_wait::<0>();
                    }
                }
            }
        })
        .unwrap();
        assert_eq!(source.elements, target.elements);
    }};
}

/// Matrices that tiles do not divide.
#[test]
fn tiles_are_loaded_and_stored() {
    check_copy!(bf16, KMajor, KMajorTile<bf16, 64, 64>, L!((64, 64):(1@0, 1@1)), [64, 64], [70, 136]);
    check_copy!(f32, KMajor, KMajorTile<f32, 16, 32, 64>, L!((16, 32):(1@0, 1@1)), [16, 32], [33, 36]);
    check_copy!(bf16, MnMajor, MnMajorTile<bf16, 128, 32>, L!((128, 32):(1@0, 1@1)), [128, 32], [136, 70]);
}

/// Each of two warps writes a half of a tile, and stores it.
#[test]
fn parts_of_a_tile_are_stored() {
    type Tile = KMajorTile<f32, 16, 8, 32>;
    let target = Matrix {
        elements: vec![0.0f32; 20 * 16],
        rows: 20,
        columns: 16,
    };
    let map = target.map(Tile::tile_box(2));
    launch(64, 1, 1, || {
        let tile = Tile::take(&mut SharedMemory::new());
        let thread = thread_idx().get();
        for i in 0..2 {
            let element = i64::from(2 * thread + i);
            // SAFETY: each thread has its own elements.
            unsafe { tile.start().store(element, 1.0 + (thread / 32) as f32) };
        }
        fence_async_shared();
        sync_threads();
        if thread.is_multiple_of(32) {
            // SAFETY: the map is of halves of the tile, which is written.
            unsafe {
                let to = TmaMatrix::new(&map).local_tile::<L!((16, 8):(1@0, 1@1))>((1, 1));
                copy_tile(TmaStore::part::<2>(thread / 32), tile, to);
            }
            tma_store_commit();
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    for row in 0..20 {
        for column in 0..16 {
            let expected = if row < 16 || column < 8 { 0.0 } else { 1.0 };
            assert_eq!(target.at(row, column), expected, "({row}, {column})");
        }
    }
}

/// Each of two blocks loads a half of a tile for both.
#[test]
fn blocks_of_a_cluster_load_parts() {
    type Tile = KMajorTile<f32, 16, 8, 32>;
    type Extents = L!((16, 8):(1@0, 1@1));
    let source = Matrix::<f32>::new(16, 8, 5);
    let map: TensorMap = source.map(Tile::multicast_box(2));
    let sums = vec![0.0f32; 2];
    let to = GlobalMut::from_ptr(sums.as_ptr().cast_mut());
    launch(32, 2, 2, || {
        let mut shared = SharedMemory::new();
        let (tile, full) = (Tile::take(&mut shared), Mbarrier::take(&mut shared));
        let rank = cluster_rank().get();
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barrier before the cluster has met.
            unsafe { full.init(1) };
            fence_mbarrier_init();
        }
        cluster_arrive_relaxed();
        cluster_wait();
        if thread_idx().is_first() {
            full.arrive_expect_tx(Tile::BYTES);
            // SAFETY: the map is of halves of the tile.
            unsafe {
                let from = TmaMatrix::new(&map).local_tile::<Extents>((0, 0));
                copy_tile(TmaLoad::with(full).part_of_cluster(2, rank), from, tile);
            }
            full.wait(0);
            // SAFETY: the tile has arrived.
            let sum = (0..128).map(|i| unsafe { tile.start().load(i) }).sum();
            // SAFETY: each block has its own element.
            unsafe { to.store(rank.into(), sum) };
        }
        cluster_arrive_relaxed();
        cluster_wait();
    })
    .unwrap();
    let sum: f32 = source.elements.iter().sum();
    assert_eq!(sums, [sum; 2]);
}
