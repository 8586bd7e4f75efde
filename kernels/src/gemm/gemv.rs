//! gemv: a matrix times a few vectors. Memory brings the matrix once for each tile of vectors. Kernels named `any` take
//! rows that begin anywhere.
//!
//! A block has two to eight rows of the matrix. Its threads lie along k: each multiplies its columns of the rows with the
//! same elements of the vectors, and the block adds the threads' sums at the end. No tensor core is used, because memory
//! bounds the time.
//!
//! Some kernels normalise the vectors by RMSNorm: `Σ matrix[r, k] · x[k] · weight[k] / √(mean of x² + ε)`. The squares are
//! one more sum, so the norm takes no launch and no pass of its own.

use cutlet_device::{
    DeviceData, Global, GlobalMut, SharedArray, SharedStorage, ThreadGroup, ThreadIdx, ThreadsOf,
    WARP_SIZE, block_idx, fma, grid_dependency_wait, instantiate, lane_idx, launch_dependents,
    rsqrt_approx, sync_threads, thread_idx, warp_idx, warp_sum,
};
use cutlet_layout_core::{
    AnyStrides, Fragment, FragmentLayout, L, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, each,
    tiles,
};

use super::epilogue::{ElementC, Epilogue, FusedWithErf, silu};

/// Threads of a block.
pub const THREADS: u32 = 256;
/// Warps of a block.
const WARPS: u32 = THREADS / WARP_SIZE;

/// Extents and strides of the operands, in elements.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct GemvArgs {
    /// From one row of the matrix to the next.
    pub ld_matrix: i64,
    /// From one vector to the next.
    pub ld_vectors: i64,
    /// From one row of C to the next, and from one column to the next.
    pub strides_c: [i64; 2],
    /// Rows of the matrix and of C.
    pub rows: i32,
    /// Vectors, which are columns of C.
    pub vectors: i32,
    /// Columns of the matrix.
    pub k: i32,
    /// Unused.
    pub padding: u32,
}

/// RMSNorm of the vectors, if there is one.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct VectorNorm<T: DeviceData> {
    /// A weight for each column of the vectors. Not read without a norm.
    pub weights: Global<T>,
    /// Added to the mean of the squares.
    pub epsilon: f32,
    /// Not 0 if there is a norm.
    pub exists: u32,
}

/// How a block of 256 threads covers a k-tile.
pub trait Shape {
    /// Whether kernels of the shape can normalise vectors.
    const NORMALISES: bool;
    /// Rows of the matrix that a block has.
    const ROWS: usize;
    /// Vectors that a block multiplies.
    const VECTORS: usize;
    /// Columns of a k-tile.
    const K: usize;
    /// Elements of an access. Rows and vectors begin at multiples of it, and k is a multiple of it.
    const WIDTH: usize;
    /// The tile of the matrix: (rows, k).
    type Matrix: StaticLayout;
    /// A thread's elements of it: (columns, rows).
    type OfMatrix: ThreadValue;
    /// The tile of the vectors: (vectors, k).
    type Vectors: StaticLayout;
    /// A thread's elements of it: (columns, vectors).
    type OfVectors: ThreadValue;
    /// A thread's columns.
    type Columns: StaticLayout;
    /// The tile of C, whose elements each thread has a part of: (rows, vectors).
    type Sums: FragmentLayout;
    /// The thread that stores each of them.
    type OfSums: ThreadValue;
    /// The sums of a warp: (1, sums).
    type OfWarp: StaticLayout;
    /// A lane's sums of a warp, which are all.
    type OfLane: ThreadValue;
    /// The sums of all warps: (warps, sums).
    type OfWarps: StaticLayout;
    /// A thread's sums of all warps, which are those of an element of C.
    type OfElement: ThreadValue;
}

/// How a block has gates and ups, which are rows of the matrix by turns.
pub trait GatedShape: Shape {
    /// A thread's sums of all warps: those of a gate, and then those of its up.
    type OfGate: ThreadValue;
    /// The tile of C: (pairs of rows, vectors).
    type Gated: StaticLayout;
    /// The thread that stores each of its elements.
    type OfGated: ThreadValue;
}

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident: $rows:literal rows, $vectors:literal vectors, $sums:literal sums,
        k $k:literal, $count:literal columns of $columns:ty, $each:literal apart, width $width:literal $(, $normalises:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Shape for $name {
            const NORMALISES: bool = shape!(@$($normalises)?);
            const ROWS: usize = $rows;
            const VECTORS: usize = $vectors;
            const K: usize = $k;
            const WIDTH: usize = $width;
            type Matrix = L!(($rows, $k):(1@0, 1@1));
            type OfMatrix = Tv<L!(256:$each@1), ($columns, L!($rows:1@0)), $width>;
            type Vectors = L!(($vectors, $k):(1@0, 1@1));
            type OfVectors = Tv<L!(256:$each@1), ($columns, L!($vectors:1@0)), $width>;
            type Columns = L!($count:1);
            type Sums = L!(($rows, $vectors):(1@0, 1@1));
            type OfSums = Tv<L!(($rows, $vectors):(1@0, 1@1)), L!(1:1@0)>;
            type OfWarp = L!((1, $sums):(1@0, 1@1));
            type OfLane = Tv<L!(1:1@0), L!($sums:1@1)>;
            type OfWarps = L!((8, $sums):(1@0, 1@1));
            type OfElement = Tv<L!($sums:1@1), L!(8:1@0)>;
        }
    };
    (@) => { false };
    (@normalises) => { true };
}
shape! {
    /// Eight neighbours an access, one vector.
    Eights1: 4 rows, 1 vectors, 4 sums,
        k 2048, 8 columns of L!(8:1@1), 8 apart, width 8, normalises
}
shape! {
    /// The same for two rows, of which a block has four times as many columns at a time.
    TwoOfEights1: 2 rows, 1 vectors, 2 sums,
        k 8192, 32 columns of (L!(8:1@1), L!(4:2048@1)), 8 apart, width 8
}
shape! {
    /// Four neighbours an access, one vector.
    Fours1: 8 rows, 1 vectors, 8 sums,
        k 1024, 4 columns of L!(4:1@1), 4 apart, width 4
}
shape! {
    /// Rows that begin anywhere, one vector.
    Ones1: 8 rows, 1 vectors, 8 sums,
        k 512, 2 columns of L!(2:256@1), 1 apart, width 1
}
shape! {
    /// Rows that begin anywhere, four vectors.
    Ones4: 8 rows, 4 vectors, 32 sums,
        k 512, 2 columns of L!(2:256@1), 1 apart, width 1
}
impl GatedShape for Eights1 {
    type OfGate = Tv<L!(2:2@1), L!((8, 2):(1@0, 1@1))>;
    type Gated = L!((2, 1):(1@0, 1@1));
    type OfGated = Tv<L!(2:1@0), L!(1:1@0)>;
}

/// The most rows of a shape.
const MOST_ROWS: usize = 8;
/// The most vectors of a shape.
const MOST_VECTORS: usize = 4;
/// What the warps of a block add up.
#[derive(Clone, Copy, SharedStorage)]
pub struct OfWarps {
    /// The sums of each warp.
    sums: SharedArray<f32, { WARPS as usize * MOST_ROWS * MOST_VECTORS }>,
    /// The sum of each warp's squares of a vector's elements.
    squares: SharedArray<f32, { WARPS as usize }>,
}

/// `C[r, v] = epilogue(Σ matrix[r, k] · vectors[v, k])`. The grid's x counts tiles of rows, and its y tiles of vectors.
///
/// # Safety
/// The operands must have these extents and strides. C must overlap neither the matrix nor the vectors, and the
/// epilogue's operands must have C's extents. Rows, vectors and k must be as
/// [`Shape::WIDTH`] says. The block must have [`THREADS`] threads, and the grid a block for each tile of C.
#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument of the kernels"
)]
unsafe fn gemv<S: Shape, T: ElementC<Acc = f32>>(
    thread: ThreadIdx<impl ThreadGroup>,
    matrix: Global<T>,
    vectors: Global<T>,
    c: GlobalMut<T>,
    args: GemvArgs,
    epilogue: FusedWithErf<T>,
    norm: VectorNorm<T>,
    of_warps: OfWarps,
) {
    // SAFETY: as promised by the caller.
    let (sums, c) = unsafe {
        (
            multiply::<S, T>(thread, matrix, vectors, &args, &norm),
            Tensor::new(
                c,
                AnyStrides::new([args.rows, args.vectors], args.strides_c),
            ),
        )
    };
    if let Some((thread, sums)) = add_up::<S, S::OfElement>(thread, &sums, of_warps) {
        let scale = scale::<S, T>(of_warps, args.k, &norm);
        let to = c
            .local_tile::<S::Sums>((block_idx().x, block_idx().y))
            .partition_partial::<S::OfSums>(thread);
        let sum = total(&sums, 0) * scale;
        to.store_with(|v| T::narrow(epilogue.apply(sum, None, to.bound().coordinate(v))));
    }
}

/// `C[r, v] = silu(gate) · up`, where gate and up are what [`gemv`] makes of rows `2r` and `2r + 1` of the matrix.
///
/// # Safety
/// As [`gemv`], for a C of half as many rows. The matrix has an even number of them.
#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument of the kernels"
)]
unsafe fn gemv_swiglu<S: GatedShape, T: ElementC<Acc = f32>>(
    thread: ThreadIdx<impl ThreadGroup>,
    matrix: Global<T>,
    vectors: Global<T>,
    c: GlobalMut<T>,
    args: GemvArgs,
    epilogue: FusedWithErf<T>,
    norm: VectorNorm<T>,
    of_warps: OfWarps,
) {
    // SAFETY: as promised by the caller.
    let (sums, c) = unsafe {
        (
            multiply::<S, T>(thread, matrix, vectors, &args, &norm),
            Tensor::new(
                c,
                AnyStrides::new([args.rows / 2, args.vectors], args.strides_c),
            ),
        )
    };
    if let Some((thread, sums)) = add_up::<S, S::OfGate>(thread, &sums, of_warps) {
        let scale = scale::<S, T>(of_warps, args.k, &norm);
        let to = c
            .local_tile::<S::Gated>((block_idx().x, block_idx().y))
            .partition_partial::<S::OfGated>(thread);
        let [gate, up] = [0, 1].map(|row| total(&sums, row * WARPS as usize) * scale);
        to.store_with(|v| {
            let at = to.bound().coordinate(v);
            let [gate, up] = [gate, up].map(|sum| epilogue.apply(sum, None, at));
            T::narrow(silu(gate) * up)
        });
    }
}

/// A thread's share of the block's sums: those of its columns.
#[derive(Clone, Copy)]
struct Sums<S: Shape> {
    products: Fragment<f32, S::Sums>,
    /// Of the elements of a vector that is normalised.
    squares: f32,
}

/// Multiplies the thread's columns.
///
/// # Safety
/// As [`gemv`].
#[inline(always)]
unsafe fn multiply<S: Shape, T: ElementC<Acc = f32>>(
    thread: ThreadIdx<impl ThreadGroup>,
    matrix: Global<T>,
    vectors: Global<T>,
    args: &GemvArgs,
    norm: &VectorNorm<T>,
) -> Sums<S> {
    launch_dependents();
    grid_dependency_wait();
    // Without a norm, no weight exists.
    let weights = if norm.exists != 0 { args.k } else { 0 };
    // SAFETY: the launcher promises extents, strides and alignment. The weights are those of every vector.
    let (matrix, vectors, weights) = unsafe {
        (
            Tensor::new(matrix, RowMajor::new([args.rows, args.k], args.ld_matrix)),
            Tensor::new(
                vectors,
                RowMajor::new([args.vectors, args.k], args.ld_vectors),
            ),
            Tensor::new(norm.weights, RowMajor::new([args.vectors, weights], 0)),
        )
    };
    let [_, k_tiles] = tiles::<S::Matrix>([args.rows, args.k]);
    let mut sums = Sums::<S> {
        products: Fragment::filled(0.0),
        squares: 0.0,
    };
    for k_tile in 0..k_tiles {
        let of_matrix = matrix
            .local_tile::<S::Matrix>((block_idx().x, k_tile))
            .partition::<S::OfMatrix>(thread)
            .load(T::default());
        let at = (block_idx().y, k_tile);
        let of_vectors = |tensor: Tensor<Global<T>, RowMajor>, missing: T| {
            let mine = tensor
                .local_tile::<S::Vectors>(at)
                .partition::<S::OfVectors>(thread);
            mine.load(missing).map(|_, element| element.widen())
        };
        let mut x = of_vectors(vectors, T::default());
        if S::NORMALISES {
            // A branch on the norm would keep the weights from being loaded with the other elements.
            let weights = of_vectors(weights, T::narrow(1.0));
            sums.squares = x.fold(sums.squares, |sum, x| fma(x, x, sum));
            x = x.map(|v, x| x * weights.get(v));
        }
        multiply_add::<S, T>(&mut sums.products, &of_matrix, &x);
    }
    sums
}

/// The elements of a thread's part of a tile.
type Elements<T, P> = Fragment<T, <P as ThreadValue>::Val>;

/// Adds the products of a thread's elements to its sums.
#[inline(always)]
fn multiply_add<S: Shape, T: ElementC<Acc = f32>>(
    sums: &mut Fragment<f32, S::Sums>,
    matrix: &Elements<T, S::OfMatrix>,
    vectors: &Elements<f32, S::OfVectors>,
) {
    let columns = const { S::Columns::SIZE };
    *sums = sums.map(|at, sum| {
        let (row, vector) = (at % S::ROWS, at / S::ROWS);
        let mut sum = sum;
        each::<S::Columns>(|column| {
            let element = matrix.get(column + columns * row).widen();
            sum = fma(element, vectors.get(column + columns * vector), sum);
        });
        sum
    });
}

/// A thread that has sums of all warps, and these.
type OfThread<P> = (
    ThreadIdx<ThreadsOf<P>>,
    Fragment<f32, <P as ThreadValue>::Val>,
);

/// A number of a warp, and the lane's part of it, which is all.
type OneOfWarp = L!((1, 1):(1@0, 1@1));
type OneOfLane = Tv<L!(1:1@0), L!(1:1@1)>;

/// Adds the sums of all threads of a warp, in an order that does not depend on the run. The first threads of the block get
/// those of all warps that `P` gives them.
#[inline(always)]
fn add_up<S: Shape, P: ThreadValue>(
    thread: ThreadIdx<impl ThreadGroup>,
    sums: &Sums<S>,
    of_warps: OfWarps,
) -> Option<OfThread<P>> {
    const {
        assert!(
            S::Sums::SIZE <= MOST_ROWS * MOST_VECTORS,
            "each warp has a place for each sum"
        )
    }
    let count = const { S::Sums::SIZE as i32 };
    let rows = RowMajor::new([WARPS as i32, count], i64::from(count));
    // SAFETY: there is a place for each sum of each warp.
    let to = unsafe { Tensor::new(*of_warps.sums, rows) };
    let products = sums.products.map(|_, sum| warp_sum(sum));
    if S::NORMALISES {
        // SAFETY: there is a place for each warp.
        let to = unsafe { Tensor::new(*of_warps.squares, RowMajor::new([WARPS as i32, 1], 1)) };
        let squares = warp_sum(sums.squares);
        if lane_idx().is_first() {
            to.local_tile::<OneOfWarp>((warp_idx(), 0u32))
                .partition::<OneOfLane>(0u32)
                .store_with(|_| squares);
        }
    }
    if lane_idx().is_first() {
        to.local_tile::<S::OfWarp>((warp_idx(), 0u32))
            .partition::<S::OfLane>(0u32)
            .store_with(|v| products.get(v));
    }
    sync_threads();
    thread.among_first::<ThreadsOf<P>>().map(|thread| {
        let mine = to
            .local_tile::<S::OfWarps>((0u32, 0u32))
            .partition::<P>(thread)
            .load(0.0);
        (thread, mine)
    })
}

/// What the norm multiplies a vector by, besides its weights. The warps' squares have been [added up](add_up).
#[inline(always)]
fn scale<S: Shape, T: DeviceData>(of_warps: OfWarps, k: i32, norm: &VectorNorm<T>) -> f32 {
    if !S::NORMALISES || norm.exists == 0 {
        return 1.0;
    }
    let mut squares = 0.0;
    each::<L!(8:1)>(|warp| {
        // SAFETY: each warp has stored its sum.
        squares += unsafe { of_warps.squares.load(warp as i64) };
    });
    rsqrt_approx(squares / k as f32 + norm.epsilon)
}

/// The sum over all warps, of which the first one's is value `first`.
#[inline(always)]
fn total<L: FragmentLayout>(of_warps: &Fragment<f32, L>, first: usize) -> f32 {
    let mut total = 0.0;
    each::<L!(8:1)>(|warp| total += of_warps.get(first + warp));
    total
}

/// Kernels of a function, with the blocks that must fit on a multiprocessor. They limit registers so that no GPU's ptxas
/// spills any.
macro_rules! kernels {
    ($function:ident; $($name:ident = $shape:ty, $element:ty, $blocks:literal blocks, $what:literal;)+) => {
        instantiate! {$(
            #[doc = concat!($what, ".")]
            #[kernel(threads = THREADS, min_blocks = $blocks, cpu = crate::cpu::VECTOR_BODY)]
            pub unsafe fn $name(
                matrix: Global<$element>,
                vectors: Global<$element>,
                c: GlobalMut<$element>,
                args: GemvArgs,
                epilogue: FusedWithErf<$element>,
                norm: VectorNorm<$element>,
                #[shared] of_warps: OfWarps,
            ) = $function::<$shape, $element>(thread_idx(), ..);
        )+}
    };
}
kernels! { gemv;
    gemv_bf16_4x1_16b = Eights1, half::bf16, 4 blocks, "One vector of bf16, in accesses of 16 bytes";
    gemv_bf16_2x1_16b = TwoOfEights1, half::bf16, 2 blocks, "One vector of bf16 and few rows, in accesses of 16 bytes";
    gemv_bf16_8x1_any = Ones1, half::bf16, 3 blocks, "One vector of bf16";
    gemv_bf16_8x4_any = Ones4, half::bf16, 3 blocks, "Four vectors of bf16";
    gemv_f16_4x1_16b = Eights1, half::f16, 4 blocks, "One vector of f16, in accesses of 16 bytes";
    gemv_f16_2x1_16b = TwoOfEights1, half::f16, 2 blocks, "One vector of f16 and few rows, in accesses of 16 bytes";
    gemv_f16_8x1_any = Ones1, half::f16, 3 blocks, "One vector of f16";
    gemv_f16_8x4_any = Ones4, half::f16, 3 blocks, "Four vectors of f16";
    gemv_f32_8x1_16b = Fours1, f32, 3 blocks, "One vector of f32, in accesses of 16 bytes";
    gemv_f32_8x1_any = Ones1, f32, 3 blocks, "One vector of f32";
    gemv_f32_8x4_any = Ones4, f32, 3 blocks, "Four vectors of f32";
}
kernels! { gemv_swiglu;
    gemv_bf16_4x1_swiglu = Eights1, half::bf16, 4 blocks, "One vector of bf16, gated";
    gemv_f16_4x1_swiglu = Eights1, half::f16, 4 blocks, "One vector of f16, gated";
}
