//! The highest logits of long rows: their places, the highest first, and their softmax.
//!
//! A block has a row. It lists elements in shared memory, and counts for each of them how many come before it, which is
//! its rank. The greatest element of a thread is one of the row, so the elements that are not below the `k`th of the
//! threads' greatest ones have all that are chosen among them. If they do not fit the list, a radix selection finds the
//! `k`th element of the row, and `k` elements are listed.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    Float, Global, GlobalMut, SharedArray, SharedStorage, Threads, atomic_add, block_idx,
    instantiate, sync_threads, thread_idx,
};
use cutlet_layout_core::{
    Bound, Fragment, L, RowMajor, Tensor, ThreadValue, Tv, covers_exactly, each, tile_extent,
};
use half::{bf16, f16};

use super::routing::TopKArgs;
use crate::selection::{
    Held, Row4, Row8, RowAny, RowShape, Sum, THREADS, Thread, exp, merge, near_greatest, shares,
};

/// Elements that the list has room for: the most that can be chosen.
pub const LISTED: usize = 2048;
/// The list, and the elements of it that a thread has.
type ListTile = L!((1, 2048):(1@0, 1@1));
type OfList = Tv<L!(1024:1@1), L!(2:1024@1)>;
const _: () = assert!(
    covers_exactly::<OfList>(tile_extent::<ListTile>())
        && tile_extent::<ListTile>()[1] == LISTED as i32,
    "the threads have each element of the list once"
);

/// Bits of a digit of the radix selection.
const DIGIT_BITS: u32 = 8;
/// Values of a digit.
const DIGITS: usize = 1 << DIGIT_BITS;
/// A number for each thread. Those of the first threads are the digits'.
type DigitTile = L!((1, 1024):(1@0, 1@1));
type OfDigit = Tv<L!(1024:1@1), L!(1:1@0)>;

/// The keys, the counters and the results that the threads of a block share.
#[derive(SharedStorage)]
pub struct Chosen {
    /// The keys of the elements that are listed.
    keys: SharedArray<u64, LISTED>,
    /// How many elements were listed, or met when the list was full.
    count: SharedArray<u32, 1>,
    /// How many elements have each digit, the highest digit first.
    digits: SharedArray<u32, DIGITS>,
    /// The end of each warp's share of these, behind a 0.
    ends: SharedArray<u32, 33>,
    /// The digit of the `k`th element, counted from the highest one; how many elements have a higher one, and this one.
    found: SharedArray<u32, 3>,
}

/// A logit and its column, as a number that is larger if the logit is, or if the logits are equal and the column is
/// lower.
#[inline(always)]
fn key(logit: f32, column: i32) -> u64 {
    // −0 and 0 are equal.
    let bits = (logit + 0.0).to_bits();
    let order = match bits >> 31 {
        0 => bits | 1 << 31,
        _ => !bits,
    };
    u64::from(order) << 32 | u64::from(!(column as u32))
}

/// The logit and the column of a [`key`].
#[inline(always)]
fn logit_and_column(key: u64) -> (f32, i32) {
    let order = (key >> 32) as u32;
    let bits = match order >> 31 {
        0 => !order,
        _ => order & !(1 << 31),
    };
    (f32::from_bits(bits), !(key as u32) as i32)
}

/// A row, and a thread's part of it.
struct Part<T> {
    thread: Thread,
    logits: Tensor<Global<T>, RowMajor>,
    tiles: u32,
}

impl<T: Float + Default> Part<T> {
    /// The thread's logits of a tile, finite, and −∞ for those that do not exist. The number is 0, or NaN if a logit is.
    #[inline(always)]
    fn logits<S: RowShape>(&self, tile: u32) -> (Held<S>, f32) {
        let mine = self
            .logits
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread);
        let loaded = mine.load(T::default()).map(|_, logit| logit.to_f32());
        let nan = loaded.fold(0.0, |nan, logit| if logit.is_nan() { logit } else { nan });
        #[expect(clippy::manual_clamp, reason = "`clamp` would keep NaN")]
        let finite = loaded.map(|v, logit| match mine.bound().holds(v) {
            true => logit.max(f32::MIN).min(f32::MAX),
            false => f32::NEG_INFINITY,
        });
        (finite, nan)
    }

    /// Calls `visit` with the key of each of the thread's elements.
    #[inline(always)]
    fn each_key<S: RowShape>(&self, mut visit: impl FnMut(u64)) {
        for tile in 0..self.tiles {
            let place = self
                .logits
                .local_tile::<S::Tile>((block_idx().x, tile))
                .partition::<S::Threads>(self.thread);
            let (logits, _) = self.logits::<S>(tile);
            each::<<S::Threads as ThreadValue>::Val>(|v| {
                if place.bound().holds(v) {
                    visit(key(logits.get(v), place.bound().coordinate(v)[1]));
                }
            });
        }
    }

    /// Lists the elements whose keys are not below `least`, and returns how many they are. If they are more than the list
    /// has room for, it has some of them. All threads of the block call it.
    ///
    /// # Safety
    /// The storage is the block's, and other threads do not use it meanwhile.
    #[inline(always)]
    unsafe fn list<S: RowShape>(&self, least: u64, chosen: &Chosen) -> u32 {
        // SAFETY: as promised by the caller. Barriers order the accesses.
        unsafe {
            sync_threads();
            if self.thread.is_first() {
                chosen.count.store(0, 0);
            }
            sync_threads();
            self.each_key::<S>(|key| {
                if key >= least {
                    let at = atomic_add(*chosen.count, 0, 1);
                    if at < LISTED as u32 {
                        chosen.keys.store(i64::from(at), key);
                    }
                }
            });
            sync_threads();
            chosen.count.load(0)
        }
    }

    /// A key that is above none of the `count` largest keys of the row, and above all others. All threads of the block
    /// call it.
    ///
    /// # Safety
    /// The storage is the block's, and other threads do not use it meanwhile.
    #[inline(always)]
    unsafe fn select<S: RowShape>(&self, count: u32, chosen: &Chosen) -> u64 {
        let (mut digits_before, mut rest, mut shift) = (0, count, u64::BITS);
        // SAFETY: as promised by the caller. Barriers order the accesses.
        unsafe {
            let of_digits = Tensor::new(*chosen.digits, RowMajor::new([1, DIGITS as i32], 0))
                .local_tile::<DigitTile>((0u32, 0u32));
            let own = of_digits.partition::<OfDigit>(self.thread);
            loop {
                shift -= DIGIT_BITS;
                own.store_with(|_| 0);
                sync_threads();
                self.each_key::<S>(|key| {
                    let digits = key >> shift;
                    if digits >> DIGIT_BITS == digits_before {
                        let from_highest = !digits & (DIGITS as u64 - 1);
                        atomic_add(*chosen.digits, from_highest as i64, 1);
                    }
                });
                sync_threads();
                let with = own.load(0).get(0);
                let [begin, end, _] = shares(self.thread, with, *chosen.ends);
                if begin < rest && rest <= end {
                    let [_, from_highest] = own.bound().coordinate(0);
                    chosen.found.store(0, from_highest as u32);
                    chosen.found.store(1, begin);
                    chosen.found.store(2, with);
                }
                sync_threads();
                let digit = !chosen.found.load(0) & (DIGITS as u32 - 1);
                digits_before = digits_before << DIGIT_BITS | u64::from(digit);
                rest -= chosen.found.load(1);
                // All elements with these digits are chosen. With the last digit, it is one.
                if chosen.found.load(2) == rest {
                    return digits_before << shift;
                }
            }
        }
    }
}

/// Sorts the listed keys, the largest first: the first `kept` of them. All threads of the block call it.
///
/// # Safety
/// The list is complete, and other threads do not use it meanwhile.
#[inline(always)]
unsafe fn sort(thread: Thread, count: u32, kept: u32, chosen: &Chosen) {
    // SAFETY: as promised by the caller. Barriers order the accesses. Keys differ, and so do their ranks.
    unsafe {
        let list = Tensor::new(*chosen.keys, RowMajor::new([1, count as i32], 0))
            .local_tile::<ListTile>((0u32, 0u32));
        let list = list.partition::<OfList>(thread);
        let own = list.load(0);
        let mut ranks = own.map(|_, _| 0);
        for nth in 0..i64::from(count) {
            let other = chosen.keys.load(nth);
            ranks = ranks.map(|v, rank| rank + u32::from(own.get(v) < other));
        }
        sync_threads();
        each::<<OfList as ThreadValue>::Val>(|v| {
            if list.bound().holds(v) && ranks.get(v) < kept {
                chosen.keys.store(i64::from(ranks.get(v)), own.get(v));
            }
        });
        sync_threads();
    }
}

/// Chooses the columns with the highest logits of each row, the highest first, and their softmax: as `top_k` of
/// [`routing`](super::routing) does.
///
/// # Safety
/// The logits must have these extents and be aligned for the accesses of `S`, and choices and weights `tokens · top_k`
/// elements. At most [`LISTED`] columns are chosen.
#[inline(always)]
unsafe fn long_top_k<S: RowShape, T: Float + Default>(
    thread: Thread,
    logits: Global<T>,
    choices: GlobalMut<i32>,
    weights: GlobalMut<f32>,
    args: TopKArgs,
    mut sums: BlockReduce<Sum, Threads<THREADS>>,
    chosen: Chosen,
) {
    let rows = RowMajor::new([args.tokens, args.experts], args.ld);
    // SAFETY: the launcher promises the extents.
    let logits = unsafe { Tensor::new(logits, rows) };
    let part = Part {
        thread,
        logits,
        tiles: logits.tiles::<S::Tile>()[1],
    };
    let mut own = [f32::MIN, 0.0];
    let mut nan = 0.0;
    for tile in 0..part.tiles {
        let (values, of_tile) = part.logits::<S>(tile);
        let greatest = values.fold(f32::MIN, f32::max);
        let sum = values.fold(0.0, |sum, it| sum + exp(it - greatest));
        own = merge(own, [greatest, sum]);
        nan += of_tile;
    }
    let [greatest, all] = sums.reduce(thread, own, merge);
    let count = args.top_k as u32;
    let near = match count <= THREADS {
        true => near_greatest(
            thread,
            [own[0], greatest],
            count as f32,
            args.experts,
            &mut sums,
        ),
        false => None,
    };
    // SAFETY: the storage is this block's, and barriers order its uses. There is room for all results.
    unsafe {
        let mut listed = part.list::<S>(key(near.unwrap_or(f32::MIN), i32::MAX), &chosen);
        if listed > LISTED as u32 {
            let least = part.select::<S>(count, &chosen);
            listed = part.list::<S>(least, &chosen);
        }
        sort(thread, listed, count, &chosen);

        let sorted = Tensor::new(*chosen.keys, RowMajor::new([1, args.top_k], 0))
            .local_tile::<ListTile>((0u32, 0u32));
        let sorted = sorted.partition::<OfList>(thread);
        let keys = sorted.load(0);
        let powers = Fragment::<f32, <OfList as ThreadValue>::Val>::from_fn(|v| {
            match sorted.bound().holds(v) {
                true => exp(logit_and_column(keys.get(v)).0 - greatest),
                false => 0.0,
            }
        });
        let of_chosen = powers.fold(0.0, |sum, it| sum + it);
        let [of_chosen, nan] =
            sums.reduce(thread, [of_chosen, nan], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let total = match args.normalised {
            0 => all,
            _ => of_chosen,
        } + nan;

        let results = RowMajor::new([args.tokens, args.top_k], i64::from(args.top_k));
        let row = (block_idx().x, 0u32);
        Tensor::new(choices, results)
            .local_tile::<ListTile>(row)
            .partition::<OfList>(thread)
            .store_with(|v| logit_and_column(keys.get(v)).1);
        Tensor::new(weights, results)
            .local_tile::<ListTile>(row)
            .partition::<OfList>(thread)
            .store_with(|v| powers.get(v) / total);
    }
}

macro_rules! instances {
    ($($element:ty: $vectors:ident in $shape:ident, $any:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("Rows of `", stringify!($element), "` whose vectors are aligned.")]
            #[kernel(threads = 1024, min_blocks = 1, cpu = crate::cpu::BODY)]
            pub unsafe fn $vectors(
                logits: Global<$element>,
                choices: GlobalMut<i32>,
                weights: GlobalMut<f32>,
                args: TopKArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] chosen: Chosen,
            ) = long_top_k::<$shape, $element>(thread_idx(), ..);

            #[doc = concat!("Rows of `", stringify!($element), "` of any alignment.")]
            #[kernel(threads = 1024, min_blocks = 1, cpu = crate::cpu::BODY)]
            pub unsafe fn $any(
                logits: Global<$element>,
                choices: GlobalMut<i32>,
                weights: GlobalMut<f32>,
                args: TopKArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] chosen: Chosen,
            ) = long_top_k::<RowAny, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    f32: long_top_k_f32 in Row4, long_top_k_f32_any;
    f16: long_top_k_f16 in Row8, long_top_k_f16_any;
    bf16: long_top_k_bf16 in Row8, long_top_k_bf16_any;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_logits_and_columns() {
        let logits = [f32::MIN, -1.0, -1e-40, 0.0, 1e-40, 1.0, f32::MAX];
        for pair in logits.windows(2) {
            assert!(key(pair[0], 0) < key(pair[1], i32::MAX), "{pair:?}");
        }
        assert!(key(2.0, 3) > key(2.0, 4));
        assert_eq!(key(-0.0, 3), key(0.0, 3));
        for logit in logits {
            assert_eq!(logit_and_column(key(logit, 77)), (logit, 77));
        }
    }
}
