//! reduce: sums and extremes of rows, and where the extremes are.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, grid_dependency_wait,
    launch_dependents,
};
use cutlet_layout_core::{Bound, Tensor, ThreadValue, each};
use half::{bf16, f16};

use super::{Held, RowStrides, Shape, Space, THREADS, Team, held, of_access};

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The sum, divided by the number of elements.
    Mean,
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The largest magnitude.
    Amax,
}

/// Extents and strides of a reduction.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ReduceArgs {
    /// Strides of the rows.
    pub x: RowStrides,
    /// Strides of the rows' results.
    pub values: RowStrides,
    /// Strides of the rows' indices.
    pub indices: RowStrides,
    /// The rows.
    pub space: Space,
    /// The [`Reduction`].
    pub reduction: u32,
    /// Not 0 if the results are written.
    pub with_values: u32,
    /// Not 0 if the index of the extreme is written.
    pub with_indices: u32,
    /// If rows hold the extremes of splits of longer rows: elements of a split, else 0.
    pub split_columns: i32,
    /// The places of these extremes in their splits.
    pub splits: Global<i32>,
}

/// A value and its column, as a number that is larger if the value is, or if the values are equal and the column is
/// smaller. NaN is the largest value.
#[inline(always)]
fn ranked(value: f32, column: i32) -> i64 {
    // −0 and 0 are equal.
    let bits = (value + 0.0).to_bits() as i32;
    let order = match value.is_nan() {
        true => i32::MAX,
        false => bits ^ ((bits >> 31) & i32::MAX),
    };
    i64::from(order) << 32 | i64::from(!column as u32)
}

/// The value and the column of a [ranked](ranked) number.
#[inline(always)]
fn value_and_column(rank: i64) -> (f32, i32) {
    let order = (rank >> 32) as i32;
    let bits = order ^ ((order >> 31) & i32::MAX);
    (f32::from_bits(bits as u32), !(rank as i32))
}

/// A sum as the threads of a row combine it.
#[inline(always)]
fn as_bits(sum: f32) -> i64 {
    i64::from(sum.to_bits())
}

/// The sum.
#[inline(always)]
fn of_bits(bits: i64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The first of the largest values that a thread has met, NaN being the largest. Each costs comparisons of floats, and
/// ranks are compared by threads alone.
#[derive(Clone, Copy)]
struct First {
    value: f32,
    column: i32,
}

impl First {
    /// Nothing was met.
    const NONE: First = First {
        value: f32::NEG_INFINITY,
        column: i32::MAX,
    };

    /// With the values of a tile that exist, whose columns are larger than those before.
    #[inline(always)]
    fn and<S: Shape>(mut self, values: &Held<S>, column: impl Fn(usize) -> Option<i32>) -> First {
        each::<<S::Threads as ThreadValue>::Val>(|v| {
            if let Some(column) = column(v) {
                let value = values.get(v);
                if (value > self.value || value.is_nan()) && !self.value.is_nan() {
                    self = First { value, column };
                }
            }
        });
        // The first of values that are all −∞.
        if self.column == i32::MAX
            && let Some(column) = column(0)
        {
            self.column = column;
        }
        self
    }

    /// Its rank among those of other threads.
    #[inline(always)]
    fn rank(self) -> i64 {
        match self.column {
            i32::MAX => i64::MIN,
            column => ranked(self.value, column),
        }
    }
}

/// Reduces each row to a value, and for extremes to the column of the first of them.
///
/// Each column of a row may be the extreme of a split of a longer row. Then the index is the extreme's column in that row.
///
/// # Safety
/// The operands must have these extents, `args.splits` an element for each of `x` if rows are of splits. `x` is aligned for
/// the accesses of `S`.
#[inline(always)]
unsafe fn reduce<S: Shape, T: Float + Default, R: Team<i64>>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    values: GlobalMut<T>,
    indices: GlobalMut<i32>,
    args: ReduceArgs,
    mut team: R,
) {
    grid_dependency_wait();
    launch_dependents();
    const SUM: u32 = Reduction::Sum as u32;
    const MEAN: u32 = Reduction::Mean as u32;
    const MIN: u32 = Reduction::Min as u32;
    const AMAX: u32 = Reduction::Amax as u32;

    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let x = unsafe { Tensor::new(x, space.rows(args.x)) };
    let tiles = x.tiles::<S::Tile>()[1];
    let sign = if args.reduction == MIN { -1.0 } else { 1.0 };
    let (value, column) = if matches!(args.reduction, SUM | MEAN) {
        let mut sum = 0.0;
        for tile in 0..tiles {
            sum = held::<S, _, _>(&x, tile, thread).fold(sum, |sum, x| sum + x);
        }
        let add = |a, b| as_bits(of_bits(a) + of_bits(b));
        let sum = of_bits(team.reduce(thread, as_bits(sum), add));
        match args.reduction {
            SUM => (sum, 0),
            _ => (sum / space.columns as f32, 0),
        }
    } else {
        let mut best = First::NONE;
        for tile in 0..tiles {
            let place = x
                .local_tile::<S::Tile>((block_idx().x, tile))
                .partition::<S::Threads>(thread);
            let values = held::<S, _, _>(&x, tile, thread).map(|_, x| match args.reduction {
                AMAX => x.abs(),
                _ => x * sign,
            });
            best = best.and::<S>(&values, |v| {
                let bound = place.bound();
                let exists = bound.holds(of_access::<S>(v));
                exists.then_some(bound.coordinate(v)[1])
            });
        }
        let (value, column) = value_and_column(team.reduce(thread, best.rank(), i64::max));
        (value * sign, column)
    };
    let place = x
        .local_tile::<S::Tile>((block_idx().x, 0u32))
        .partition::<S::Threads>(thread);
    let [row, first] = place.bound().coordinate(0);
    // The thread of the row's first element writes.
    if first == 0 && place.bound().holds(0) {
        // SAFETY: the launcher promises a result for each row.
        unsafe {
            if args.with_values != 0 {
                values.store(space.begin(args.values, row), T::from_f32(value));
            }
            if args.with_indices != 0 {
                let place = match args.split_columns {
                    0 => column,
                    of_split => {
                        let split = i64::from(row) * i64::from(space.columns) + i64::from(column);
                        column * of_split + args.splits.load(split)
                    }
                };
                indices.store(space.begin(args.indices, row), place);
            }
        }
    }
}

super::row_instances! {
    reduce, {
        T;
        x: Global<T>,
        values: GlobalMut<T>,
        indices: GlobalMut<i32>,
        args: ReduceArgs,
    }, best: i64;
    reduce_f32 of f32, Warp4 Block4: reduce_f32_warp reduce_f32_block reduce_f32_warp_any reduce_f32_block_any;
    reduce_f16 of f16, Warp8 Block8: reduce_f16_warp reduce_f16_block reduce_f16_warp_any reduce_f16_block_any;
    reduce_bf16 of bf16, Warp8 Block8: reduce_bf16_warp reduce_bf16_block reduce_bf16_warp_any reduce_bf16_block_any;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_order_values_and_columns() {
        let values = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            0.0,
            1e-40,
            1.0,
            f32::INFINITY,
            f32::NAN,
        ];
        for pair in values.windows(2) {
            assert!(ranked(pair[0], 0) < ranked(pair[1], 9), "{pair:?}");
        }
        assert!(ranked(2.0, 3) > ranked(2.0, 4));
        assert_eq!(ranked(-0.0, 3), ranked(0.0, 3));
        assert_eq!(value_and_column(ranked(-7.5, i32::MAX)), (-7.5, i32::MAX));
        assert!(value_and_column(ranked(f32::NAN, 1)).0.is_nan());
    }
}
