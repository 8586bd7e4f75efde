//! sample: a random element of each row, by the softmax of its logits, of the most probable ones alone.
//!
//! A block has a row. It draws an element of the whole softmax, and accepts it if it is among the most probable ones:
//! if there are fewer than `top_k` more probable elements, with less than `top_p` of the probability. Else it draws again,
//! of the more probable elements. Each draw is exact, so accepted elements have the probabilities of the softmax of the
//! accepted set. No row is sorted.
//!
//! A draw reads the row. For a small `top_k`, elements that may be accepted are listed first, and draws read the list: the
//! greatest element of a thread is one of the row, so there are `top_k` elements that are not below the `top_k`th of the
//! threads' greatest ones, and no smaller element is accepted.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, SharedArray, SharedStorage, Threads, atomic_min,
    block_idx, grid_dependency_wait, instantiate, launch_dependents, sync_threads, thread_idx,
};
use cutlet_layout_core::{
    Bound, Fragment, L, RowMajor, Tensor, ThreadValue, Tv, covers_exactly, each, tile_extent,
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
    /// 1 / temperature.
    pub inverse: f32,
    /// The share of the probability that the accepted elements have at least.
    pub top_p: f32,
    /// The number of elements that are accepted at most, but for equal ones.
    pub top_k: i32,
    /// Unused.
    pub padding: u32,
}

/// Elements that a list has room for.
const LISTED: usize = 2048;
/// The list, and the elements of it that a thread has.
type ListTile = L!((1, 2048):(1@0, 1@1));
type OfList = Tv<L!(1024:1@1), L!(2:1024@1)>;
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
struct Part<T> {
    thread: Thread,
    logits: Tensor<Global<T>, Rows>,
    inverse: f32,
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

/// Lists the elements of the row that are not below `least`, if there is room for them, and returns how many they are, or
/// 0. All threads of the block call it.
///
/// # Safety
/// The storage is the block's, and other threads do not use it meanwhile.
#[inline(always)]
unsafe fn list<S: RowShape, T: Float + Default>(
    part: &Part<T>,
    tiles: u32,
    least: f32,
    drawn: &Drawn,
) -> i32 {
    let thread = part.thread;
    let mut count = 0.0;
    for tile in 0..tiles {
        let logits = part.logits::<S>(tile);
        count = logits.fold(count, |count, it| count + f32::from(u8::from(it >= least)));
    }
    // SAFETY: as promised by the caller. A thread writes behind those before it, and the last one ends in the list.
    unsafe {
        let [begin, _, all] = shares(thread, count, *drawn.ends);
        if all > LISTED as f32 {
            return 0;
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
                    drawn.logits.store(at, logits.get(v));
                    drawn
                        .columns
                        .store(at, place.bound().coordinate(v)[1] as u32);
                    at += 1;
                }
            });
        }
        sync_threads();
        all as i32
    }
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
    let mut own = [f32::MIN, 0.0];
    for tile in 0..tiles {
        let values = part.logits::<S>(tile);
        let greatest = values.fold(f32::MIN, f32::max);
        let sum = values.fold(0.0, |sum, it| sum + exp(it - greatest));
        own = merge(own, [greatest, sum]);
    }
    let [greatest, all] = sums.reduce(thread, own, merge);
    let mut mass = own[1] * exp(own[0] - greatest);
    let mut low = f32::NEG_INFINITY;
    let mut token = u32::MAX;
    // SAFETY: the launcher promises the counters. The storage is this block's, and barriers order its uses.
    unsafe {
        let least = match args.top_k <= THREADS as i32 && all > 0.0 {
            true => {
                let count = args.top_k as f32;
                near_greatest(thread, [own[0], greatest], count, space.columns, &mut sums)
            }
            false => None,
        };
        let count = match least {
            Some(least) => list::<S, T>(&part, tiles, least, &drawn),
            None => 0,
        };
        let list = listed(thread, count, &drawn);
        if count > 0 {
            mass = list.above(low, greatest)[1];
        }
        let counter = counters.load(space.begin(args.counters, row));
        let mut draw = 0;
        loop {
            // Uniform: all threads of the block have the same sum.
            if all == 0.0 {
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
                let found = match count {
                    0 => part.find::<S>(tiles, low, greatest, begin, target),
                    _ => list.find(low, greatest, begin, target),
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
            let above = match count {
                0 => part.above::<S>(tiles, low, greatest),
                _ => list.above(low, greatest),
            };
            let [count, sum] = sums.reduce(thread, above, |a, b| [a[0] + b[0], a[1] + b[1]]);
            if count < args.top_k as f32 && sum < args.top_p * all {
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
            #[kernel(threads = 1024)]
            pub unsafe fn $vectors(
                logits: Global<$element>,
                counters: Global<u64>,
                tokens: GlobalMut<i32>,
                args: SampleArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] drawn: Drawn,
            ) = sample::<$shape, $element>(thread_idx(), ..);

            #[doc = concat!("Rows of `", stringify!($element), "` of any alignment.")]
            #[kernel(threads = 1024)]
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
