//! Tiled copies and tiled matrix products, compared with plain loops.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::sm80::*;
use cutlet_device::tile::{KMajor, MnMajor, OperandTile};
use cutlet_device::tiled::*;
use cutlet_device::{GlobalMut, MmaInstruction, SharedMemory, Threads, sync_threads, thread_idx};
use cutlet_layout_core::{InOrder, L, RowMajor, Steps, Tensor, TiledMma, each};
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
