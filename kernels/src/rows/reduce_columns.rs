//! reduce_columns: sums and extremes of the columns of matrices, whose rows are contiguous.
//!
//! A block has a strip of columns, and some of the rows: a split. Its warps read rows by turns, and combine their results
//! in shared memory. The results of several splits are partials in f32: a matrix with a row for each split, whose
//! columns are reduced once more. So a result does not depend on the order in which blocks run.

use core::array;
use core::hint::select_unpredictable;
use core::marker::PhantomData;

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, SharedArray, SharedStorage, ThreadIdx, Threads,
    block_idx, grid_dependency_wait, instantiate, launch_dependents, max_nan, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{
    AccessWidth, AnyStrides, Bound, Divide, Divisor, Fragment, L, Raster, RowMajor, Tensor,
    ThreadValue, Tv, Width, covers_exactly, tile_extent,
};
use half::{bf16, f16};

use super::reduce::Reduction;
use super::{RowStrides, Rows, Space, THREADS};

/// Columns of a strip: each thread writes the result of one.
pub const STRIP: usize = 256;
/// Rows that a block reads at a time: one a warp.
const WARPS: usize = 8;
/// Rows that a thread reads before it combines them.
const UNROLLED: usize = 4;
/// Rows of a step of a split.
pub const STEP: usize = WARPS * UNROLLED;

/// Extents and strides of a reduction of columns.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ReduceColumnsArgs {
    /// Strides of the matrices that are read.
    pub x: RowStrides,
    /// Strides of their rows.
    pub x_rows: RowStrides,
    /// Strides of the matrices' results.
    pub values: RowStrides,
    /// Elements from a result to the next.
    pub to_next_value: i64,
    /// The matrices.
    pub matrices: Space,
    /// The rows of a matrix.
    pub rows: Space,
    /// The splits of matrices by strips of columns: each block has one.
    pub raster: Raster<Divisor>,
    /// Splits of a matrix.
    pub splits: Divisor,
    /// Steps of a split.
    pub steps: u32,
    /// The [`Reduction`].
    pub reduction: u32,
    /// What sums are divided by.
    pub divisor: f32,
    /// Not 0 if results are partials, a row of them for each split.
    pub to_partials: u32,
}

/// Which columns of a strip a lane has.
pub trait StripShape {
    /// A row of each warp.
    type Threads: ThreadValue;
}

/// The rows that a block reads at a time.
type RowTile = L!((8, 256):(1@0, 1@1));
/// A row of results.
type StripTile = L!((1, 256):(1@0, 1@1));
/// A thread has a column: the results of all warps, or the result.
type OfWarps = Tv<L!(256:1@1), L!(8:1@0)>;
type OfColumn = Tv<L!(256:1@1), L!(1:1@0)>;
const _: () = assert!(
    covers_exactly::<OfWarps>(tile_extent::<RowTile>())
        && covers_exactly::<OfColumn>(tile_extent::<StripTile>()),
    "the threads have each column once"
);

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $threads:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl StripShape for $name {
            type Threads = $threads;
        }
        const _: () = assert!(
            covers_exactly::<$threads>(tile_extent::<RowTile>()),
            "a shape's threads have each element of a tile once"
        );
    )+};
}
shapes! {
    /// Vectors of eight elements.
    Strip8: Tv<L!((32, 8):(8@1, 1@0)), L!(8:1@1), 8>;
    /// Vectors of four elements.
    Strip4: Tv<L!((32, 8):(4@1, 1@0)), L!((4, 2):(1@1, 128@1)), 4>;
    /// Elements of any alignment.
    StripAny: Tv<L!((32, 8):(1@1, 1@0)), L!(8:32@1)>;
}

/// The same elements, accessed one by one.
#[derive(Clone, Copy, Debug)]
pub struct OneByOne<T>(PhantomData<T>);

impl<T: ThreadValue> ThreadValue for OneByOne<T> {
    type Thr = T::Thr;
    type Val = T::Val;
    type Width = Width<1>;
}

/// The results of a strip's warps, a row for each.
#[derive(SharedStorage)]
pub struct OfStrip {
    results: SharedArray<f32, { WARPS * STRIP }>,
}

/// How a thread reads a row.
type Access<S> = <<S as StripShape>::Threads as ThreadValue>::Width;
/// The values of a thread in a row.
type Values<S> = Fragment<f32, <<S as StripShape>::Threads as ThreadValue>::Val>;

/// A reduction as it combines two values.
trait Combine: Copy {
    /// What changes nothing.
    const NEUTRAL: f32;
    /// A single element's part.
    fn of(&self, element: f32) -> f32;
    /// Both together.
    fn combine(&self, a: f32, b: f32) -> f32;
}

/// The sum.
#[derive(Clone, Copy)]
struct Sums;

impl Combine for Sums {
    const NEUTRAL: f32 = 0.0;

    #[inline(always)]
    fn of(&self, element: f32) -> f32 {
        element
    }

    #[inline(always)]
    fn combine(&self, a: f32, b: f32) -> f32 {
        a + b
    }
}

/// The largest of the elements by a sign, or of their magnitudes. NaN is the largest.
#[derive(Clone, Copy)]
struct Extremes {
    sign: f32,
    of_magnitudes: bool,
}

impl Combine for Extremes {
    const NEUTRAL: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn of(&self, element: f32) -> f32 {
        match self.of_magnitudes {
            true => element.abs(),
            false => element * self.sign,
        }
    }

    #[inline(always)]
    fn combine(&self, a: f32, b: f32) -> f32 {
        max_nan(a, b)
    }
}

/// A matrix, and the block's part of it.
struct Part<T> {
    thread: ThreadIdx<Threads<THREADS>>,
    x: Tensor<Global<T>, Rows>,
    strip: u32,
    /// The first step of the split, and the end.
    steps: [u32; 2],
}

impl<T: Float + Default> Part<T> {
    /// The reduction of the thread's column in the split. All threads of the block call it.
    ///
    /// # Safety
    /// The storage is the block's, and no thread uses it meanwhile.
    #[inline(always)]
    unsafe fn reduced<S: StripShape, C: Combine>(&self, by: C, storage: &OfStrip) -> f32 {
        let mut found = Values::<S>::filled(C::NEUTRAL);
        for step in self.steps[0]..self.steps[1] {
            let rows = array::from_fn::<_, UNROLLED, _>(|nth| {
                let tile = step * UNROLLED as u32 + nth as u32;
                self.x
                    .local_tile::<RowTile>((tile, self.strip))
                    .partition::<S::Threads>(self.thread)
            });
            // All loads are on their way before one is waited for.
            let elements = rows.map(|row| row.load(T::default()));
            for (row, elements) in rows.iter().zip(&elements) {
                // All elements of an access exist, or none does.
                let exists = |v| row.bound().holds(v - v % Access::<S>::VALUES);
                found = found.map(|v, before| {
                    let combined = by.combine(before, by.of(elements.get(v).to_f32()));
                    select_unpredictable(exists(v), combined, before)
                });
            }
        }
        // SAFETY: as promised by the caller. There is a row for each warp.
        unsafe {
            let all = RowMajor::new(
                const { [WARPS as i32, STRIP as i32] },
                const { STRIP as i64 },
            );
            let results = Tensor::new(*storage.results, all).local_tile::<RowTile>((0u32, 0u32));
            results
                .partition::<OneByOne<S::Threads>>(self.thread)
                .store_with(|v| found.get(v));
            sync_threads();
            let of_warps = results.partition::<OfWarps>(self.thread).load(0.0);
            of_warps.fold(C::NEUTRAL, |a, b| by.combine(a, b))
        }
    }
}

/// Reduces the columns of each matrix. The results are rounded to `O`, or are partials.
///
/// # Safety
/// The operands must have these extents, and `x` be aligned for the accesses of `S`.
#[inline(always)]
unsafe fn reduce_columns<S: StripShape, T: Float + Default, O: Float>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    values: GlobalMut<O>,
    partials: GlobalMut<f32>,
    args: ReduceColumnsArgs,
    storage: OfStrip,
) {
    const SUM: u32 = Reduction::Sum as u32;
    const MEAN: u32 = Reduction::Mean as u32;
    const MIN: u32 = Reduction::Min as u32;
    const AMAX: u32 = Reduction::Amax as u32;

    grid_dependency_wait();
    launch_dependents();
    let (row_of_blocks, strip) = args.raster.tile(block_idx().x);
    let (matrix, split) = args.splits.div_rem(row_of_blocks);
    let first = split * args.steps;
    let all_steps = (args.rows.rows as u32).div_ceil(const { STEP as u32 });
    let begin = args.matrices.begin(args.x, matrix as i32);
    // SAFETY: the launcher promises the extents.
    let part = unsafe {
        Part {
            thread,
            x: Tensor::new(x.offset(begin), args.rows.rows(args.x_rows)),
            strip,
            steps: [first, all_steps.min(first + args.steps)],
        }
    };
    let sign = if args.reduction == MIN { -1.0 } else { 1.0 };
    // SAFETY: the storage is the block's.
    let result = unsafe {
        match args.reduction {
            SUM | MEAN => part.reduced::<S, _>(Sums, &storage) / args.divisor,
            _ => {
                let by = Extremes {
                    sign,
                    of_magnitudes: args.reduction == AMAX,
                };
                part.reduced::<S, _>(by, &storage) * sign
            }
        }
    };
    // SAFETY: the launcher promises a result for each column, and partials for each split.
    unsafe {
        let row = [1, args.rows.columns];
        if args.to_partials != 0 {
            let begin = i64::from(row_of_blocks) * i64::from(args.rows.columns);
            Tensor::new(partials.offset(begin), RowMajor::new(row, 0))
                .local_tile::<StripTile>((0u32, strip))
                .partition::<OfColumn>(thread)
                .store_with(|_| result);
        } else {
            let begin = args.matrices.begin(args.values, matrix as i32);
            Tensor::new(
                values.offset(begin),
                AnyStrides::new(row, [0, args.to_next_value]),
            )
            .local_tile::<StripTile>((0u32, strip))
            .partition::<OfColumn>(thread)
            .store_with(|_| O::from_f32(result));
        }
    }
}

macro_rules! instances {
    ($($name:ident: $from:ty => $to:ty, $shape:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("Columns of `", stringify!($from), "`, to `", stringify!($to), "` or partials.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                x: Global<$from>,
                values: GlobalMut<$to>,
                partials: GlobalMut<f32>,
                args: ReduceColumnsArgs,
                #[shared] storage: OfStrip,
            ) = reduce_columns::<$shape, $from, $to>(thread_idx(), ..);
        )+}
    };
}
instances! {
    reduce_columns_f32: f32 => f32, Strip4;
    reduce_columns_f32_any: f32 => f32, StripAny;
    reduce_columns_f16: f16 => f16, Strip8;
    reduce_columns_f16_any: f16 => f16, StripAny;
    reduce_columns_bf16: bf16 => bf16, Strip8;
    reduce_columns_bf16_any: bf16 => bf16, StripAny;
    reduce_columns_to_f16: f32 => f16, StripAny;
    reduce_columns_to_bf16: f32 => bf16, StripAny;
}
