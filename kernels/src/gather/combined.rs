//! Combined rows: a block adds rows with equal indices to each other, so that a row of the table gets one addition of
//! each block.
//!
//! The L2 cache adds to an address one value after the other. Where many rows name the same row of the table, it would
//! be slower than the memory. So a block [groups](super::sets) the rows of its set first. Successive rows with equal
//! indices are a *run*. A thread has a *span* of successive rows, and sums the runs within. A run that goes through
//! several spans belongs to the thread in whose span it begins. The others leave their sums in shared memory for it.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, RedAdd, RedAddElement, Shared, SharedMemory, ThreadGroup,
    ThreadIdx, block_idx, grid_dependency_wait, launch_dependents, sync_threads,
};
use cutlet_layout_core::{
    Fragment, L, RowMajor, Tensor, ThreadValue, each, tile_extent, tile_origin,
};
use half::{bf16, f16};

use super::RowArgs;
use super::sets::{Grouped, PlacesOfSpan, SPAN, Set};

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
                // By the GPU's instruction: the type has a method of its own, which computes in software.
                Float::to_f32(self)
            }

            #[inline(always)]
            fn narrow(sum: f32) -> Self {
                Float::from_f32(sum)
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

/// The thread's units of a row.
type Units<S, T> = Fragment<T, <<S as Set>::Units as ThreadValue>::Val>;
/// Sums of the thread's units of a row.
type Sums<S, T> = Fragment<<T as Summed>::Sum, <<S as Set>::Sums as ThreadValue>::Val>;
/// Sums of runs that enter a span from the one before: a row of sums for each span.
type Entering<T> = Tensor<Shared<<T as Summed>::Sum>, RowMajor>;

/// Adds row `r` of the source to row `indices[r]` of the table, in each block the rows of one set.
///
/// # Safety
/// Source, indices and table must have these extents, and `first_miss` one element. The block must have this much
/// shared memory.
#[inline(always)]
pub(super) unsafe fn add_combined<S: Set, T: Summed>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let tile = args.tiles.tile(block_idx().x);
    let [first, _] = tile_origin::<S::Tile>(tile);
    let mut memory = SharedMemory::new();
    // SAFETY: the launcher promises the extents and the memory. There are as many sums as their layout has. Several
    // threads may add to one element, which the engine allows.
    let (span, source, table, entering) = unsafe {
        let grouped = Grouped::new::<S>(thread, &mut memory, indices, first, first_miss, &args);
        let [spans, units] = const { spans::<S>() };
        let sums = memory.take((spans * units) as usize);
        let rows_of_table = RowMajor::new([args.table_rows as i32, args.columns], args.ld_to);
        (
            Span::of_thread::<S>(thread, grouped),
            Tensor::new(source, args.plain_rows(args.ld_from)),
            Tensor::new(RedAdd::to(table), rows_of_table),
            Tensor::new(sums, RowMajor::new([spans, units], i64::from(units))),
        )
    };
    let values = span.load::<S, T>(&source, tile.1);
    let last = span.add_runs::<S, T>(&values, &table, tile.1, &entering);
    sync_threads();
    if span.goes_on && !last.enters {
        // SAFETY: the last run goes on. The threads of later spans have left their sums.
        let sum = unsafe { span.with_later_spans::<S, T>(last.sum, &entering) };
        let key = span.keys.get(SPAN as usize - 1);
        add_to_row::<S, T>(thread, &table, (key, tile.1), &sum);
    }
}

/// A number for each row of a span.
type OfRows<T> = Fragment<T, PlacesOfSpan>;

/// The thread's span of the grouped rows.
struct Span<G> {
    thread: ThreadIdx<G>,
    grouped: Grouped,
    /// The place of its first row.
    first: i32,
    /// The row of the table that each row names, or −1.
    keys: OfRows<i32>,
    /// The row of the source that each row is, or −1.
    rows: OfRows<i32>,
    /// Whether the first run begins in an earlier span.
    begins_before: bool,
    /// Whether the last run goes on in the next span.
    goes_on: bool,
}

/// The last run of a span.
struct LastRun<S: Set, T: Summed> {
    sum: Sums<S, T>,
    /// Whether it enters the span from the one before, so that its sum was left for another thread.
    enters: bool,
}

impl<G: ThreadGroup> Span<G> {
    /// The thread's span of a set.
    ///
    /// # Safety
    /// The rows must have been grouped as those of `S`.
    #[inline(always)]
    unsafe fn of_thread<S: Set>(thread: ThreadIdx<G>, grouped: Grouped) -> Self {
        let places = RowMajor::new([1, S::ROWS as i32], 0);
        // SAFETY: there are as many keys and rows as the set has.
        let (keys, rows) = unsafe {
            (
                Tensor::new(grouped.keys, places).partition_broadcast::<S::Places>(thread),
                Tensor::new(grouped.rows, places).partition_broadcast::<S::Places>(thread),
            )
        };
        let [_, first] = keys.bound().coordinate(0);
        let (keys, rows) = (keys.load(-1), rows.load(-1));
        // SAFETY: the places are those before and after a span.
        let [begins_before, goes_on] = unsafe {
            [
                first > 0 && grouped.is_run_through::<S>(first),
                grouped.is_run_through::<S>(first + SPAN),
            ]
        };
        Span {
            thread,
            grouped,
            first,
            keys,
            rows,
            begins_before,
            goes_on,
        }
    }

    /// Loads the thread's units of its rows, in the `across`th tile of the columns. All of them are in flight before
    /// the first one is used.
    #[inline(always)]
    fn load<S: Set, T: Summed>(
        &self,
        source: &Tensor<Global<T>, RowMajor>,
        across: u32,
    ) -> OfRows<Units<S, T>> {
        OfRows::from_fn(|nth| match self.rows.get(nth) {
            ..0 => Units::<S, T>::filled(T::default()),
            row => source
                .local_tile::<S::Row>((row as u32, across))
                .partition_broadcast::<S::Units>(self.thread)
                .load(T::default()),
        })
    }

    /// Sums the runs of the thread's rows, and adds those that end in the span to the table. It leaves the sum of a run
    /// that enters from the span before.
    #[inline(always)]
    fn add_runs<S: Set, T: Summed>(
        &self,
        values: &OfRows<Units<S, T>>,
        table: &Tensor<RedAdd<T>, RowMajor>,
        across: u32,
        entering: &Entering<T>,
    ) -> LastRun<S, T> {
        let goes_on = |nth: usize| self.keys.get(nth) == self.keys.get(nth + 1);
        let mut sum = Sums::<S, T>::filled(T::Sum::default());
        let mut enters = self.begins_before;
        each::<L!(8:1)>(|nth| {
            let is_last = nth + 1 == SPAN as usize;
            let begins = nth == 0 || !goes_on(nth - 1);
            enters &= nth == 0 || !begins;
            sum = sum.map(|unit, before| {
                let value = values.get(nth).get(unit).widen();
                if begins {
                    value
                } else {
                    T::plus(before, value)
                }
            });
            let ends = if is_last {
                !self.goes_on
            } else {
                !goes_on(nth)
            };
            if enters && (ends || is_last) {
                entering.partition::<S::OwnSums>(self.thread).store(&sum);
            } else if ends {
                add_to_row::<S, T>(self.thread, table, (self.keys.get(nth), across), &sum);
            }
        });
        LastRun { sum, enters }
    }

    /// The sum of the last run with what later spans left of it.
    ///
    /// # Safety
    /// The run must go on in the next span. The threads of later spans must have left their sums.
    #[inline(always)]
    unsafe fn with_later_spans<S: Set, T: Summed>(
        &self,
        mut sum: Sums<S, T>,
        entering: &Entering<T>,
    ) -> Sums<S, T> {
        let mut next = self.first + SPAN;
        loop {
            let more = entering
                .local_tile::<S::Row>(((next / SPAN) as u32, 0u32))
                .partition_broadcast::<S::Sums>(self.thread)
                .load(T::Sum::default());
            sum = sum.map(|unit, sum| T::plus(sum, more.get(unit)));
            // SAFETY: the run has a row in the next span, so there is one.
            if unsafe { !self.grouped.is_passed_through::<S>(next) } {
                return sum;
            }
            next += SPAN;
        }
    }
}

/// Adds sums to the thread's units of row `tile.0` of the table, if there is such a row, in tile `tile.1` of its
/// columns.
#[inline(always)]
fn add_to_row<S: Set, T: Summed>(
    thread: ThreadIdx<impl ThreadGroup>,
    table: &Tensor<RedAdd<T>, RowMajor>,
    (key, across): (i32, u32),
    sum: &Sums<S, T>,
) {
    if key >= 0 {
        table
            .local_tile::<S::Row>((key as u32, across))
            .partition_broadcast::<S::Units>(thread)
            .store_with(|unit| T::narrow(sum.get(unit)));
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
