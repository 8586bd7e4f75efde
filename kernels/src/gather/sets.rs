//! Sets: how a block puts rows with equal indices next to each other, before it adds them to a table.
//!
//! The rows of a block's tile are its *set*. The block counts the rows of each *bucket*, which is a hash of the row's
//! index, gives each bucket some places, and each row one of them. Then rows with equal indices are neighbours, unless
//! another index has the same bucket. A set of different indices costs one pass over the indices and four barriers,
//! while other blocks load rows. The order within a bucket is that of atomic operations, so it is unspecified.

use cutlet_device::{
    Global, GlobalMut, Shared, SharedMemory, ThreadGroup, ThreadIdx, WARP_SIZE, atomic_add,
    lane_idx, shfl, sync_threads, uniform,
};
use cutlet_layout_core::{
    Bound, Engine, Fragment, L, Partition, RowMajor, StaticLayout, Tensor, ThreadValue, Tv,
    covers_exactly, each, tile_extent,
};

use super::args::report_miss;
use super::sorting::inclusive_scan;
use super::{Indices, RowArgs};

/// The shape of a set, whose rows are grouped. A thread has some units of [`SPAN`] successive rows.
pub trait Set: 'static {
    /// The block's tile: (rows, units).
    type Tile: StaticLayout;
    /// The rows of the set whose places the thread finds, in a matrix of one row.
    type Ungrouped: ThreadValue;
    /// The thread's counters of buckets, in a matrix of one row.
    type Buckets: ThreadValue;
    /// The places of the thread's rows, in a matrix of one row.
    type Places: ThreadValue<Val = PlacesOfSpan>;
    /// A row of the tile.
    type Row: StaticLayout;
    /// The thread's units of a row.
    type Units: ThreadValue;
    /// The thread's sums of a row of sums.
    type Sums: ThreadValue;
    /// The thread's sums in a matrix that has a row of sums for each span.
    type OwnSums: ThreadValue;
    /// Rows of a set.
    const ROWS: usize = tile_extent::<Self::Tile>()[0] as usize;
    /// Number of buckets, a power of two.
    const BUCKETS: usize = tile_extent::<(
        <Self::Buckets as ThreadValue>::Thr,
        <Self::Buckets as ThreadValue>::Val,
    )>()[1] as usize;
}

/// Successive rows of a thread.
pub const SPAN: i32 = 8;
/// Their places, one after the other.
pub type PlacesOfSpan = L!(8:1@1);

macro_rules! set {
    ($(#[$doc:meta])* $name:ident: $rows:literal rows by $units:literal units,
        $down:literal spans by $across:literal vectors of $vector:literal,
        $rows_of_thread:literal rows and $buckets:literal buckets of a thread) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Set for $name {
            type Tile = L!(($rows, $units):(1@0, 1@1));
            type Ungrouped = Tv<L!(256:1@1), L!($rows_of_thread:256@1)>;
            type Buckets = Tv<L!(256:$buckets@1), L!($buckets:1@1), $buckets>;
            type Places = Tv<L!(($across, $down):(0@1, 8@1)), PlacesOfSpan, 4>;
            type Row = L!((1, $units):(1@0, 1@1));
            type Units = Tv<L!(($across, $down):($vector@1, 0@0)), L!($vector:1@1), $vector>;
            type Sums = Tv<L!(($across, $down):($vector@1, 0@0)), L!($vector:1@1), {access_to_sums($vector)}>;
            type OwnSums = Tv<L!(($across, $down):($vector@1, 1@0)), L!($vector:1@1), {access_to_sums($vector)}>;
        }
        const _: () = {
            type Threads = Tv<L!(($across, $down):($vector@1, 8@0)), L!(($vector, 8):(1@1, 1@0))>;
            assert!(covers_exactly::<Threads>(tile_extent::<<$name as Set>::Tile>()));
            assert!(
                $rows <= 256 * $rows_of_thread,
                "each row of a set has a thread that finds its place"
            );
        };
    };
}
set! {
    /// Rows of 2 KiB and more, in 16-byte accesses.
    Long16: 16 rows by 512 units, 2 spans by 128 vectors of 4, 1 rows and 1 buckets of a thread
}
set! {
    /// Rows from 256 bytes, in 16-byte accesses.
    Medium16: 128 rows by 64 units, 16 spans by 16 vectors of 4, 1 rows and 2 buckets of a thread
}
set! {
    /// Short rows, in 16-byte accesses.
    Short16: 512 rows by 16 units, 64 spans by 4 vectors of 4, 2 rows and 4 buckets of a thread
}
set! {
    /// Rows of 128 units and more, one unit an access.
    Long: 16 rows by 128 units, 2 spans by 128 vectors of 1, 1 rows and 1 buckets of a thread
}
set! {
    /// Short rows, one unit an access.
    Short: 256 rows by 8 units, 32 spans by 8 vectors of 1, 1 rows and 4 buckets of a thread
}

/// Sums of an access. They may be twice as long as the units that are added.
const fn access_to_sums(vector: usize) -> usize {
    if vector > 2 { 2 } else { vector }
}

/// The rows of a block's set, in shared memory: places by buckets.
pub(super) struct Grouped {
    /// The row of the table that the row in this place names, or −1 if it names none.
    pub keys: Shared<i32>,
    /// The row of the source in this place, or −1 if it names no row of the table.
    pub rows: Shared<i32>,
    buckets: Shared<u32>,
    /// Places that were given to buckets.
    given: Shared<u32>,
}

/// A row before it has its place.
#[derive(Clone, Copy)]
struct Row {
    key: i32,
    /// The row's number among those of its bucket.
    rank: u32,
}

impl Grouped {
    /// Bytes of a set's places and buckets.
    pub const fn bytes<S: Set>() -> u32 {
        (4 * (2 * S::ROWS + S::BUCKETS) + 16) as u32
    }

    /// Groups the rows of the set that begins with row `first` of the source. All threads of the block call it. Reports
    /// rows that name no row of the table, if they are errors.
    ///
    /// # Safety
    /// There must be an index for each row of the source, one element of `first_miss`, and as much shared memory.
    #[inline(always)]
    pub unsafe fn new<S: Set>(
        thread: ThreadIdx<impl ThreadGroup>,
        memory: &mut SharedMemory,
        indices: Global<i32>,
        first: i32,
        first_miss: GlobalMut<u64>,
        args: &RowArgs,
    ) -> Self {
        let grouped = Grouped {
            keys: memory.take(S::ROWS),
            rows: memory.take(S::ROWS),
            buckets: memory.take(S::BUCKETS),
            given: memory.take(1),
        };
        let indices = Indices::new(indices, args.wide_indices != 0).offset(i64::from(first));
        let count = (args.rows - first).min(S::ROWS as i32);
        // SAFETY: the caller promises the indices and the memory. The buckets are as many as their layout has.
        let (own, buckets) = unsafe {
            let row = |len| RowMajor::new([1, len], 0);
            (
                Tensor::new(indices, row(count)).partition::<S::Ungrouped>(thread),
                Tensor::new(grouped.buckets, row(S::BUCKETS as i32))
                    .partition::<S::Buckets>(thread),
            )
        };
        let found = own.load(0);
        let place = |v| own.bound().coordinate(v)[1];
        buckets.store_with(|_| 0);
        if thread.is_first() {
            // SAFETY: there is this number.
            unsafe { grouped.given.store(0, 0) };
        }
        sync_threads();
        let rows = found.map(|v, index| {
            let exists = own.bound().holds(v);
            let key = if exists { args.key(index) } else { -1 };
            if exists && key < 0 && args.out_of_range.is_error() {
                // SAFETY: the caller promises one element.
                unsafe { report_miss(first_miss, i64::from(first + place(v))) };
            }
            let rank = match place(v) < S::ROWS as i32 {
                // SAFETY: a bucket is below their number.
                true => unsafe { atomic_add(grouped.buckets, bucket::<S>(key, first), 1) },
                false => 0,
            };
            Row { key, rank }
        });
        sync_threads();
        grouped.give_places(&buckets);
        sync_threads();
        each::<<S::Ungrouped as ThreadValue>::Val>(|v| {
            if place(v) < S::ROWS as i32 {
                let row = if rows.get(v).key < 0 {
                    -1
                } else {
                    first + place(v)
                };
                // SAFETY: a bucket is below their number, and has as many places as rows, which are those of the set.
                unsafe { grouped.put(bucket::<S>(rows.get(v).key, first), rows.get(v), row) };
            }
        });
        sync_threads();
        grouped
    }

    /// Replaces the thread's counters by the first places of their buckets, in any order of buckets.
    #[inline(always)]
    fn give_places<C: ThreadValue>(&self, buckets: &Partition<Shared<u32>, RowMajor, C>) {
        let counted: Fragment<u32, C::Val> = buckets.load(0);
        let mut sum = 0;
        each::<C::Val>(|v| sum += counted.get(v));
        let through_lane = inclusive_scan(sum);
        let of_warp = shfl(through_lane, WARP_SIZE - 1);
        let mut before = 0;
        if lane_idx().is_first() {
            // SAFETY: there is this number.
            before = unsafe { atomic_add(self.given, 0, of_warp) };
        }
        let mut next = uniform(before) + through_lane - sum;
        buckets.store_with(|v| {
            let this = next;
            next += counted.get(v);
            this
        });
    }

    /// Puts a row in its place.
    ///
    /// # Safety
    /// The bucket must have a place for it.
    #[inline(always)]
    unsafe fn put(&self, bucket: i64, Row { key, rank }: Row, row: i32) {
        // SAFETY: as promised by the caller.
        unsafe {
            let place = i64::from(self.buckets.load(bucket) + rank);
            self.keys.store(place, key);
            self.rows.store(place, row);
        }
    }
}

/// The bucket of a key, in the set that begins with row `first`. Keys that share a bucket in one set do not share it in
/// others.
#[inline(always)]
fn bucket<S: Set>(key: i32, first: i32) -> i64 {
    // Fibonacci hashing: 2³² over the golden ratio.
    let hash = ((key ^ first) as u32).wrapping_mul(0x9e37_79b9);
    i64::from(hash >> const { u32::BITS - S::BUCKETS.trailing_zeros() })
}

impl RowArgs {
    /// The row of the table that an index names, or −1 if it names none.
    #[inline(always)]
    fn key(&self, index: i64) -> i32 {
        let last = self.table_rows - 1;
        let row = match self.out_of_range.clamps() {
            true => index.max(0).min(last),
            false => index,
        };
        if (0..=last).contains(&row) {
            row as i32
        } else {
            -1
        }
    }
}
