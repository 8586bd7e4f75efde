//! sample: a random element of each row, by the softmax of its logits, of the most probable ones alone.
//!
//! A block has a row. It draws an element of the whole softmax, and accepts it if it is among the most probable ones:
//! if there are fewer than `top_k` more probable elements, with less than `top_p` of the probability. Else it draws again,
//! of the more probable elements. Each draw is exact, so accepted elements have the probabilities of the softmax of the
//! accepted set. No row is sorted.
//!
//! A draw reads the row. For a small `top_k`, elements that may be accepted are listed first, and draws read the list: the
//! greatest element of a thread is one of the row, so there are `top_k` elements that are not below the `top_k`th of the
//! threads' greatest ones, and no smaller element is accepted. If rows are few and long, [`sample_split`] lists them: a
//! block of it has a split of a row.
//!
//! [`sample_split`]: super::sample_split

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, Shared, SharedArray, SharedStorage, Threads, atomic_min,
    block_idx, grid_dependency_wait, instantiate, launch_dependents, sync_threads, thread_idx,
};
use cutlet_layout_core::{
    Bound, Divide, Divisor, Fragment, L, RowMajor, Tensor, ThreadValue, Tv, covers_exactly, each,
    tile_extent,
};
use half::{bf16, f16};

use super::{RowStrides, Rows, Space};
use crate::fill::bits;
use crate::selection::{
    Held, Row4, Row8, RowAny, RowShape, Sum, THREADS, Thread, exp, merge, near_greatest, shares,
};

/// Extents and strides of a draw.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SampleArgs {
    /// Strides of the rows.
    pub logits: RowStrides,
    /// Strides of the rows' counters.
    pub counters: RowStrides,
    /// Strides of the rows' results.
    pub tokens: RowStrides,
    /// The rows.
    pub space: Space,
    /// Of the random numbers.
    pub seed: u64,
    /// What the splits of the rows have.
    pub splits: Splits,
    /// 1 / temperature.
    pub inverse: f32,
    /// The share of the probability that the accepted elements have at least.
    pub top_p: f32,
    /// The number of elements that are accepted at most, but for equal ones.
    pub top_k: i32,
    /// Unused.
    pub padding: u32,
}

/// What is known of the splits of rows, which are equal parts of them.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Splits {
    /// The greatest logit of each split, and the sum of all exponentials relative to it. The sum is NaN if there is no room
    /// for the split's list.
    pub sums: GlobalMut<f32>,
    /// How many elements each split's list has.
    pub counts: GlobalMut<i32>,
    /// The lists: the logits by the temperature.
    pub logits: GlobalMut<f32>,
    /// Their columns in the row.
    pub columns: GlobalMut<u32>,
    /// Splits of a row. 0 if rows are not split.
    pub count: u32,
    /// Elements that a split's list has room for. The lists of a row have room for [`LISTED`] together.
    pub room: Divisor,
}

/// Elements that the list of a row has room for.
pub const LISTED: usize = 2048;
/// The list, and the elements of it that a thread has.
type ListTile = L!((1, 2048):(1@0, 1@1));
type OfList = Tv<L!(1024:1@1), L!(2:1024@1)>;
/// A number of each thread.
type OneEach = L!((1, 1024):(1@0, 1@1));
type OfThread = Tv<L!(1024:1@1), L!(1:1@0)>;
const _: () = assert!(
    covers_exactly::<OfList>(tile_extent::<ListTile>())
        && tile_extent::<ListTile>()[1] == LISTED as i32,
    "the threads have each element of the list once"
);

/// What the threads of a block share of a draw.
#[derive(SharedStorage)]
pub struct Drawn {
    /// The end of each warp's share of the probability, behind a 0.
    ends: SharedArray<f32, 33>,
    /// The element that was drawn.
    token: SharedArray<u32, 1>,
    /// The logits of the elements that are listed.
    logits: SharedArray<f32, LISTED>,
    /// Their columns.
    columns: SharedArray<u32, LISTED>,
}

/// A row, and a thread's part of it.
pub(super) struct Part<T> {
    pub thread: Thread,
    pub logits: Tensor<Global<T>, Rows>,
    pub inverse: f32,
}

/// A logit by the temperature: finite, or −∞ for NaN and −∞.
#[inline(always)]
fn scaled(logit: f32, inverse: f32) -> f32 {
    // `max` and `min` return the other number for NaN.
    let finite = (logit * inverse).min(f32::MAX);
    match logit.is_nan() {
        true => f32::NEG_INFINITY,
        false => finite,
    }
}

impl<T: Float + Default> Part<T> {
    /// The greatest of the thread's logits, and the sum of their exponentials relative to it.
    #[inline(always)]
    pub fn sum<S: RowShape>(&self, tiles: u32) -> Sum {
        let mut own = [f32::MIN, 0.0];
        for tile in 0..tiles {
            let values = self.logits::<S>(tile);
            let greatest = values.fold(f32::MIN, f32::max);
            let sum = values.fold(0.0, |sum, it| sum + exp(it - greatest));
            own = merge(own, [greatest, sum]);
        }
        own
    }

    /// The thread's logits of a tile, by the temperature. Those that do not exist are −∞.
    #[inline(always)]
    fn logits<S: RowShape>(&self, tile: u32) -> Held<S> {
        let mine = self
            .logits
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread);
        mine.load(T::default())
            .map(|v, logit| match mine.bound().holds(v) {
                true => scaled(logit.to_f32(), self.inverse),
                false => f32::NEG_INFINITY,
            })
    }

    /// The first of the thread's elements above `low` at which the sum of these elements' exponentials, from `sum` on,
    /// exceeds `target`, or the last one above `low`.
    #[inline(always)]
    fn find<S: RowShape>(
        &self,
        tiles: u32,
        low: f32,
        greatest: f32,
        mut sum: f32,
        target: f32,
    ) -> u32 {
        let mut found = u32::MAX;
        for tile in 0..tiles {
            let place = self
                .logits
                .local_tile::<S::Tile>((block_idx().x, tile))
                .partition::<S::Threads>(self.thread);
            let logits = self.logits::<S>(tile);
            each::<<S::Threads as ThreadValue>::Val>(|v| {
                let power = exp(logits.get(v) - greatest);
                // Before the target is exceeded, every element that counts is the last one.
                if sum <= target && logits.get(v) > low && power > 0.0 {
                    sum += power;
                    found = place.bound().coordinate(v)[1] as u32;
                }
            });
        }
        found
    }

    /// How many of the thread's elements are above `low`, and the sum of their exponentials.
    #[inline(always)]
    fn above<S: RowShape>(&self, tiles: u32, low: f32, greatest: f32) -> [f32; 2] {
        let mut above = [0.0, 0.0];
        for tile in 0..tiles {
            above = self
                .logits::<S>(tile)
                .fold(above, |above, logit| match logit > low {
                    true => [above[0] + 1.0, above[1] + exp(logit - greatest)],
                    false => above,
                });
        }
        above
    }
}

/// The thread's part of the list.
struct Listed {
    logits: Fragment<f32, <OfList as ThreadValue>::Val>,
    columns: Fragment<u32, <OfList as ThreadValue>::Val>,
}

impl Listed {
    /// The first of the thread's elements above `low` at which the sum of their exponentials, from `sum` on, exceeds
    /// `target`, or the last one above `low`.
    #[inline(always)]
    fn find(&self, low: f32, greatest: f32, mut sum: f32, target: f32) -> u32 {
        let mut found = u32::MAX;
        each::<<OfList as ThreadValue>::Val>(|v| {
            let power = exp(self.logits.get(v) - greatest);
            if sum <= target && self.logits.get(v) > low && power > 0.0 {
                sum += power;
                found = self.columns.get(v);
            }
        });
        found
    }

    /// How many of the thread's elements are above `low`, and the sum of their exponentials.
    #[inline(always)]
    fn above(&self, low: f32, greatest: f32) -> [f32; 2] {
        self.logits
            .fold([0.0, 0.0], |above, logit| match logit > low {
                true => [above[0] + 1.0, above[1] + exp(logit - greatest)],
                false => above,
            })
    }
}

/// A random number from 0 up to 1 for a draw: the upper 24 bits of 64 random ones.
#[inline(always)]
fn uniform(seed: u64, counter: u64, row: i32, draw: u32) -> f32 {
    let of_row = bits(seed ^ row as u64, counter);
    (bits(of_row, draw.into()) >> 40) as f32 * (1.0 / (1 << 24) as f32)
}

/// Lists the elements of the row that are not below `least`, if there is room for them, and returns how many they are.
/// `store` gets the place in the list, the logit and the column of each. All threads of the block call it.
///
/// # Safety
/// There are 33 `ends`, which other threads do not use meanwhile.
#[inline(always)]
pub(super) unsafe fn list<S: RowShape, T: Float + Default>(
    part: &Part<T>,
    tiles: u32,
    least: f32,
    room: u32,
    ends: Shared<f32>,
    store: impl Fn(i64, f32, u32),
) -> Option<i32> {
    let thread = part.thread;
    let mut count = 0.0;
    for tile in 0..tiles {
        let logits = part.logits::<S>(tile);
        count = logits.fold(count, |count, it| count + f32::from(u8::from(it >= least)));
    }
    // A thread stores behind those before it.
    // SAFETY: as promised by the caller.
    let [begin, _, all] = unsafe { shares(thread, count, ends) };
    if all > room as f32 {
        return None;
    }
    let mut at = begin as i64;
    for tile in 0..tiles {
        let place = part
            .logits
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(thread);
        let logits = part.logits::<S>(tile);
        each::<<S::Threads as ThreadValue>::Val>(|v| {
            if logits.get(v) >= least {
                let column = place.bound().coordinate(v)[1] as u32;
                store(at, logits.get(v), column);
                at += 1;
            }
        });
    }
    Some(all as i32)
}

/// The thread's part of a list of so many elements.
///
/// # Safety
/// The list is complete.
#[inline(always)]
unsafe fn listed(thread: Thread, count: i32, drawn: &Drawn) -> Listed {
    let places = RowMajor::new([1, count], 0);
    // SAFETY: as promised by the caller.
    unsafe {
        Listed {
            logits: Tensor::new(*drawn.logits, places)
                .local_tile::<ListTile>((0u32, 0u32))
                .partition::<OfList>(thread)
                .load(f32::NEG_INFINITY),
            columns: Tensor::new(*drawn.columns, places)
                .local_tile::<ListTile>((0u32, 0u32))
                .partition::<OfList>(thread)
                .load(0),
        }
    }
}

impl Splits {
    /// The thread's share of a row's sum.
    ///
    /// # Safety
    /// The row has these splits.
    #[inline(always)]
    unsafe fn sum(&self, thread: Thread, row: i32) -> Sum {
        let of_row = Tensor::identity([1, THREADS as i32]).local_tile::<OneEach>((0u32, 0u32));
        let [_, split] = of_row.partition::<OfThread>(thread).coordinate(0);
        let exists = (split as u32) < self.count;
        let nth = 2 * (i64::from(row) * i64::from(self.count) + i64::from(split));
        match exists {
            // SAFETY: as promised by the caller.
            true => unsafe { [self.sums.load(nth), self.sums.load(nth + 1)] },
            false => [f32::MIN, 0.0],
        }
    }

    /// The thread's part of the lists of a row.
    ///
    /// # Safety
    /// The row has these splits, and all lists are complete.
    #[inline(always)]
    unsafe fn listed(&self, thread: Thread, row: i32) -> Listed {
        let all = Tensor::identity([1, LISTED as i32]).local_tile::<ListTile>((0u32, 0u32));
        let mine = all.partition::<OfList>(thread);
        let place = |v: usize| {
            let [_, place] = mine.coordinate(v);
            let (split, nth) = self.room.div_rem(place as u32);
            let of_row = i64::from(row) * i64::from(self.count);
            let count = match split < self.count {
                // SAFETY: as promised by the caller.
                true => unsafe { self.counts.load(of_row + i64::from(split)) },
                false => 0,
            };
            let exists = (nth as i32) < count;
            exists.then_some(of_row * i64::from(self.room.divisor()) + i64::from(place))
        };
        // SAFETY: as promised by the caller.
        unsafe {
            Listed {
                logits: Fragment::from_fn(|v| match place(v) {
                    Some(place) => self.logits.load(place),
                    None => f32::NEG_INFINITY,
                }),
                columns: Fragment::from_fn(|v| match place(v) {
                    Some(place) => self.columns.load(place),
                    None => 0,
                }),
            }
        }
    }
}

/// What is known of a row before elements of it are drawn.
struct Known {
    /// The greatest logit.
    greatest: f32,
    /// The sum of all exponentials relative to it.
    all: f32,
    /// That of the thread's elements, or of its part of the list.
    mass: f32,
    /// The thread's part of the list. `None` if elements of the row are drawn.
    list: Option<Listed>,
}

/// What the splits of a row know of it. `None` if a list had no room. All threads of the block call it.
///
/// # Safety
/// The row has these splits.
#[inline(always)]
unsafe fn of_splits(
    thread: Thread,
    row: i32,
    splits: &Splits,
    sums: &mut BlockReduce<Sum, Threads<THREADS>>,
) -> Option<Known> {
    // SAFETY: as promised by the caller.
    unsafe {
        let [greatest, all] = sums.reduce(thread, splits.sum(thread, row), merge);
        if all.is_nan() {
            return None;
        }
        let list = splits.listed(thread, row);
        Some(Known {
            greatest,
            all,
            mass: list.above(f32::NEG_INFINITY, greatest)[1],
            list: Some(list),
        })
    }
}

/// Reads a row, and lists its elements that a small `top_k` may leave. All threads of the block call it.
///
/// # Safety
/// The storage is the block's, and other threads do not use it meanwhile.
#[inline(always)]
unsafe fn of_row<S: RowShape, T: Float + Default>(
    part: &Part<T>,
    tiles: u32,
    args: &SampleArgs,
    sums: &mut BlockReduce<Sum, Threads<THREADS>>,
    drawn: &Drawn,
) -> Known {
    let thread = part.thread;
    let own = part.sum::<S>(tiles);
    let [greatest, all] = sums.reduce(thread, own, merge);
    let mut known = Known {
        greatest,
        all,
        mass: own[1] * exp(own[0] - greatest),
        list: None,
    };
    if args.top_k > THREADS as i32 || all == 0.0 {
        return known;
    }
    let count = args.top_k as f32;
    let columns = args.space.columns;
    let Some(least) = near_greatest(thread, [own[0], greatest], count, columns, sums) else {
        return known;
    };
    // SAFETY: as promised by the caller. There is room for the list.
    unsafe {
        let store = |at, logit, column| {
            drawn.logits.store(at, logit);
            drawn.columns.store(at, column);
        };
        let room = const { LISTED as u32 };
        if let Some(count) = list::<S, T>(part, tiles, least, room, *drawn.ends, store) {
            sync_threads();
            let list = listed(thread, count, drawn);
            known.mass = list.above(f32::NEG_INFINITY, greatest)[1];
            known.list = Some(list);
        }
    }
    known
}

/// Draws an element of each row. A row without a finite logit gets −1.
///
/// # Safety
/// The operands must have these extents, and be aligned for the accesses of `S`.
#[inline(always)]
unsafe fn sample<S: RowShape, T: Float + Default>(
    thread: Thread,
    logits: Global<T>,
    counters: Global<u64>,
    tokens: GlobalMut<i32>,
    args: SampleArgs,
    mut sums: BlockReduce<Sum, Threads<THREADS>>,
    drawn: Drawn,
) {
    grid_dependency_wait();
    launch_dependents();
    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let rows = unsafe { Tensor::new(logits, space.rows(args.logits)) };
    let tiles = rows.tiles::<S::Tile>()[1];
    let place = rows
        .local_tile::<S::Tile>((block_idx().x, 0u32))
        .partition::<S::Threads>(thread);
    let [row, first] = place.bound().coordinate(0);
    let part = Part {
        thread,
        logits: rows,
        inverse: args.inverse,
    };
    // SAFETY: the launcher promises the counters and the splits. The storage is this block's, and barriers order its uses.
    unsafe {
        let known = match args.splits.count {
            0 => None,
            _ => of_splits(thread, row, &args.splits, &mut sums),
        };
        let known = match known {
            Some(known) => known,
            None => of_row::<S, T>(&part, tiles, &args, &mut sums, &drawn),
        };
        let counter = counters.load(space.begin(args.counters, row));
        let (mut mass, mut low) = (known.mass, f32::NEG_INFINITY);
        let mut token = u32::MAX;
        let mut draw = 0;
        loop {
            // Uniform: all threads of the block have the same sum.
            if known.all == 0.0 {
                break;
            }
            if first == 0 {
                drawn.token.store(0, u32::MAX);
            }
            let [begin, end, total] = shares(thread, mass, *drawn.ends);
            // Below the end of the last share.
            let below = f32::from_bits(total.to_bits() - 1);
            let target = (uniform(args.seed, counter, row, draw) * total).min(below);
            if begin <= target && target < end && mass > 0.0 {
                let found = match &known.list {
                    None => part.find::<S>(tiles, low, known.greatest, begin, target),
                    Some(list) => list.find(low, known.greatest, begin, target),
                };
                atomic_min(*drawn.token, 0, found);
            }
            sync_threads();
            token = drawn.token.load(0);
            if token == u32::MAX {
                break;
            }
            let begin = space.begin(args.logits, row);
            low = scaled(logits.load(begin + i64::from(token)).to_f32(), args.inverse);
            let above = match &known.list {
                None => part.above::<S>(tiles, low, known.greatest),
                Some(list) => list.above(low, known.greatest),
            };
            let [count, sum] = sums.reduce(thread, above, |a, b| [a[0] + b[0], a[1] + b[1]]);
            if count < args.top_k as f32 && sum < args.top_p * known.all {
                break;
            }
            mass = above[1];
            draw += 1;
        }
        if first == 0 {
            tokens.store(space.begin(args.tokens, row), token as i32);
        }
    }
}

macro_rules! instances {
    ($($element:ty: $vectors:ident in $shape:ident, $any:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("Rows of `", stringify!($element), "` whose vectors are aligned.")]
            #[kernel(threads = 1024, cpu = crate::cpu::BODY)]
            pub unsafe fn $vectors(
                logits: Global<$element>,
                counters: Global<u64>,
                tokens: GlobalMut<i32>,
                args: SampleArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] drawn: Drawn,
            ) = sample::<$shape, $element>(thread_idx(), ..);

            #[doc = concat!("Rows of `", stringify!($element), "` of any alignment.")]
            #[kernel(threads = 1024, cpu = crate::cpu::BODY)]
            pub unsafe fn $any(
                logits: Global<$element>,
                counters: Global<u64>,
                tokens: GlobalMut<i32>,
                args: SampleArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] drawn: Drawn,
            ) = sample::<RowAny, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    f32: sample_f32 in Row4, sample_f32_any;
    f16: sample_f16 in Row8, sample_f16_any;
    bf16: sample_bf16 in Row8, sample_bf16_any;
}
