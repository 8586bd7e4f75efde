//! Tiles of tensors of several modes, which TMA copies by a layout of coordinates, and their products.

use cutlet_device::collective::{Pipeline, Stages, TileRing};
use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::sm90::{Accumulator, Wgmma};
use cutlet_device::tile::{
    KMajor, KMajorTile, MnMajorTile, OperandLayout, SharedTile, SwizzleSpan,
};
use cutlet_device::tiled::{
    TmaLoad, TmaMatrix, TmaStore, TmaTensor, copy_tile, gemm_stages, store_c_tile,
};
use cutlet_device::tma::{TensorMap, tma_store_commit, tma_store_wait};
use cutlet_device::warpgroup::{ThreadOfWarpgroups, warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{SharedMemory, sync_threads, thread_idx};
use cutlet_layout_core::{
    CoordinateLayout, L, Layout, StaticLayout, StaticSwizzle, TiledMma, layout,
};
use cutlet_simt::TensorMapModel;
use half::bf16;

use crate::fixture::{Matrix, launch};

/// Pixels of 16 channels in lines of 7.
const EXTENT: [usize; 3] = [16, 7, 5];

/// A number for each channel of each pixel, or zeros.
struct Image(Vec<f32>);

impl Image {
    const LEN: usize = EXTENT[0] * EXTENT[1] * EXTENT[2];

    fn numbers() -> Self {
        Self((0..Self::LEN).map(|i| (i + 1) as f32).collect())
    }

    fn zeros() -> Self {
        Self(vec![0.0; Self::LEN])
    }

    /// What is at a coordinate: zero outside.
    fn at(&self, coordinate: [i64; 3]) -> f32 {
        let inside = |d: usize| (0..EXTENT[d] as i64).contains(&coordinate[d]);
        let [c, x, y] = coordinate.map(|it| it as usize);
        match inside(0) && inside(1) && inside(2) {
            true => self.0[c + EXTENT[0] * (x + EXTENT[1] * y)],
            false => 0.0,
        }
    }

    fn tensor<const M: usize, const N: usize>(
        &self,
        matrix: &Layout,
        origin: [i32; 3],
        boxes: [u32; 3],
    ) -> TmaTensor<3, M, N> {
        let [c, x, y] = EXTENT.map(|it| it as u64);
        let [line, lines, planes] = boxes;
        let model = TensorMapModel {
            address: self.0.as_ptr().expose_provenance() as u64,
            element_bytes: 4,
            rank: 3,
            extent: [c, x, y, 1, 1],
            stride: [4 * c, 4 * c * x, 0, 0],
            box_extent: [line, lines, planes, 1, 1],
            element_stride: [1; 5],
            span: 32,
            rounds_to_tf32: false,
        };
        let map = TensorMap::from_words(model.encode());
        TmaTensor::new(map, CoordinateLayout::new(matrix, origin))
    }
}

/// Tiles of 4×2 pixels, whose rows are windows of three neighbours. The first window begins a pixel before the image.
#[test]
fn tiles_of_overlapping_windows_are_loaded() {
    type Tile = L!((8, 16):(1@0, 1@1));
    type InMemory = OperandLayout<f32, KMajor, 8, 16, 32>;
    type Swizzle = SwizzleSpan<f32, 32>;
    type Stored = SharedTile<f32, InMemory, Swizzle>;
    let windows = layout!((((4, 2), (2, 3)), (16, 3)):(((1@1, 1@2), (4@1, 2@2)), (1@0, 1@1)));
    let image = Image::numbers();
    let tensor = image.tensor::<4, 2>(&windows, [0, -1, 0], [8, 4, 2]);
    launch(32, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (tile, full) = (Stored::take(&mut shared), Mbarrier::take(&mut shared));
        if !thread_idx().is_first() {
            return;
        }
        // SAFETY: this thread alone uses barrier and tile.
        unsafe { full.init(1) };
        let tiles = (0..6u32).flat_map(|row| (0..3u32).map(move |column| (row, column)));
        for (nth, (row, column)) in tiles.enumerate() {
            full.arrive_expect_tx(Stored::BYTES);
            let from = tensor.local_tile::<Tile>((row, column));
            // SAFETY: as above. The map is of this tile.
            unsafe { copy_tile(TmaLoad::with(full), from, tile) };
            full.wait(nth as u32 % 2);
            for place in 0..128i64 {
                let (row, column) = (8 * row + place as u32 % 8, 16 * column + place as u32 / 8);
                let index = Swizzle::apply(InMemory::LAYOUT.at(place) as u32);
                // SAFETY: the tile has arrived.
                let found = unsafe { tile.start().load(index.into()) };
                let element = i64::from(row) + 48 * i64::from(column);
                let [c, x, y] = [0, 1, 2].map(|d| windows.at_basis(element, d));
                assert_eq!(found, image.at([c, x - 1, y]), "({row}, {column})");
            }
        }
    })
    .unwrap();
}

/// Copies an image tile by tile, by a tile in shared memory that is stored in `$parts` parts.
macro_rules! check_copy {
    ($stored:ty, $tile:ty, $matrix:expr, [$m:literal, $n:literal] leaves, $count:literal tiles at $at:expr,
        boxes $loaded:expr, $parts:literal of $part:expr) => {{
        let (from, to) = (Image::numbers(), Image::zeros());
        let matrix = $matrix;
        let source = from.tensor::<$m, $n>(&matrix, [0; 3], $loaded);
        let target = to.tensor::<$m, $n>(&matrix, [0; 3], $part);
        launch(32, 1, 1, || {
            let mut shared = SharedMemory::new();
            let (tile, full) = (<$stored>::take(&mut shared), Mbarrier::take(&mut shared));
            if !thread_idx().is_first() {
                return;
            }
            // SAFETY: this thread alone uses barrier and tile. The maps are of this tile and of its parts.
            unsafe {
                full.init(1);
                for (at, phase) in (0..$count).map($at).zip([0, 1].into_iter().cycle()) {
                    full.arrive_expect_tx(<$stored>::BYTES);
                    copy_tile(TmaLoad::with(full), source.local_tile::<$tile>(at), tile);
                    full.wait(phase);
                    for part in 0..$parts as u32 {
                        let to = target.local_tile::<$tile>(at);
                        copy_tile(TmaStore::part::<$parts>(part), tile, to);
                    }
                    tma_store_commit();
                    tma_store_wait::<0>();
                }
            }
        })
        .unwrap();
        assert_eq!(from.0, to.0);
    }};
}

/// The parts of a tile of 4×4 pixels have two lines each. The last tiles reach beyond the image.
#[test]
fn tiles_of_pixels_are_copied_in_parts() {
    check_copy!(
        KMajorTile<f32, 16, 16, 32>,
        L!((16, 16):(1@0, 1@1)),
        layout!((((4, 4), (2, 2)), 16):(((1@1, 1@2), (4@1, 4@2)), 1@0)),
        [4, 1] leaves,
        4 tiles at |nth: u32| (nth, 0u32),
        boxes [8, 4, 4],
        2 of [8, 4, 2]
    );
}

/// The other way round: channels are rows.
#[test]
fn tiles_with_consecutive_rows_are_copied() {
    check_copy!(
        MnMajorTile<f32, 16, 8, 32>,
        L!((16, 8):(1@0, 1@1)),
        layout!((16, ((4, 2), (2, 3))):(1@0, ((1@1, 1@2), (4@1, 2@2)))),
        [1, 4] leaves,
        6 tiles at |nth: u32| (0u32, nth),
        boxes [8, 4, 2],
        2 of [8, 4, 2]
    );
}

/// Multiplies three tiles of A by two of B, and stores the products by TMA while the next ones are computed.
#[test]
fn stages_are_multiplied_and_stored_by_tma() {
    type Mma = TiledMma<Wgmma<32, bf16>, L!((2, 1):(1, 0))>;
    type Ring<const ROWS: usize> = TileRing<
        bf16,
        OperandLayout<bf16, KMajor, ROWS, 64, 128>,
        SwizzleSpan<bf16, 128>,
        Stages<2>,
    >;
    type TileC = KMajorTile<bf16, 128, 32, 64>;
    const BYTES: u32 = KMajorTile::<bf16, 128, 64>::BYTES + KMajorTile::<bf16, 32, 64>::BYTES;
    // Of 3 k-tiles, the last one is not whole. The last row of tiles is not whole either.
    let (m, n, k) = (304, 64, 136);
    let (a, b) = (Matrix::<bf16>::new(m, k, 1), Matrix::<bf16>::new(n, k, 2));
    let c = Matrix::<bf16> {
        elements: vec![bf16::NAN; m * n],
        rows: m,
        columns: n,
    };
    let map_a = a.map(KMajorTile::<bf16, 128, 64>::tile_box(1));
    let map_b = b.map(KMajorTile::<bf16, 32, 64>::tile_box(1));
    let map_c = c.map(TileC::tile_box(2));
    let tiles = || (0..3u32).flat_map(|row| (0..2u32).map(move |column| (row, column)));
    launch(384, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (ring_a, ring_b) = (
            Ring::<128>::take(&mut shared),
            Ring::<32>::take(&mut shared),
        );
        let tile_c = TileC::take(&mut shared);
        let pipeline = Pipeline::<Stages<2>>::take(&mut shared);
        let (warpgroup, thread) = (warpgroup_idx(), warpgroup_thread_idx());
        if thread_idx().is_first() {
            // SAFETY: no thread uses the barriers before the block's barrier.
            unsafe { pipeline.init(1, 2) };
        }
        sync_threads();
        // SAFETY: the maps are of these tiles.
        let (a, b, c) = unsafe {
            let (a, b) = (TmaMatrix::new(&map_a), TmaMatrix::new(&map_b));
            (a, b, TmaMatrix::new(&map_c))
        };
        if warpgroup.is_first() {
            if thread.is_first() {
                let mut producer = pipeline.producer();
                for ((row, column), k_tile) in
                    tiles().flat_map(|it| (0..3u32).map(move |k| (it, k)))
                {
                    let filling = producer.acquire(BYTES);
                    let (stage, load) = (filling.stage(), TmaLoad::with(filling.barrier()));
                    let a = a.local_tile::<L!((128, 64):(1@0, 1@1))>((row, k_tile));
                    let b = b.local_tile::<L!((32, 64):(1@0, 1@1))>((column, k_tile));
                    // SAFETY: the stage is empty.
                    unsafe {
                        copy_tile(load, a, ring_a.stage(stage));
                        copy_tile(load, b, ring_b.stage(stage));
                    }
                }
            }
            return;
        }
        let consumer = warpgroup.after(1);
        let mma = Mma::thread_slice(ThreadOfWarpgroups::<2>::new(consumer, thread));
        let mut stages = pipeline.consumer();
        for (row, column) in tiles() {
            let new = Accumulator::new_array::<1>();
            let sums = gemm_stages(mma, new, ring_a, ring_b, &mut stages, 3);
            let to = c.local_tile::<L!((128, 32):(1@0, 1@1))>((row, column));
            // SAFETY: each warpgroup stores its own rows.
            unsafe { store_c_tile(TmaStore::part::<2>(consumer), mma, &sums, tile_c, to) };
        }
        if thread.is_first() {
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let sum = (0..k).map(|k| a.at(row, k) * b.at(column, k)).sum::<f32>();
        let expected = bf16::from_f32(sum).to_f32();
        assert_eq!(c.at(row, column), expected, "({row}, {column})");
    }
}
