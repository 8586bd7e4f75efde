//! Combined rows: a block adds rows with equal indices to each other, so that a row of the table gets one addition of
//! each block.
//!
//! The L2 cache adds to an address one value after the other. Where many rows name the same row of the table, it would
//! be slower than the memory. So a block [groups](super::sets) the rows of its set first. Successive rows with equal
//! indices are a *run*. A thread has a *span* of successive rows, and sums the runs within. A run that goes through
//! several spans belongs to the thread in whose span it begins. The others leave their sums in shared memory for it.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, RedAdd, RedAddElement, Shared, SharedMemory, block_idx,
    sync_threads, thread_idx,
};
use cutlet_layout_core::{
    Bound, Fragment, Gather, L, Partition, RowMajor, StaticLayout, Tensor, ThreadValue, each,
    tile_extent, tile_origin,
};
use half::{bf16, f16};

use super::sets::{Grouped, SPAN, Set};
use super::{RowArgs, Shape};

/// A unit of rows whose sums are in f32.
pub(super) trait Summed: RedAddElement + Default {
    /// A sum of units.
    type Sum: DeviceData + Default;

    /// The sum of this unit alone.
    fn widen(self) -> Self::Sum;
    /// The nearest unit.
    fn narrow(sum: Self::Sum) -> Self;
    /// The sum of both.
    fn plus(a: Self::Sum, b: Self::Sum) -> Self::Sum;
}

macro_rules! summed {
    ($($number:ident),+) => {$(
        impl Summed for $number {
            type Sum = f32;

            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn narrow(sum: f32) -> Self {
                Self::from_f32(sum)
            }

            #[inline(always)]
            fn plus(a: f32, b: f32) -> f32 {
                a + b
            }
        }
    )+};
}
summed!(f32, f16, bf16);

impl<T: Float> Summed for [T; 2]
where
    [T; 2]: RedAddElement + Default,
{
    type Sum = [f32; 2];

    #[inline(always)]
    fn widen(self) -> [f32; 2] {
        let [a, b] = self;
        [a.to_f32(), b.to_f32()]
    }

    #[inline(always)]
    fn narrow(sum: [f32; 2]) -> Self {
        T::pair_from_f32(sum)
    }

    #[inline(always)]
    fn plus([a, b]: [f32; 2], [c, d]: [f32; 2]) -> [f32; 2] {
        [a + c, b + d]
    }
}

/// Bytes of shared memory of a block that combines units `T`.
pub(super) const fn bytes<S: Set, T: Summed>() -> u32 {
    let [spans, units] = spans::<S>();
    Grouped::bytes::<S>() + (spans * units) as u32 * size_of::<T::Sum>() as u32
}

/// Spans of a set, and units of a span.
const fn spans<S: Set>() -> [i32; 2] {
    let [rows, units] = tile_extent::<S::Tile>();
    [rows / SPAN, units]
}

/// Units of a row that a thread has.
const fn width<S: Set>() -> usize {
    <S::Units as ThreadValue>::Val::SIZE
}

/// The first value of the thread's last row.
const fn last_row<S: Set>() -> usize {
    width::<S>() * (SPAN as usize - 1)
}

/// The thread's rows of the table.
type ToRows<S, T> = Partition<RedAdd<T>, Gather<Shared<i32>>, <S as Shape>::Threads>;
/// The thread's units of rows.
type Units<S, T> = Fragment<T, <<S as Shape>::Threads as ThreadValue>::Val>;
/// Sums of the thread's units of one row.
type Sums<S, T> = Fragment<<T as Summed>::Sum, <<S as Set>::Units as ThreadValue>::Val>;

/// Adds row `r` of the source to row `indices[r]` of the table, in each block the rows of one set.
///
/// # Safety
/// Source, indices and table must have these extents, and `first_miss` one element. The block must have this much shared
/// memory.
#[inline(always)]
pub(super) unsafe fn add_combined<S: Set, T: Summed>(
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    let (set, across) = args.tiles.tile(block_idx().x);
    let [first, _] = tile_origin::<S::Tile>((set, across));
    let mut memory = SharedMemory::new();
    // SAFETY: the launcher promises the extents and the memory. There are as many sums as their layout has.
    let (grouped, from, to, sums) = unsafe {
        let grouped = Grouped::new::<S>(&mut memory, indices, first, first_miss, &args);
        let [spans, units] = const { spans::<S>() };
        let extent = [S::ROWS as i32, args.columns];
        let from = Gather::new(grouped.rows, extent, i64::from(args.rows), args.ld_from);
        let to = Gather::new(grouped.keys, extent, args.table_rows, args.ld_to);
        let sums = memory.take((spans * units) as usize);
        (
            grouped,
            Tensor::new(source, from),
            Tensor::new(RedAdd::to(table), to),
            Tensor::new(sums, RowMajor::new([spans, units], i64::from(units))),
        )
    };
    // The rows of the set are all that these tensors have.
    let tile = (0u32, across);
    let from = from
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());
    let values = from.load(T::default());
    // Bound while the rows are loaded, so that the thread does not hold the beginnings of both rows at a time.
    let to = to
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());
    let ends = Ends::of::<S, T>(&grouped, &to);
    let last = add_runs::<S, T>(&values, &to, ends, &sums.partition::<S::Span>(thread_idx()));
    sync_threads();
    if ends.goes_on && !last.leaves {
        // SAFETY: each thread whose span a run enters has left its sum of the run.
        let total = unsafe { with_later_spans::<S, T>(last.sum, &grouped, &sums, &to) };
        add_row::<S, T>(&to, SPAN as usize - 1, &total);
    }
}

/// The last run of a span.
struct LastRun<S: Set, T: Summed> {
    sum: Sums<S, T>,
    /// Whether the run enters the span from the one before, so that its sum was left for another thread.
    leaves: bool,
}

/// Sums the runs of the thread's rows. Adds those that end in the span to the table. The sum of a run that enters from
/// the span before is left in `left`.
#[inline(always)]
fn add_runs<S: Set, T: Summed>(
    values: &Units<S, T>,
    to: &ToRows<S, T>,
    ends: Ends,
    left: &Partition<Shared<T::Sum>, RowMajor, S::Span>,
) -> LastRun<S, T> {
    let goes_on = |row: usize| {
        to.bound()
            .is_same_row(row * width::<S>(), (row + 1) * width::<S>())
    };
    let mut sum = Sums::<S, T>::filled(T::Sum::default());
    let mut leaves = ends.begins_before;
    each::<L!(8:1)>(|row| {
        let is_last = row + 1 == SPAN as usize;
        let begins = row == 0 || !goes_on(row - 1);
        leaves &= row == 0 || !begins;
        sum = sum.map(|unit, before| {
            let value = values.get(row * width::<S>() + unit).widen();
            if begins {
                value
            } else {
                T::plus(before, value)
            }
        });
        let has_end = if is_last {
            !ends.goes_on
        } else {
            !goes_on(row)
        };
        match leaves {
            true if has_end || is_last => left.store(&sum),
            false if has_end => add_row::<S, T>(to, row, &sum),
            _ => (),
        }
    });
    LastRun { sum, leaves }
}

/// Adds a sum to the row of the table that row `row` of the thread's span names.
#[inline(always)]
fn add_row<S: Set, T: Summed>(to: &ToRows<S, T>, row: usize, sum: &Sums<S, T>) {
    let units = Units::<S, T>::from_fn(|v| T::narrow(sum.get(v % width::<S>())));
    to.store_if(&units, |v| v / width::<S>() == row);
}

/// The sum of the last run of a span with what the later spans left of it.
///
/// # Safety
/// The run must go on in the next span. The threads of the later spans must have left their sums.
#[inline(always)]
unsafe fn with_later_spans<S: Set, T: Summed>(
    mut sum: Sums<S, T>,
    grouped: &Grouped,
    left: &Tensor<Shared<T::Sum>, RowMajor>,
    to: &ToRows<S, T>,
) -> Sums<S, T> {
    let [first, _] = to.bound().coordinate(0);
    let mut next = first + SPAN;
    loop {
        let more = left
            .local_tile::<S::OneSpan>(((next / SPAN) as u32, 0u32))
            .partition_broadcast::<S::Units>(thread_idx())
            .load(T::Sum::default());
        sum = sum.map(|unit, sum| T::plus(sum, more.get(unit)));
        // SAFETY: the run has a row in the next span, so there is one.
        if unsafe { !grouped.is_passed_through::<S>(next) } {
            return sum;
        }
        next += SPAN;
    }
}

/// How the thread's span meets its neighbours.
#[derive(Clone, Copy)]
struct Ends {
    /// Whether the first run begins in an earlier span.
    begins_before: bool,
    /// Whether the last run goes on in the next span.
    goes_on: bool,
}

impl Ends {
    /// Compares the thread's first and last row with their neighbours.
    #[inline(always)]
    fn of<S: Set, T: Summed>(grouped: &Grouped, to: &ToRows<S, T>) -> Self {
        let [first, _] = to.bound().coordinate(0);
        let exists = |v| to.bound().holds(v);
        // SAFETY: the places are those of the set.
        unsafe {
            Ends {
                begins_before: first > 0 && exists(0) && grouped.is_run_through::<S>(first),
                goes_on: exists(const { last_row::<S>() })
                    && grouped.is_run_through::<S>(first + SPAN),
            }
        }
    }
}

impl Grouped {
    /// Whether a run has both this place and the one before. The place may be behind the last one.
    ///
    /// # Safety
    /// The place must not be the first.
    #[inline(always)]
    unsafe fn is_run_through<S: Set>(&self, place: i32) -> bool {
        let place = i64::from(place);
        // SAFETY: the set has these places.
        place < S::ROWS as i64 && unsafe { self.keys.load(place - 1) == self.keys.load(place) }
    }

    /// Whether a span is a single run, which goes on in the next one.
    ///
    /// # Safety
    /// The span must begin in this place.
    #[inline(always)]
    unsafe fn is_passed_through<S: Set>(&self, begin: i32) -> bool {
        // SAFETY: a span has eight places, and begins at a multiple of them.
        unsafe {
            let [a, b, c, d] = self.keys.load_vec(i64::from(begin));
            let [e, f, g, h] = self.keys.load_vec(i64::from(begin) + 4);
            let is_one = [b, c, d, e, f, g, h].iter().all(|&key| key == a);
            is_one && self.is_run_through::<S>(begin + SPAN)
        }
    }
}
