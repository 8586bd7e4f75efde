//! Accumulators of tiled products, stored to tiles by every instruction.

use cutlet_device::sm80::*;
use cutlet_device::sm90::Wgmma;
use cutlet_device::tile::{KMajor, MnMajor, OperandTile};
use cutlet_device::tiled::{ByElement, StMatrix, StMatrixTransposed, store_c};
use cutlet_device::{
    DeviceData, GlobalMut, MmaInstruction, SharedMemory, Threads, lane_idx, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{
    InOrder, L, RowMajor, StaticLayout, StaticSwizzle, Tensor, TiledMma, Width,
};
use half::{bf16, f16};

use crate::fixture::{Element, failure, launch, says};

/// What is at a place of a tile with up to 256 columns: exact in 16 bits.
fn value(row: usize, column: usize) -> i32 {
    ((row * 31 + column * 7) % 251) as i32 - 125
}

/// Stores values of the type `$value` of a tiled product to a tile of `$element`, and reads it by its layout.
macro_rules! check_store {
    ($product:ty, $value:ty => $element:ty, $atom:expr, $tile:ty, [$m:literal, $n:literal]) => {{
        type Tiled = $product;
        type Stored = $tile;
        launch(Tiled::THREADS, 1, 1, || {
            let tile = Stored::take(&mut SharedMemory::new());
            let thread = thread_idx().of_block::<Threads<{ Tiled::THREADS }>>();
            let mma = Tiled::thread_slice(thread);
        type Tile = L!(($m, $n):(1@0, 1@1));
            let places = Tensor::identity([$m, $n]).local_tile::<Tile>((0, 0));
            let places = mma.partition_c(places);
            let values = mma.fragment_c::<Tile, $value>(<$value>::default());
            let values = values.map(|v, _| {
                let [row, column] = places.coordinate(v).map(|x| x as usize);
                <$value as Element>::of(value(row, column))
            });
            // SAFETY: the barrier orders the accesses.
            store_c($atom, mma, unsafe { tile.tensor() }, &values);
            sync_threads();
            read(tile);
        })
        .unwrap();
    }};
}

/// Compares each element with its value.
fn read<T: DeviceData + Element, L: StaticLayout, W: StaticSwizzle>(
    tile: cutlet_device::tile::SharedTile<T, L, W>,
) {
    let rows = L::LAYOUT.mode(0).size() as usize;
    for i in 0..L::SIZE {
        let index = W::apply(L::LAYOUT.at(i as i64) as u32);
        let (row, column) = (i % rows, i / rows);
        // SAFETY: the layout stays within the tile.
        let found = unsafe { tile.start().load(index.into()) }.number();
        assert_eq!(found, value(row, column) as f32, "({row}, {column})");
    }
}

type FourWarps = L!((2, 2):(1, 2));
type Rows<T, const M: usize, const N: usize, const SPAN: usize> =
    OperandTile<T, KMajor, M, N, SPAN>;
type Columns<T, const M: usize, const N: usize, const SPAN: usize> =
    OperandTile<T, MnMajor, M, N, SPAN>;

#[test]
fn stmatrix_stores_the_accumulators_of_warps() {
    type Product = TiledMma<Mma16816<bf16>, FourWarps>;
    check_store!(Product, f32 => bf16, StMatrix, Rows<bf16, 64, 64, 128>, [64, 64]);
    check_store!(Product, f32 => f16, StMatrix, Rows<f16, 64, 64, 64>, [64, 64]);
    // A thread has four values, which are two matrices.
    check_store!(Product, f32 => bf16, StMatrix, Rows<bf16, 32, 16, 32>, [32, 16]);
    check_store!(Product, bf16 => bf16, StMatrix, Rows<bf16, 32, 48, 32>, [32, 48]);
}

#[test]
fn stmatrix_stores_the_accumulators_of_warpgroups() {
    type Below = TiledMma<Wgmma<128, bf16>, L!((2, 1):(1, 0))>;
    check_store!(Below, f32 => bf16, StMatrix, Rows<bf16, 128, 128, 128>, [128, 128]);
    check_store!(Below, f16 => f16, StMatrix, Rows<f16, 256, 128, 64>, [256, 128]);
    type Aside = TiledMma<Wgmma<32, bf16>, L!((1, 2):(0, 1))>;
    check_store!(Aside, f32 => bf16, StMatrix, Rows<bf16, 64, 64, 32>, [64, 64]);
    // A thread has 12 values, which are three times two matrices.
    type Narrow = TiledMma<Wgmma<24, bf16>, L!((1, 1):(0, 0))>;
    check_store!(Narrow, f32 => bf16, StMatrix, Rows<bf16, 64, 24, 16>, [64, 24]);
    check_store!(Below, f32 => bf16, StMatrixTransposed, Columns<bf16, 128, 128, 128>, [128, 128]);
}

/// Two values of a thread are one matrix of a warp.
#[test]
fn stmatrix_stores_a_single_matrix() {
    type Product = TiledMma<Mma884F64, L!((2, 1):(1, 0))>;
    check_store!(Product, bf16 => bf16, StMatrix, Rows<bf16, 16, 8, 16>, [16, 8]);
    check_store!(Product, f16 => f16, StMatrixTransposed, Columns<f16, 16, 24, 32>, [16, 24]);
}

#[test]
fn columns_are_stored_transposed() {
    type Product = TiledMma<Mma16816<bf16>, FourWarps>;
    check_store!(Product, f32 => bf16, StMatrixTransposed, Columns<bf16, 64, 64, 128>, [64, 64]);
    check_store!(Product, f16 => f16, StMatrixTransposed, Columns<f16, 32, 16, 64>, [32, 16]);
}

/// The order of a permutation is that of the values, too.
#[test]
fn a_permuted_product_is_stored_in_its_order() {
    type InBlocks = (L!((16, 2, 2):(1, 32, 16)), L!((8, 2, 2):(1, 16, 8)));
    type Product = TiledMma<Mma16816<bf16>, FourWarps, InBlocks>;
    check_store!(Product, f32 => bf16, StMatrix, Rows<bf16, 64, 64, 128>, [64, 64]);
    check_store!(Product, f32 => bf16, Width::<2>, Rows<bf16, 64, 64, 128>, [64, 64]);
}

#[test]
fn pairs_and_elements_are_stored_without_stmatrix() {
    type Product = TiledMma<Mma16816<bf16>, FourWarps>;
    check_store!(Product, f32 => bf16, Width::<2>, Rows<bf16, 64, 64, 128>, [64, 64]);
    check_store!(Product, f32 => f32, Width::<2>, Rows<f32, 64, 32, 128>, [64, 32]);
    check_store!(Product, f32 => f16, ByElement, Columns<f16, 64, 64, 64>, [64, 64]);
    type Wgmmas = TiledMma<Wgmma<96, bf16>, L!((1, 1):(0, 0))>;
    check_store!(Wgmmas, f32 => bf16, ByElement, Columns<bf16, 64, 96, 128>, [64, 96]);
    type Integers = TiledMma<Mma16832<i8>, FourWarps>;
    check_store!(Integers, f32 => f32, ByElement, Rows<f32, 32, 32, 64>, [32, 32]);
}

/// A tile of a matrix with 50×30 elements in global memory: what is outside is not written.
#[test]
fn stores_stop_at_the_edges_of_a_matrix() {
    type Product = TiledMma<Mma16816<bf16>, FourWarps, InOrder>;
    type Tile = L!((64, 32):(1@0, 1@1));
    let c = vec![<Mma16816<bf16> as MmaInstruction>::Acc::NAN; 64 * 32];
    let to = GlobalMut::from_ptr(c.as_ptr().cast_mut());
    launch(128, 1, 1, || {
        // SAFETY: the extents stay inside the memory.
        let c = unsafe { Tensor::new(to, RowMajor::new([50, 30], 32)) };
        let mma = Product::thread_slice(thread_idx().of_block::<Threads<128>>());
        let ones = mma.fragment_c::<Tile, f32>(1.0);
        store_c(Width::<2>, mma, c.local_tile::<Tile>((0, 0)), &ones);
    })
    .unwrap();
    for (i, found) in c.iter().enumerate() {
        let is_inside = i / 32 < 50 && i % 32 < 30;
        assert_eq!(*found == 1.0, is_inside, "({}, {})", i / 32, i % 32);
    }
}

/// Two warps store to the same rows: the error names the line of the kernel.
#[test]
fn a_race_of_stores_is_the_line_of_the_kernel() {
    type Product = TiledMma<Mma16816<bf16>, L!((1, 1):(0, 0))>;
    let result = launch(64, 1, 1, || {
        let tile = Rows::<bf16, 16, 16, 32>::take(&mut SharedMemory::new());
        let mma = Product::thread_slice(lane_idx().get());
        let sums = mma.fragment_c::<L!((16, 16):(1@0, 1@1)), f32>(1.0);
        // SAFETY: the race is what is tested.
        store_c(StMatrix, mma, unsafe { tile.tensor() }, &sums);
    });
    says(&failure(result), &["tiled_store.rs"]);
}
