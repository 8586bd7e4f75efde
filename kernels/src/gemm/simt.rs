//! The GEMM family for CUDA cores: `C = alpha·A·B + beta·C` in f32.
//!
//! A block computes a 128×128 tile of C, a thread 8×8 of its elements. K-tiles of A and B go from global memory through
//! registers to one of two stages in shared memory, so that the next k-tile is loaded while this one is multiplied.

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
/// A k-tile of A as (m, k), or of B as (n, k).
pub type TileAb = L!((128, 8):(1@0, 1@1));
/// A k-tile in shared memory: for each k, 128 rows and four elements of padding. The padding keeps a warp that writes
/// 16 rows along k free of bank conflicts.
type Stored = L!((128, 8):(1, 132));
/// Elements of a stage.
const STAGE: usize = Stored::LAYOUT.cosize() as usize;

/// Thread-value layout of C. A warp is 4×8 threads, a block 4×2 warps. A thread has two groups of four rows by two
/// groups of four columns, the groups 64 apart.
type ThreadsC<const WIDTH: usize> = Tv<
    L!(((8, 4), (2, 4)):((4@1, 4@0), (32@1, 16@0))),
    L!(((4, 2), (4, 2)):((1@1, 64@1), (1@0, 64@0))),
    WIDTH,
>;
/// The rows of A that a thread multiplies, for each k of a k-tile.
type ThreadsA =
    Tv<L!(((8, 4), (2, 4)):((0@0, 4@0), (0@0, 16@0))), L!(((4, 2), 8):((1@0, 64@0), 1@1)), 4>;
/// The columns of B that a thread multiplies, for each k of a k-tile.
type ThreadsB =
    Tv<L!(((8, 4), (2, 4)):((4@0, 0@0), (32@0, 0@0))), L!(((4, 2), 8):((1@0, 64@0), 1@1)), 4>;
/// A thread's values of A or B at one k.
type Column = L!(8:1);
/// The k of a k-tile.
type KOfTile = L!(8:1);
/// A thread's accumulators.
type Accumulators = <ThreadsC<1> as ThreadValue>::Val;

const _: () = assert!(covers_exactly::<ThreadsC<4>>([128, 128]));

/// Extents and factors of `C[m, n] = alpha · Σₖ A[m, k]·B[k, n] + beta · C[m, n]`. C is row-major. Leading dimensions
/// are in elements. If `beta` is 0, C is not read.
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

/// An operand's layout in global memory, and how a block of 256 threads copies its k-tiles.
pub trait Operand {
    /// From (row, k) to memory.
    type Matrix: MatrixInner;
    /// Thread-value layout of a k-tile, for reads from global memory.
    type Read: ThreadValue;
    /// The same for writes to shared memory, with the access width that its layout allows.
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

/// Computes the block's tile of C. The grid has one block for each tile.
///
/// # Safety
/// The matrices must have the problem's extents, and be aligned for the operands' access widths and for `WIDTH`.
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

    // SAFETY: the launcher promises that the matrices have the problem's extents.
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
    let stage = |k_tile: u32| {
        let first = (k_tile % 2) as i64 * STAGE as i64;
        // SAFETY: each of the two stages holds one k-tile. Barriers order their writes and reads.
        unsafe {
            (
                Tensor::new(stages_a.offset(first), Fixed::<Stored>::new()),
                Tensor::new(stages_b.offset(first), Fixed::<Stored>::new()),
            )
        }
    };
    // Beyond the last k-tile there are no elements: nothing is read, and the values are zeros.
    let load = |k_tile: u32| {
        let a = a
            .local_tile::<TileAb>((tile_m, k_tile))
            .partition::<A::Read>(thr);
        let b = b
            .local_tile::<TileAb>((tile_n, k_tile))
            .partition::<B::Read>(thr);
        (a.load(0.0), b.load(0.0))
    };
    let mut next = load(0);
    let mut accumulators = Fragment::<f32, Accumulators>::filled(0.0);
    for k_tile in 0..a.tiles::<TileAb>()[1] {
        let (stage_a, stage_b) = stage(k_tile);
        stage_a.partition::<A::Write>(thr).store(&next.0);
        stage_b.partition::<B::Write>(thr).store(&next.1);
        sync_threads();

        next = load(k_tile + 1);

        let mine_a = stage_a.partition::<ThreadsA>(thr);
        let mine_b = stage_b.partition::<ThreadsB>(thr);
        each::<KOfTile>(|k| {
            let (mut a, mut b) = (
                Fragment::<f32, Column>::filled(0.0),
                Fragment::<f32, Column>::filled(0.0),
            );
            mine_a.load_into(&mut a, k * Column::SIZE);
            mine_b.load_into(&mut b, k * Column::SIZE);
            outer_product(&a, &b, &mut accumulators);
        });
    }

    let c = c
        .local_tile::<TileC>((tile_m, tile_n))
        .partition::<ThreadsC<WIDTH>>(thr);
    if beta == 0.0 {
        c.store(&accumulators.map(|_, acc| alpha * acc));
    } else {
        c.update(|v, old| fma(alpha, accumulators.get(v), beta * old));
    }
}

/// `accumulators[i, j] += a[i]·b[j]`, with j the fastest.
#[inline(always)]
fn outer_product(
    a: &Fragment<f32, Column>,
    b: &Fragment<f32, Column>,
    accumulators: &mut Fragment<f32, Accumulators>,
) {
    each::<Accumulators>(|v| {
        let (i, j) = (v / Column::SIZE, v % Column::SIZE);
        accumulators.set(v, fma(a.get(i), b.get(j), accumulators.get(v)));
    });
}

macro_rules! instances {
    ($a:ident, $b:ident: $aligned:ident, $any:ident) => {
        instantiate! {
            /// For A, B and C whose addresses, leading dimensions and extents are multiples of 16 bytes.
            #[kernel(threads = 256, min_blocks = 2, shared = SHARED)]
            pub unsafe fn $aligned(
                a: Global<f32>,
                b: Global<f32>,
                c: GlobalMut<f32>,
                problem: Problem,
            ) = gemm::<$a<4>, $b<4>, 4>;

            /// For any alignment and any leading dimension.
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
