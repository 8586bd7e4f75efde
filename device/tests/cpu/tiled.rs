//! Tiled copies and tiled matrix products, compared with plain loops.

use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::fp8::F8E4M3;
use cutlet_device::sm80::*;
use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive};
use cutlet_device::tile::{KMajor, MnMajor, OperandTile};
use cutlet_device::tiled::*;
use cutlet_device::{
    Global, GlobalMut, MmaInstruction, Shared, SharedMemory, Threads, fence_async_shared,
    sync_threads, thread_idx,
};
use cutlet_layout_core::{
    Fixed, InOrder, L, RowMajor, Steps, Tensor, TiledCopy, TiledMma, Width, each,
};
use half::{bf16, f16};

use crate::fixture::{fill, launch, small};

/// A tile of an operand with 128 bytes of a line, whose major direction is `J`.
type Operand<T, J, const MN: usize, const K: usize> = OperandTile<T, J, MN, K, 64>;

/// Multiplies a 64×K tile of A by a 48×K tile of B by 2×2 warps, in the order `P`, with operands that `atom` reads.
macro_rules! check_product {
    ($instruction:ty, $permutation:ty, $atom:expr, $ja:ty, $jb:ty, $n:literal, $k:literal) => {{
        type Instruction = $instruction;
        type In = <Instruction as MmaInstruction>::A;
        type Acc = <Instruction as MmaInstruction>::Acc;
        type Product = TiledMma<Instruction, L!((2, 2):(1, 2)), $permutation>;
        type TileA = Operand<In, $ja, 64, $k>;
        type TileB = Operand<In, $jb, $n, $k>;
        let (value_a, value_b) = (
            |row: usize, k: usize| small(row * 1000 + k),
            |row: usize, k: usize| small(row * 777 + 13 * k + 5),
        );
        let c = vec![Acc::default(); 64 * $n];
        let to = GlobalMut::<Acc>::from_ptr(c.as_ptr().cast_mut());
        launch(128, 1, 1, || {
            let mut shared = SharedMemory::new();
            let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
            fill(a, value_a);
            fill(b, value_b);
            sync_threads();
            // SAFETY: the tiles are written, and C has as many elements.
            let (a, b, c) = unsafe {
                let c = Tensor::new(to, RowMajor::new([64, $n], $n));
                (a.tensor(), b.tensor(), c.local_tile::<L!((64, $n):(1@0, 1@1))>((0, 0)))
            };
            let mma = Product::thread_slice(thread_idx().of_block::<Threads<128>>());
            let mut sums = mma.fragment_c::<L!((64, $n):(1@0, 1@1)), Acc>(Acc::default());
            each::<Steps<Product, L!((64, $k):(1@0, 1@1))>>(|step| {
                let (a, b) = (load_a($atom.0, mma, a, step), load_b($atom.1, mma, b, step));
                gemm(mma, &a, &b, &mut sums);
            });
            mma.partition_c(c).store(&sums);
        })
        .unwrap();
        for (i, found) in c.iter().enumerate() {
            let (row, column) = (i / $n, i % $n);
            let sum: i32 = (0..$k).map(|k| value_a(row, k) * value_b(column, k)).sum();
            assert_eq!(f64::from(*found), f64::from(sum), "({row}, {column})");
        }
    }};
}

/// Each warp has 32 rows of 64 that follow one another, and 16 columns of 32.
type InBlocks = (L!((16, 2, 2):(1, 32, 16)), L!((8, 2, 2):(1, 16, 8)));

#[test]
fn products_of_16_bits_are_loaded_by_ldmatrix() {
    let by = (LdMatrix, LdMatrix);
    check_product!(Mma16816<bf16>, InOrder, by, KMajor, KMajor, 64, 32);
    check_product!(Mma16816<f16>, InOrder, by, KMajor, KMajor, 48, 64);
    check_product!(Mma16816<bf16>, InBlocks, by, KMajor, KMajor, 64, 32);
}

#[test]
fn lines_along_m_and_n_are_transposed() {
    check_product!(
        Mma16816<bf16>,
        InOrder,
        (LdMatrixTransposed, LdMatrixTransposed),
        MnMajor,
        MnMajor,
        64,
        32
    );
    check_product!(
        Mma16816<f16>,
        InBlocks,
        (LdMatrixTransposed, LdMatrix),
        MnMajor,
        KMajor,
        96,
        32
    );
    check_product!(
        Mma16816<f16>,
        InOrder,
        (LdMatrix, LdMatrixTransposed),
        KMajor,
        MnMajor,
        32,
        32
    );
}

#[test]
fn products_of_other_widths() {
    let by = (LdMatrix, LdMatrix);
    check_product!(Mma16832<i8>, InOrder, by, KMajor, KMajor, 48, 64);
    check_product!(Mma16832<F8E4M3>, InOrder, by, KMajor, KMajor, 64, 64);
    check_product!(Mma1688Tf32, InOrder, by, KMajor, KMajor, 64, 16);
}

#[test]
fn every_operand_is_read_by_element() {
    let by = (ByElement, ByElement);
    check_product!(Mma16816<bf16>, InOrder, by, KMajor, MnMajor, 64, 32);
    check_product!(Mma16832<i8>, InBlocks, by, MnMajor, KMajor, 64, 64);
    check_product!(Mma1688Tf32, InOrder, by, MnMajor, MnMajor, 48, 16);
    check_product!(Mma884F64, InOrder, by, KMajor, MnMajor, 16, 8);
    check_product!(Mma1688F64, InOrder, by, MnMajor, KMajor, 16, 8);
    check_product!(Mma16816F64, InOrder, by, KMajor, KMajor, 16, 16);
}

/// Permutations make what a thread multiplies neighbours: rows and columns i and i + 8 of instructions, or k and k + 4.
#[test]
fn operands_are_read_in_vectors() {
    type PairsOfRows = (L!((8, 2):(2, 1)), L!((8, 2, 2):(2, 16, 1)));
    let by = (VectorsAlongMn::<2>::new(), VectorsAlongMn::<2>::new());
    check_product!(Mma1688Tf32, PairsOfRows, by, MnMajor, MnMajor, 64, 16);
    check_product!(Mma1688F64, PairsOfRows, by, MnMajor, MnMajor, 32, 8);
    let by = (VectorsAlongMn::<2>::new(), ByElement);
    check_product!(Mma1688Tf32, PairsOfRows, by, MnMajor, KMajor, 32, 16);
    type PairsOfK = (L!(16:1), L!(16:1), L!((4, 2):(2, 1)));
    let by = (VectorsAlongK::<2>::new(), VectorsAlongK::<2>::new());
    check_product!(Mma1688F64, PairsOfK, by, KMajor, KMajor, 16, 16);
    let by = (ByElement, VectorsAlongK::<2>::new());
    check_product!(Mma1688F64, PairsOfK, by, MnMajor, KMajor, 32, 8);
}

/// Two warpgroups below one another, and an N that is no power of two.
#[test]
fn accumulators_of_wgmma_are_partitioned_by_the_warpgroups() {
    type Product = TiledMma<Wgmma<96, bf16>, L!((2, 1):(1, 0))>;
    type Tile = L!((256, 96):(1@0, 1@1));
    let c = vec![0u32; 256 * 96];
    // SAFETY: the extents stay inside the memory, which nothing accesses.
    let c = unsafe { Tensor::new(c.as_ptr(), RowMajor::new([256, 96], 96)) };
    let c = c.local_tile::<Tile>((0, 0));
    for thread in 0..256u32 {
        let mine = Product::thread_slice(thread).partition_c(c);
        let (warpgroup, warp, lane) = (thread / 128, thread % 128 / 32, thread % 32);
        for v in 0..96u32 {
            let row = 128 * (v / 48) + 64 * warpgroup + 16 * warp + 8 * (v % 4 / 2) + lane / 4;
            let column = 8 * (v % 48 / 4) + 2 * (lane % 4) + v % 2;
            let expected = [row, column].map(|x| x as i32);
            assert_eq!(mine.bound().coordinate(v as usize), expected);
        }
    }
}

/// Rows and columns that copies of four do not divide: what is outside is zeros in shared memory, and not written behind
/// the matrix.
#[test]
fn copies_stop_at_the_edges_of_a_matrix() {
    type Tile = L!((16, 32):(1@0, 1@1));
    type Threads8x8 = L!((8, 8):(8, 1));
    type Load = TiledCopy<CpAsync<4>, Threads8x8, L!((1, 4):(0, 1))>;
    type Store = TiledCopy<Width<4>, Threads8x8, L!((1, 4):(0, 1))>;
    for [rows, columns] in [[16, 32], [13, 28], [1, 4], [0, 0]] {
        let from = vec![1.0f32; 16 * 32];
        let to = vec![f32::NAN; 16 * 32];
        let begin = Global::from_ptr(from.as_ptr());
        let target = GlobalMut::from_ptr(to.as_ptr().cast_mut());
        launch(64, 1, 1, || {
            let tile: Shared<f32> = SharedMemory::new().take(512);
            // SAFETY: the matrices have the extents, and the tile 512 elements.
            let (from, to, tile) = unsafe {
                let from = Tensor::new(begin, RowMajor::new([rows, columns], 32));
                let to = Tensor::new(target, RowMajor::new([rows + 1, columns], 32));
                (
                    from,
                    to,
                    Tensor::new(tile, Fixed::<L!((16, 32):(32, 1))>::new()),
                )
            };
            let thread = thread_idx().of_block::<Threads<64>>();
            let load = Load::thread_slice(thread);
            copy(
                &load.partition(from.local_tile::<Tile>((0, 0))),
                &load.partition(tile),
            );
            cp_async_commit();
            cp_async_wait::<0>();
            sync_threads();
            let store = Store::thread_slice(thread);
            copy(
                &store.partition(tile),
                &store.partition(to.local_tile::<Tile>((0, 0))),
            );
            let is_first_row = |v: usize| v < 4;
            let first = load.partition(from.local_tile::<Tile>((0, 0)));
            if rows == 16 {
                // The second rows of the threads become zeros.
                sync_threads();
                copy_if(&first, &load.partition(tile), is_first_row);
                cp_async_commit();
                cp_async_wait::<0>();
                sync_threads();
                copy(
                    &store.partition(tile),
                    &store.partition(to.local_tile::<Tile>((0, 0))),
                );
            }
        })
        .unwrap();
        for (i, found) in to.iter().enumerate() {
            let (row, column) = ((i / 32) as i32, (i % 32) as i32);
            if row <= rows && column < columns {
                let is_copied = row < rows && (rows < 16 || row < 8);
                assert_eq!(
                    *found,
                    if is_copied { 1.0 } else { 0.0 },
                    "{rows}×{columns}: {row}, {column}"
                );
            } else {
                assert!(found.is_nan(), "{rows}×{columns}: {row}, {column}");
            }
        }
    }
}

#[test]
fn warpgroups_multiply_tiles_in_shared_memory() {
    type ProductOfRows = TiledMma<Wgmma<96, bf16, bf16, KMajor, MnMajor>, L!((2, 1):(1, 0))>;
    type TileC = L!((256, 96):(1@0, 1@1));
    let value_a = |row: usize, k: usize| small(row * 131 + k * 7);
    let value_b = |row: usize, k: usize| small(row * 37 + k * 1013 + 5);
    let c = vec![f32::NAN; 256 * 96];
    let to = GlobalMut::from_ptr(c.as_ptr().cast_mut());
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let a = OperandTile::<bf16, KMajor, 256, 64>::take(&mut shared);
        let b = OperandTile::<bf16, MnMajor, 96, 64, 64>::take(&mut shared);
        fill(a, value_a);
        fill(b, value_b);
        fence_async_shared();
        sync_threads();
        let mma = ProductOfRows::thread_slice(thread_idx().of_block::<Threads<256>>());
        let mut sums = Accumulator::new_array::<2>();
        for accumulate in [false, true] {
            let group = warpgroup_arrive();
            // SAFETY: the tiles are written, and no thread writes to them again.
            unsafe { gemm_shared(&group, mma, a, b, &mut sums, accumulate) };
            group.commit();
        }
        // SAFETY: C has as many elements.
        let c = unsafe { Tensor::new(to, RowMajor::new([256, 96], 96)) };
        let sums = wait_c::<_, _, _, TileC, 2>(mma, sums);
        mma.partition_c_in_vectors::<2, _>(c.local_tile::<TileC>((0, 0)))
            .store(&sums);
    })
    .unwrap();
    for (i, found) in c.iter().enumerate() {
        let (row, column) = (i / 96, i % 96);
        let sum: i32 = (0..64).map(|k| value_a(row, k) * value_b(column, k)).sum();
        assert_eq!(*found, 2.0 * sum as f32, "({row}, {column})");
    }
}
