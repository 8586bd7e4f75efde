//! TMA at the edges of tensors.

use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::tile::KMajorTile;
use cutlet_device::tma::{
    LoadOptions, TensorMap, prefetch_tensor_map, tma_store_commit, tma_store_wait,
    tma_store_wait_read,
};
use cutlet_device::{SharedMemory, fence_async_shared, thread_idx};
use cutlet_simt::TensorMapModel;

use crate::fixture::{Matrix, failure, launch, says};

#[test]
fn boxes_are_clipped_at_the_edges_of_the_tensor() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let source = Matrix::<f32>::new(10, 12, 4);
    let target = Matrix {
        elements: vec![-1.0f32; 10 * 12],
        rows: 10,
        columns: 12,
    };
    let (from, to) = (source.map(Tile::tile_box(1)), target.map(Tile::tile_box(1)));
    launch(32, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile = Tile::take(&mut shared);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().get() == 0 {
            prefetch_tensor_map(&from);
            // SAFETY: this thread alone uses barrier and tile; the maps are of this tile.
            unsafe {
                barrier.init(1);
                barrier.arrive_expect_tx(Tile::BYTES);
                tile.load(&from, [-3, -4], barrier, LoadOptions::DEFAULT);
                barrier.wait(0);
                tile.store(&to, [5, 4]);
                tma_store_commit();
                tma_store_wait_read::<0>();
                barrier.invalidate();
            }
        }
    })
    .unwrap();
    for row in 0..10 {
        for column in 0..12 {
            let expected = match (row >= 5 && column >= 4, row >= 8 && column >= 8) {
                (true, true) => source.at(row - 8, column - 8),
                (true, false) => 0.0,
                _ => -1.0,
            };
            assert_eq!(target.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn stores_fill_rows_up_to_16_bytes() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    // Rows of 9 elements, 16 apart: the last 16 bytes of a row have 3 elements that are not the tensor's.
    let (rows, columns, ld) = (10, 9, 16);
    let target = Matrix {
        elements: vec![-1.0f32; rows * ld],
        rows,
        columns: ld,
    };
    let model = TensorMapModel {
        address: target.elements.as_ptr().expose_provenance() as u64,
        element_bytes: 4,
        rank: 2,
        extent: [columns as u64, rows as u64, 1, 1, 1],
        stride: [4 * ld as u64, 0, 0, 0],
        box_extent: [8, 8, 1, 1, 1],
        element_stride: [1; 5],
        span: 32,
        rounds_to_tf32: false,
    };
    let map = TensorMap::from_words(model.encode());
    launch(32, 1, 1, || {
        let tile = Tile::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            for i in 0..64 {
                // SAFETY: this thread alone uses the tile.
                unsafe { tile.start().store(i, 5.0) };
            }
            fence_async_shared();
            for (row, column) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                // SAFETY: the map is of this tile, and no thread uses the target.
                unsafe { tile.store(&map, [row, column]) };
            }
            tma_store_commit();
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    for row in 0..rows {
        for column in 0..ld {
            // Memory may end after the last row, so the model writes nothing beyond it.
            let end = if row == rows - 1 { columns } else { 12 };
            let expected = if column < end { 5.0 } else { -1.0 };
            assert_eq!(target.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn a_thread_that_ends_before_its_stores_is_reported() {
    let matrix = Matrix::<f32>::new(8, 8, 6);
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let map = matrix.map(Tile::tile_box(1));
    let message = failure(launch(32, 1, 1, || {
        let tile = Tile::take(&mut SharedMemory::new());
        if thread_idx().get() == 3 {
            // SAFETY: the map is of this tile.
            unsafe { tile.store(&map, [0, 0]) };
            tma_store_commit();
        }
    }));
    says(
        &message,
        &["thread (3, 0, 0)", "1 groups of TMA stores under way"],
    );
}

#[test]
fn boxes_that_the_gpu_refuses_are_reported() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let matrix = Matrix::<f32>::new(16, 16, 1);
    let map = matrix.map(Tile::tile_box(1));
    let copy = |stores: bool, at: [i32; 2]| {
        failure(launch(32, 1, 1, || {
            let mut shared = SharedMemory::new();
            let tile = Tile::take(&mut shared);
            let barrier = Mbarrier::take(&mut shared);
            if thread_idx().get() == 0 {
                // SAFETY: this thread alone uses barrier and tile; the map is of this tile.
                unsafe {
                    barrier.init(1);
                    barrier.arrive_expect_tx(Tile::BYTES);
                    match stores {
                        true => tile.store(&map, at),
                        false => tile.load(&map, at, barrier, LoadOptions::DEFAULT),
                    }
                }
            }
        }))
    };
    for stores in [true, false] {
        says(
            &copy(stores, [0, 2]),
            &["coordinate 2", "byte 8 of a line", "multiples of 16 bytes"],
        );
    }
    says(
        &copy(true, [-1, 0]),
        &["a TMA store begins at the coordinate [0, -1]"],
    );
}
