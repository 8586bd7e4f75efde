//! The GEMM family for CUDA cores: `C = alpha·A·B + beta·C` in f32.
//!
//! A block computes a 128×128 tile of C, a thread 8×8 of it. Tiles of A and B go from global memory
//! through registers into one of two shared-memory stages, so that the next tile's loads are under
//! way while this one is multiplied.

use cutlet_device::{
    DeviceData, Global, GlobalMut, Shared, SharedMemory, block_idx, fma, instantiate, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{
    ColMajor, Coord, Fixed, Fragment, L, MatrixInner, Raster, RowMajor, StaticLayout, Tensor,
    ThreadValue, Tv, covers_exactly, each,
};

/// The tile of C that a block computes: (m, n).
pub type TileC = L!((128, 128):(1@0, 1@1));
/// A step's tile of A as (m, k), or of B as (n, k).
pub type TileAb = L!((128, 8):(1@0, 1@1));
/// How such a tile lies in shared memory: for each k its 128 rows, and four elements of padding, so
/// that a warp that writes 16 rows along k meets no bank twice.
type Stored = L!((128, 8):(1, 132));
/// Elements of a stage.
const STAGE: usize = Stored::LAYOUT.cosize() as usize;

/// Who computes what of C: a warp is 4×8 threads, a block 4×2 warps, and a thread has two groups of
/// four rows by two groups of four columns, the groups 64 apart.
type ThreadsC<const WIDTH: usize> = Tv<
    L!(((8, 4), (2, 4)):((4@1, 4@0), (32@1, 16@0))),
    L!(((4, 2), (4, 2)):((1@1, 64@1), (1@0, 64@0))),
    WIDTH,
>;
/// The rows of A that a thread of C needs, for each k of a step.
type ThreadsA =
    Tv<L!(((8, 4), (2, 4)):((0@0, 4@0), (0@0, 16@0))), L!(((4, 2), 8):((1@0, 64@0), 1@1)), 4>;
/// The columns of B that a thread of C needs, for each k of a step.
type ThreadsB =
    Tv<L!(((8, 4), (2, 4)):((4@0, 0@0), (32@0, 0@0))), L!(((4, 2), 8):((1@0, 64@0), 1@1)), 4>;
/// A thread's values of A or B at one k.
type Column = L!(8:1);
/// The k of one step.
type Step = L!(8:1);
/// A thread's products.
type Sums = <ThreadsC<1> as ThreadValue>::Val;

const _: () = assert!(covers_exactly::<ThreadsC<4>>([128, 128]));

/// Extents and factors of `C[m, n] = alpha · Σₖ A[m, k]·B[k, n] + beta · C[m, n]`; leading dimensions
/// in elements. C is row-major; where `beta` is 0, it is not read.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Problem {
    /// Leading dimension of A.
    pub lda: i64,
    /// Leading dimension of B.
    pub ldb: i64,
    /// Leading dimension of C.
    pub ldc: i64,
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old C.
    pub beta: f32,
    /// Rows of tiles that blocks visit together: the group of the [`Raster`].
    pub group: u32,
}

/// How an operand lies in global memory, and how a block of 256 threads copies a step's tile of it.
pub trait Operand {
    /// From (row, k) to memory.
    type Matrix: MatrixInner;
    /// Who reads what of a tile.
    type Read: ThreadValue;
    /// The same, with the access width that shared memory allows.
    type Write: ThreadValue;

    /// An operand of `extent` = (rows, k) with leading dimension `ld`.
    fn matrix(extent: Coord, ld: i64) -> Self::Matrix;
}

/// An operand with consecutive k (row-major A, column-major B), read `WIDTH` at a time.
pub struct AlongK<const WIDTH: usize>;
/// An operand with consecutive rows (column-major A, row-major B), read `WIDTH` at a time.
pub struct AlongRows<const WIDTH: usize>;

macro_rules! operand {
    ($operand:ty, $matrix:ty, $thr:ty, $val:ty, read $read:literal, write $write:literal) => {
        impl Operand for $operand {
            type Matrix = $matrix;
            type Read = Tv<$thr, $val, $read>;
            type Write = Tv<$thr, $val, $write>;

            #[inline(always)]
            fn matrix(extent: Coord, ld: i64) -> $matrix {
                <$matrix>::new(extent, ld)
            }
        }
        const _: () = assert!(covers_exactly::<<$operand as Operand>::Read>([128, 8]));
    };
}
operand!(AlongK<4>, RowMajor, L!((2, 128):(4@1, 1@0)), L!(4:1@1), read 4, write 1);
operand!(AlongK<1>, RowMajor, L!((8, 32):(1@1, 1@0)), L!(4:32@0), read 1, write 1);
operand!(AlongRows<4>, ColMajor, L!((32, 8):(4@0, 1@1)), L!(4:1@0), read 4, write 4);
operand!(AlongRows<1>, ColMajor, L!((128, 2):(1@0, 1@1)), L!(4:2@1), read 1, write 1);

/// Shared memory of a block: two stages of a tile of A and of B.
const SHARED: u32 = (2 * 2 * STAGE * size_of::<f32>()) as u32;

/// One block's tile of C; the grid has one block for each tile.
///
/// # Safety
/// The matrices must be as the problem says, and aligned for the operands' widths and `WIDTH`.
#[inline(always)]
unsafe fn gemm<A: Operand, B: Operand, const WIDTH: usize>(
    a: Global<f32>,
    b: Global<f32>,
    c: GlobalMut<f32>,
    problem: Problem,
) {
    let Problem {
        lda,
        ldb,
        ldc,
        m,
        n,
        k,
        alpha,
        beta,
        group,
    } = problem;
    let thr = thread_idx();

    // SAFETY: the launcher promises that the matrices are as the problem says.
    let (a, b, c) = unsafe {
        (
            Tensor::new(a, A::matrix([m, k], lda)),
            Tensor::new(b, B::matrix([n, k], ldb)),
            Tensor::new(c, RowMajor::new([m, n], ldc)),
        )
    };
    let (tile_m, tile_n) = Raster::new(c.tiles::<TileC>(), group).tile(block_idx().x);

    let mut shared = SharedMemory::new();
    let stages_a: Shared<f32> = shared.take(2 * STAGE);
    let stages_b: Shared<f32> = shared.take(2 * STAGE);
    let stage = |step: u32| {
        let first = (step % 2) as i64 * STAGE as i64;
        // SAFETY: each of the two stages holds one tile; barriers order their writes and reads.
        unsafe {
            (
                Tensor::new(stages_a.offset(first), Fixed::<Stored>::new()),
                Tensor::new(stages_b.offset(first), Fixed::<Stored>::new()),
            )
        }
    };
    // Beyond the last step no element exists, so that nothing is read and zeros come back.
    let load = |step: u32| {
        let a = a
            .local_tile::<TileAb>((tile_m, step))
            .partition::<A::Read>(thr);
        let b = b
            .local_tile::<TileAb>((tile_n, step))
            .partition::<B::Read>(thr);
        (a.load(0.0), b.load(0.0))
    };
    let mut next = load(0);
    let mut sums = Fragment::<f32, Sums>::filled(0.0);
    for step in 0..a.tiles::<TileAb>()[1] {
        let (stage_a, stage_b) = stage(step);
        stage_a.partition::<A::Write>(thr).store(&next.0);
        stage_b.partition::<B::Write>(thr).store(&next.1);
        sync_threads();

        next = load(step + 1);

        let mine_a = stage_a.partition::<ThreadsA>(thr);
        let mine_b = stage_b.partition::<ThreadsB>(thr);
        each::<Step>(|k| {
            let (mut a, mut b) = (
                Fragment::<f32, Column>::filled(0.0),
                Fragment::<f32, Column>::filled(0.0),
            );
            mine_a.load_into(&mut a, k * Column::SIZE);
            mine_b.load_into(&mut b, k * Column::SIZE);
            outer_product(&a, &b, &mut sums);
        });
    }

    let c = c
        .local_tile::<TileC>((tile_m, tile_n))
        .partition::<ThreadsC<WIDTH>>(thr);
    if beta == 0.0 {
        c.store(&sums.map(|_, sum| alpha * sum));
    } else {
        c.update(|v, old| fma(alpha, sums.get(v), beta * old));
    }
}

/// `sums[i, j] += a[i]·b[j]`, the columns running fastest.
#[inline(always)]
fn outer_product(
    a: &Fragment<f32, Column>,
    b: &Fragment<f32, Column>,
    sums: &mut Fragment<f32, Sums>,
) {
    each::<Sums>(|v| {
        let (i, j) = (v / Column::SIZE, v % Column::SIZE);
        sums.set(v, fma(a.get(i), b.get(j), sums.get(v)));
    });
}

macro_rules! instances {
    ($a:ident, $b:ident: $aligned:ident, $any:ident) => {
        instantiate! {
            /// Operands and C aligned to 16 bytes, with leading dimensions and extents to match.
            #[kernel(threads = 256, min_blocks = 2, shared = SHARED)]
            pub unsafe fn $aligned(
                a: Global<f32>,
                b: Global<f32>,
                c: GlobalMut<f32>,
                problem: Problem,
            ) = gemm::<$a<4>, $b<4>, 4>;

            /// Any alignment, any leading dimension.
            #[kernel(threads = 256, min_blocks = 2, shared = SHARED)]
            pub unsafe fn $any(
                a: Global<f32>,
                b: Global<f32>,
                c: GlobalMut<f32>,
                problem: Problem,
            ) = gemm::<$a<1>, $b<1>, 1>;
        }
    };
}

/// A and B row-major.
#[cfg(any(not(target_arch = "nvptx64"), gemm_simt))]
pub mod row_row {
    use super::*;

    instances!(AlongK, AlongRows: gemm_f32_row_row_x4, gemm_f32_row_row_x1);
}

/// A row-major, B column-major.
#[cfg(any(not(target_arch = "nvptx64"), gemm_simt))]
pub mod row_col {
    use super::*;

    instances!(AlongK, AlongK: gemm_f32_row_col_x4, gemm_f32_row_col_x1);
}

/// A column-major, B row-major.
#[cfg(any(not(target_arch = "nvptx64"), gemm_simt))]
pub mod col_row {
    use super::*;

    instances!(AlongRows, AlongRows: gemm_f32_col_row_x4, gemm_f32_col_row_x1);
}

/// A and B column-major.
#[cfg(any(not(target_arch = "nvptx64"), gemm_simt))]
pub mod col_col {
    use super::*;

    instances!(AlongRows, AlongK: gemm_f32_col_col_x4, gemm_f32_col_col_x1);
}
