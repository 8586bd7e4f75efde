//! selection: what kernels share that select elements of a row by a block of 1024 threads.

use core::f32::consts::LOG2_E;

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    DeviceData, ReduceElement, Shared, ThreadIdx, Threads, exp2_approx, lane_idx, shfl_up,
    sync_threads, warp_idx,
};
use cutlet_layout_core::{
    Fragment, L, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, covers_exactly, each, tile_extent,
};

/// Threads of a block, which has a row.
pub const THREADS: u32 = 1024;
/// A thread of it.
pub type Thread = ThreadIdx<Threads<THREADS>>;

/// How the threads of a block have a row.
pub trait RowShape {
    /// A part of the row.
    type Tile: StaticLayout;
    /// Which elements a thread has.
    type Threads: ThreadValue;
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $tile:ty, $threads:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl RowShape for $name {
            type Tile = $tile;
            type Threads = $threads;
        }
        const _: () = assert!(
            covers_exactly::<$threads>(tile_extent::<$tile>()),
            "a shape's threads have each element of its tile once"
        );
    )+};
}
shapes! {
    /// Vectors of eight elements.
    Row8: L!((1, 16384):(1@0, 1@1)), Tv<L!(1024:8@1), L!((8, 2):(1@1, 8192@1)), 8>;
    /// Vectors of four elements.
    Row4: L!((1, 8192):(1@0, 1@1)), Tv<L!(1024:4@1), L!((4, 2):(1@1, 4096@1)), 4>;
    /// Elements of any alignment.
    RowAny: L!((1, 4096):(1@0, 1@1)), Tv<L!(1024:1@1), L!(4:1024@1)>;
}

/// A number for each warp: the lanes of a warp have the warp's.
type OfWarp = Tv<L!((32, 32):(0, 1@1)), L!(1:1@0)>;
/// A number for each warp: lane `w` has that of warp `w`.
type OfLane = Tv<L!((32, 32):(1@1, 0)), L!(1:1@0)>;

/// A thread's values of a tile.
pub type Held<S> = Fragment<f32, <<S as RowShape>::Threads as ThreadValue>::Val>;

/// The greatest of some logits, and the sum of their exponentials relative to it.
pub type Sum = [f32; 2];

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exp2_approx(x * LOG2_E)
}

/// The sum of the elements of both.
#[inline(always)]
pub fn merge(a: Sum, b: Sum) -> Sum {
    let greatest = a[0].max(b[0]);
    [
        greatest,
        a[1] * exp(a[0] - greatest) + b[1] * exp(b[0] - greatest),
    ]
}

/// How often the range of the threads' greatest elements is halved. More would make lists hardly shorter.
const BISECTIONS: i32 = 10;

/// The `count`th of the threads' greatest elements, or a smaller number that is near: `own` is the thread's, and `f32::MIN`
/// if it has none. `None` if fewer threads have one. All threads of the block call it, and get the same.
#[inline(always)]
pub fn near_greatest(
    thread: Thread,
    [own, greatest]: [f32; 2],
    count: f32,
    columns: i32,
    sums: &mut BlockReduce<Sum, Threads<THREADS>>,
) -> Option<f32> {
    let has_one = own > f32::MIN;
    let least = match has_one {
        true => [own, 1.0],
        false => [f32::INFINITY, 0.0],
    };
    let [mut low, threads] = sums.reduce(thread, least, |a, b| [a[0].min(b[0]), a[1] + b[1]]);
    if threads < count {
        return None;
    }
    let mut high = greatest;
    // A constant number of rounds would be as many copies of the code.
    for _ in 0..BISECTIONS.min(columns) {
        let middle = 0.5 * low + 0.5 * high;
        let is_above = [f32::from(u8::from(has_one && own >= middle)), 0.0];
        let [above, _] = sums.reduce(thread, is_above, |a, b| [a[0] + b[0], 0.0]);
        match above >= count {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(low)
}

/// Where a thread's share of the threads' sum begins and ends, and the sum. All threads of the block call it.
///
/// # Safety
/// There are 33 `ends`, which other threads do not use meanwhile.
#[inline(always)]
pub unsafe fn shares<T: DeviceData + Default + ReduceElement>(
    thread: Thread,
    own: T,
    ends: Shared<T>,
) -> [T; 3] {
    let in_warp = scan(own);
    let of_lane_before = shfl_up(in_warp, 1);
    let before = match lane_idx().is_first() {
        true => T::default(),
        false => of_lane_before,
    };
    // SAFETY: as promised by the caller. Barriers order the accesses.
    unsafe {
        let places = RowMajor::new([1, 32], 0);
        let begins = Tensor::new(ends, places);
        let of_warps = Tensor::new(ends.offset(1), places);
        let of_warp = of_warps.partition_broadcast::<OfWarp>(thread);
        let of_lane = of_warps.partition_broadcast::<OfLane>(thread);
        sync_threads();
        if lane_idx().is(31) {
            of_warp.store_with(|_| in_warp);
        }
        sync_threads();
        let scanned = scan(of_lane.load(T::default()).get(0));
        sync_threads();
        if warp_idx().is_first() {
            of_lane.store_with(|_| scanned);
            if lane_idx().is_first() {
                ends.store(0, T::default());
            }
        }
        sync_threads();
        let begin = begins
            .partition_broadcast::<OfWarp>(thread)
            .load(T::default())
            .get(0);
        // The next warp's share begins where that of the last lane ends.
        let end = match lane_idx().is(31) {
            true => of_warp.load(T::default()).get(0),
            false => T::sum_of(begin, in_warp),
        };
        [T::sum_of(begin, before), end, ends.load(32)]
    }
}

/// The sum of the values of the lanes up to this one.
#[inline(always)]
fn scan<T: ReduceElement>(value: T) -> T {
    let mut sum = value;
    each::<L!(5:1)>(|step| {
        let below = shfl_up(sum, 1 << step);
        if !lane_idx().is_below(1 << step) {
            sum = T::sum_of(sum, below);
        }
    });
    sum
}
