//! Sorting: the positions of keys in the order of the keys, equal keys in the order of their positions.
//!
//! It is a radix sort: a stable counting sort of one digit of the keys after the other, the lowest digit first. Keys
//! are rows of a table, so that a table of less than 2¹⁸ rows takes two digits. Each digit takes three launches:
//! [`sort_count`], [`sort_scan`], [`sort_place`]. The result does not depend on the order in which blocks run.

use cutlet_device::{
    DeviceData, Global, GlobalMut, Shared, SharedMemory, ThreadGroup, ThreadIdx, WARP_SIZE,
    atomic_add, ballot, block_idx, kernel, lane_idx, shfl, shfl_up, sync_threads, sync_warp,
    thread_idx, warp_idx,
};
use cutlet_layout_core::{
    Bound, Fixed, L, Partition, RowMajor, Tensor, ThreadValue, Tv, covers_exactly, each,
    tile_extent, tiles,
};

use super::args::report_miss;
use super::{Indices, OutOfRange};

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 9;
/// Values of a digit.
const DIGITS: usize = 1 << DIGIT_BITS;
/// Warps of a block.
const WARPS: usize = 8;

/// The keys of a block.
pub type Chunk = L!((1, 4096):(1@0, 1@1));
/// A warp has consecutive keys, and reads 32 of them at a time. So the keys of a block are in the order of warps, then
/// values, then lanes.
type ChunkThreads = Tv<L!((32, 8):(1@1, 512@1)), L!(16:32@1)>;
const _: () = assert!(covers_exactly::<ChunkThreads>(tile_extent::<Chunk>()));

/// Keys of one kind, positions, and how they are sorted.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SortArgs {
    /// Number of keys.
    pub keys: i32,
    /// The lowest bit of the digit.
    pub shift: u32,
}

impl SortArgs {
    /// A matrix of one row, with an element for each key.
    #[inline(always)]
    fn row(&self) -> RowMajor {
        RowMajor::new([1, self.keys], 0)
    }

    /// The counts: a row for each value of a digit, a column for each block.
    #[inline(always)]
    fn counts(&self) -> RowMajor {
        let [_, blocks] = tiles::<Chunk>([1, self.keys]);
        RowMajor::new([DIGITS as i32, blocks as i32], i64::from(blocks))
    }

    #[inline(always)]
    fn digit(&self, key: u32) -> i64 {
        i64::from((key >> self.shift) & (DIGITS as u32 - 1))
    }
}

/// The indices of an operation, as keys.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct KeyArgs {
    /// Rows of the table.
    pub table_rows: i32,
    /// Number of indices.
    pub indices: i32,
    /// Not 0 if an index has 64 bits.
    pub wide_indices: u32,
    /// What an index outside of the table means.
    pub out_of_range: OutOfRange,
}

/// Makes a key of each index: the row of the table, or `table_rows` if there is no such row. Writes the position of
/// each key as well.
///
/// # Safety
/// Indices, keys and positions must have this extent, and `first_miss` one element.
#[kernel(threads = 256, cpu = crate::cpu::BODY)]
pub unsafe fn sort_keys(
    indices: Global<i32>,
    keys: GlobalMut<u32>,
    positions: GlobalMut<i32>,
    first_miss: GlobalMut<u64>,
    args: KeyArgs,
) {
    let row = RowMajor::new([1, args.indices], 0);
    let indices = Indices::new(indices, args.wide_indices != 0);
    let tile = (0u32, block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (indices, keys, positions) = unsafe {
        (
            Tensor::new(indices, row).local_tile::<Chunk>(tile),
            Tensor::new(keys, row).local_tile::<Chunk>(tile),
            Tensor::new(positions, row).local_tile::<Chunk>(tile),
        )
    };
    let keys = keys.partition::<ChunkThreads>(thread_idx());
    let positions = positions.partition::<ChunkThreads>(thread_idx());

    let last = i64::from(args.table_rows) - 1;
    let found = indices.partition::<ChunkThreads>(thread_idx()).load(0);
    let named = found.map(|_, index| match args.out_of_range.clamps() {
        true => index.max(0).min(last),
        false => index,
    });
    let exists = |v| (0..=last).contains(&named.get(v));
    let position = |v| positions.bound().coordinate(v)[1];
    keys.store_with(|v| match exists(v) {
        true => named.get(v) as u32,
        false => args.table_rows as u32,
    });
    positions.store_with(position);
    each::<<ChunkThreads as ThreadValue>::Val>(|v| {
        if args.out_of_range.is_error() && keys.bound().holds(v) && !exists(v) {
            // SAFETY: the launcher promises one element.
            unsafe { report_miss(first_miss, i64::from(position(v))) };
        }
    });
}

/// A thread has the counters of two successive values.
type DigitsOfThread = Tv<L!(256:2@1), L!(2:1@1)>;
/// A number for each value of a digit.
type OfDigits = Fixed<L!((1, 512):(512, 1))>;
const _: () = assert!(covers_exactly::<DigitsOfThread>(tile_extent::<
    L!((1, 512):(1@0, 1@1)),
>()));
/// Bytes of a block's counters.
const COUNTERS: u32 = (DIGITS * size_of::<u32>()) as u32;

/// Counts how often each value of the digit occurs in each block's keys.
///
/// # Safety
/// There must be as many keys, and a count for each value and block.
#[kernel(threads = 256, shared = COUNTERS, cpu = crate::cpu::BODY)]
pub unsafe fn sort_count(keys: Global<u32>, counts: GlobalMut<u32>, args: SortArgs) {
    let counters = SharedMemory::new().take::<u32>(DIGITS);
    let chunk = (0u32, block_idx().x);
    // SAFETY: the launcher promises the extents. The counters are as many as their layout has.
    let (keys, counts, own) = unsafe {
        (
            Tensor::new(keys, args.row()).local_tile::<Chunk>(chunk),
            Tensor::new(counts, args.counts()).local_tile::<OfBlock>((0u32, block_idx().x)),
            Tensor::new(counters, OfDigits::new()),
        )
    };
    let own = own.partition::<DigitsOfThread>(thread_idx());

    own.store_with(|_| 0);
    sync_threads();
    keys.partition::<ChunkThreads>(thread_idx())
        // SAFETY: a digit is below the number of counters.
        .for_each(|_, key| unsafe {
            atomic_add(counters, args.digit(key), 1);
        });
    sync_threads();
    let counted = own.load(0);
    counts
        .partition::<CountsOfThread>(thread_idx())
        .store_with(|v| counted.get(v));
}

/// The counts of a block: a column of all counts.
type OfBlock = L!((512, 1):(1@0, 1@1));
/// A thread has the counts of two successive values.
type CountsOfThread = Tv<L!(256:2@0), L!(2:1@0)>;

/// Counts of a value that its scanning block adds at a time.
type Scanned = L!((1, 1024):(1@0, 1@1));
/// A thread has four consecutive counts.
type ScanThreads = Tv<L!(256:4@1), L!(4:1@1)>;

/// Replaces each count of a value of the digit by the sum of those of the blocks before, and writes the sum of all of
/// them to `totals`. A block does it for each value.
///
/// # Safety
/// There must be a count for each value and block of as many keys, and a total for each value.
#[kernel(threads = 256, shared = WARP_SUMS, cpu = crate::cpu::BODY)]
pub unsafe fn sort_scan(counts: GlobalMut<u32>, totals: GlobalMut<u32>, args: SortArgs) {
    let sums = SharedMemory::new().take::<u32>(WARPS);
    // SAFETY: the launcher promises the extents.
    let (counts, total) = unsafe {
        (
            Tensor::new(counts, args.counts()),
            Tensor::new(totals, RowMajor::new([DIGITS as i32, 1], 1))
                .local_tile::<L!((1, 1):(1@0, 1@1))>((block_idx().x, 0u32)),
        )
    };
    let [_, steps] = counts.tiles::<Scanned>();
    let mut before = 0;
    for step in 0..steps {
        let own = counts
            .local_tile::<Scanned>((block_idx().x, step))
            .partition::<ScanThreads>(thread_idx());
        let values = own.load(0);
        let sum = (0..4).fold(0, |sum, v| sum + values.get(v));
        let scan = scan_block(thread_idx(), sum, sums);
        let mut next = before + scan.before;
        own.store_with(|v| {
            let this = next;
            next += values.get(v);
            this
        });
        before += scan.total;
    }
    if warp_idx().is_first() && lane_idx().is_first() {
        total
            .partition::<Tv<L!(1:1@0), L!(1:1@0)>>(0u32)
            .store_with(|_| before);
    }
}

/// A number for each warp of a block, of which a warp's lanes all have their warp's.
type WarpSums = Fixed<L!((1, 8):(8, 1))>;
type SumOfWarp = Tv<L!((32, 8):(0@1, 1@1)), L!(1:1@0)>;
/// Lane `i` has the number of warp `i` modulo 8.
type SumOfLane = Tv<L!((8, 4):(1@1, 0@1)), L!(1:1@0)>;
/// Bytes of these numbers.
const WARP_SUMS: u32 = (WARPS * size_of::<u32>()) as u32;

/// Sums of values of a block's threads.
struct BlockScan {
    /// Of the threads before this one.
    before: u32,
    /// Of all threads.
    total: u32,
}

/// Sums the values of the block's threads. All of them must call it; `sums` has a number for each warp.
#[inline(always)]
fn scan_block(thread: ThreadIdx<impl ThreadGroup>, value: u32, sums: Shared<u32>) -> BlockScan {
    // SAFETY: there is a sum for each warp.
    let sums = unsafe { Tensor::new(sums, WarpSums::new()) };
    let of_warp = sums.partition_broadcast::<SumOfWarp>(thread);
    let of_lane = sums.partition_broadcast::<SumOfLane>(lane_idx());
    let through_lane = inclusive_scan(value);
    // The last lane's value is the warp's sum. A lane stores it alone.
    let sum_of_warp = shfl(through_lane, WARP_SIZE - 1);
    if lane_idx().is_first() {
        of_warp.store_with(|_| sum_of_warp);
    }
    sync_threads();
    let sum = of_lane.value(0, 0);
    let through_warp = inclusive_scan(sum);
    sync_threads();
    if warp_idx().is_first() && lane_idx().is_below(WARPS as u32) {
        of_lane.store_with(|_| through_warp - sum);
    }
    sync_threads();
    let before_warp = of_warp.value(0, 0);
    // The next scan writes the same memory.
    sync_threads();
    BlockScan {
        before: before_warp + through_lane - value,
        total: shfl(through_warp, WARPS as u32 - 1),
    }
}

/// The sum of the values of the lanes up to this one.
#[inline(always)]
pub(super) fn inclusive_scan(value: u32) -> u32 {
    let mut sum = value;
    each::<L!(5:1)>(|step| {
        let below = shfl_up(sum, 1 << step);
        if !lane_idx().is_below(1 << step) {
            sum += below;
        }
    });
    sum
}

/// The counters of all warps: a row for each warp.
type WarpCounters = Fixed<L!((8, 512):(512, 1))>;
/// A thread has the counters of two successive values.
type DigitsOfAllWarps = Tv<L!(256:2@1), L!((8, 2):(1@0, 1@1))>;
/// All lanes of a warp have the beginning of their warp's counters.
type CountersOfWarp = Tv<L!((32, 8):(0@1, 1@0)), L!(1:1@1)>;

/// The keys of a block, in its shared memory.
const KEYS: usize = 4096;
/// Consecutive threads have consecutive keys.
type InTurn = Tv<L!(256:1@1), L!(16:256@1)>;
const _: () = assert!(covers_exactly::<InTurn>(tile_extent::<Chunk>()));

/// Shared memory of a block that moves its keys.
struct PlaceMemory {
    /// Counters of all warps.
    counters: Shared<u32>,
    /// What takes a key with a digit from its place among the block's to its place among all, modulo 2³².
    shifts: Shared<u32>,
    sums: Shared<u32>,
    keys: Shared<u32>,
    values: Shared<i32>,
}

impl PlaceMemory {
    const BYTES: u32 = (WARPS as u32 + 1) * COUNTERS + WARP_SUMS + 2 * 4 * KEYS as u32;

    #[inline(always)]
    fn take() -> Self {
        let mut memory = SharedMemory::new();
        PlaceMemory {
            counters: memory.take(WARPS * DIGITS),
            shifts: memory.take(DIGITS),
            sums: memory.take(WARPS),
            keys: memory.take(KEYS),
            values: memory.take(KEYS),
        }
    }
}

/// Moves keys and values to where they are when sorted by the digit. A block sorts its own ones in shared memory first,
/// so that neighbouring threads write neighbouring keys.
///
/// # Safety
/// There must be as many keys and values, in other memory before and after, and the scanned counts and totals of the
/// same keys.
#[kernel(threads = 256, min_blocks = 2, shared = PlaceMemory::BYTES, cpu = crate::cpu::BODY)]
pub unsafe fn sort_place(
    keys: Global<u32>,
    values: Global<i32>,
    counts: Global<u32>,
    totals: Global<u32>,
    sorted_keys: GlobalMut<u32>,
    sorted_values: GlobalMut<i32>,
    args: SortArgs,
) {
    let memory = PlaceMemory::take();
    let chunk = (0u32, block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (keys, values, counts, totals) = unsafe {
        (
            Tensor::new(keys, args.row()).local_tile::<Chunk>(chunk),
            Tensor::new(values, args.row()).local_tile::<Chunk>(chunk),
            Tensor::new(counts, args.counts()).local_tile::<OfBlock>((0u32, block_idx().x)),
            Tensor::new(totals, Fixed::<L!((512, 1):(1, 512))>::new()),
        )
    };
    let own_keys = keys.partition::<ChunkThreads>(thread_idx());
    let key = own_keys.load(0);
    let exists = |v| own_keys.bound().holds(v);
    // SAFETY: the counters are as many as their layout has.
    let counters = unsafe { Tensor::new(memory.counters, WarpCounters::new()) };
    let of_digits = counters.partition::<DigitsOfAllWarps>(thread_idx());
    let of_warp = counters
        .partition_broadcast::<CountersOfWarp>(thread_idx())
        .engine_at(0);

    of_digits.store_with(|_| 0);
    sync_threads();
    // The place of each key among those of its warp with the same digit.
    let in_warp = key.map(|v, key| count_peers(of_warp, args.digit(key), exists(v)));
    sync_threads();
    // Loaded no earlier, so that a thread needs fewer registers.
    let value = values.partition::<ChunkThreads>(thread_idx()).load(0);
    let in_block = begins_in_block(thread_idx(), &of_digits, memory.sums);
    let total = totals.partition::<CountsOfThread>(thread_idx()).load(0);
    let below = scan_block(thread_idx(), total.get(0) + total.get(1), memory.sums).before;
    let before_block = counts.partition::<CountsOfThread>(thread_idx()).load(0);
    // SAFETY: there is a shift for each value of a digit.
    unsafe { Tensor::new(memory.shifts, OfDigits::new()) }
        .partition::<DigitsOfThread>(thread_idx())
        .store_with(|v| {
            let below = if v == 0 { below } else { below + total.get(0) };
            (below + before_block.get(v)).wrapping_sub(in_block[v])
        });
    sync_threads();
    each::<<ChunkThreads as ThreadValue>::Val>(|v| {
        if exists(v) {
            // SAFETY: a digit is below the number of counters. Each key has a place of its own in the block.
            unsafe {
                let place = of_warp.load(args.digit(key.get(v))) + in_warp.get(v);
                memory.keys.store(i64::from(place), key.get(v));
                memory.values.store(i64::from(place), value.get(v));
            }
        }
    });
    sync_threads();
    // SAFETY: the launcher promises the sorted keys and values.
    unsafe {
        write_in_turn(
            thread_idx(),
            &memory,
            &keys,
            sorted_keys,
            sorted_values,
            args,
        )
    };
}

/// Replaces the counters of each value of the digit, of all warps, by where its keys begin when those of the block are
/// sorted. Returns where those of the thread's two values begin.
#[inline(always)]
fn begins_in_block(
    thread: ThreadIdx<impl ThreadGroup>,
    of_digits: &Partition<Shared<u32>, WarpCounters, DigitsOfAllWarps>,
    sums: Shared<u32>,
) -> [u32; 2] {
    let counted = of_digits.load(0);
    let of_value = |value: usize| {
        let first = value * WARPS;
        (first..first + WARPS).fold(0, |sum, v| sum + counted.get(v))
    };
    let (first, second) = (of_value(0), of_value(1));
    let begin = scan_block(thread, first + second, sums).before;
    let mut next = begin;
    // The warps of the first value come before those of the second.
    of_digits.store_with(|v| {
        let this = next;
        next += counted.get(v);
        this
    });
    [begin, begin + first]
}

/// Writes the block's sorted keys and values to their places among all.
///
/// # Safety
/// The block's memory has its sorted keys and values, and shifts that take them to places of their own below the number
/// of keys.
#[inline(always)]
unsafe fn write_in_turn(
    thread: ThreadIdx<impl ThreadGroup>,
    memory: &PlaceMemory,
    keys: &Tensor<Global<u32>, RowMajor, Chunk>,
    sorted_keys: GlobalMut<u32>,
    sorted_values: GlobalMut<i32>,
    args: SortArgs,
) {
    let in_block = RowMajor::new([1, KEYS as i32], 0);
    // SAFETY: the memory has room for this many keys and values.
    let (key, value) = unsafe {
        (
            Tensor::new(memory.keys, in_block).partition_partial::<InTurn>(thread),
            Tensor::new(memory.values, in_block).partition_partial::<InTurn>(thread),
        )
    };
    // As many as the block has keys were written, from the first place on.
    let in_turn = keys.partition::<InTurn>(thread);
    each::<<InTurn as ThreadValue>::Val>(|v| {
        if in_turn.bound().holds(v) {
            let (own, place) = (key.value(v, 0), key.bound().coordinate(v)[1] as u32);
            // SAFETY: a digit is below the number of shifts. The caller promises the rest.
            unsafe {
                let place = place.wrapping_add(memory.shifts.load(args.digit(own)));
                sorted_keys.store(i64::from(place), own);
                sorted_values.store(i64::from(place), value.value(v, 0));
            }
        }
    });
}

/// Adds the lanes that have this digit to the digit's counter of their warp. Returns what the counter is at the lane's
/// turn: lanes come in their order.
#[inline(always)]
fn count_peers(counters: Shared<u32>, digit: i64, exists: bool) -> u32 {
    let mut peers = ballot(exists);
    each::<L!(9:1)>(|bit| {
        let has = digit >> bit & 1 != 0;
        let with = ballot(has);
        peers &= if has { with } else { !with };
    });
    let before = peers & lane_idx().lanes_below();
    // SAFETY: a digit is below the number of counters. The first of its lanes writes a counter, when all have read it.
    unsafe {
        let counter = counters.load(digit);
        sync_warp();
        if exists && before == 0 {
            counters.store(digit, counter + peers.count_ones());
        }
        sync_warp();
        counter + before.count_ones()
    }
}

/// Finds where the keys of each row begin: `offsets[row]` is the number of keys below `row`, for each row of the table
/// and for `rows`, where the last ones end. `counts[row]` is the number of keys that are `row`.
///
/// # Safety
/// There must be as many sorted keys, `rows + 1` offsets, and `rows` counts.
#[kernel(threads = 256, cpu = crate::cpu::BODY)]
pub unsafe fn sort_offsets(
    sorted_keys: Global<u32>,
    offsets: GlobalMut<i32>,
    counts: GlobalMut<i32>,
    keys: i32,
    rows: i32,
) {
    let tile = (0u32, block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (offsets, counts) = unsafe {
        (
            Tensor::new(offsets, RowMajor::new([1, rows + 1], 0)).local_tile::<OffsetTile>(tile),
            Tensor::new(counts, RowMajor::new([1, rows], 0)).local_tile::<OffsetTile>(tile),
        )
    };
    let offsets = offsets.partition::<OffsetOfThread>(thread_idx());
    let counts = counts.partition::<OffsetOfThread>(thread_idx());
    let [_, row] = offsets.bound().coordinate(0);
    // SAFETY: the launcher promises the keys.
    let [begin, end] = unsafe {
        [
            keys_below(sorted_keys, keys, row as u32),
            keys_below(sorted_keys, keys, row as u32 + 1),
        ]
    };
    offsets.store_with(|_| begin);
    counts.store_with(|_| end - begin);
}

/// The number of sorted keys below `limit`, by bisection.
///
/// # Safety
/// There must be as many keys.
#[inline(always)]
pub(super) unsafe fn keys_below(sorted_keys: Global<u32>, keys: i32, limit: u32) -> i32 {
    let (mut low, mut high) = (0, keys);
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: the position is below the number of keys.
        match unsafe { sorted_keys.load(i64::from(middle)) } < limit {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// The offsets of a block.
pub type OffsetTile = L!((1, 256):(1@0, 1@1));
/// A thread has one offset.
type OffsetOfThread = Tv<L!(256:1@1), L!(1:1@0)>;
