//! sample_split: what [`sample`](super::sample) needs of rows that are few and long: a block lists the elements of a split
//! of a row that a small `top_k` may leave.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    DeviceData, Float, Global, SharedArray, SharedStorage, Threads, block_idx,
    grid_dependency_wait, instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{Divide, Divisor, Tensor};
use half::{bf16, f16};

use super::sample::{Part, Splits, list};
use super::{RowStrides, Space};
use crate::selection::{Row4, Row8, RowShape, Sum, THREADS, Thread, merge, near_greatest};

/// Extents and strides of splits, which are the rows of the space.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SplitArgs {
    /// Strides of the splits.
    pub logits: RowStrides,
    /// The splits of all rows.
    pub space: Space,
    /// What is found.
    pub splits: Splits,
    /// Splits of a row.
    pub of_row: Divisor,
    /// 1 / temperature.
    pub inverse: f32,
    /// The number of elements of a row that are accepted at most, but for equal ones.
    pub top_k: i32,
    /// Unused.
    pub padding: u32,
}

/// The end of each warp's elements in the list, behind a 0.
#[derive(SharedStorage)]
pub struct Ends {
    ends: SharedArray<f32, 33>,
}

/// Lists the elements of a split that are not below its `top_k` greatest ones, and a few more.
///
/// # Safety
/// The operands must have these extents, and be aligned for the accesses of `S`.
#[inline(always)]
unsafe fn sample_split<S: RowShape, T: Float + Default>(
    thread: Thread,
    logits: Global<T>,
    args: SplitArgs,
    mut sums: BlockReduce<Sum, Threads<THREADS>>,
    ends: Ends,
) {
    grid_dependency_wait();
    launch_dependents();
    let SplitArgs { space, splits, .. } = args;
    // SAFETY: the launcher promises the extents.
    let logits = unsafe { Tensor::new(logits, space.rows(args.logits)) };
    let tiles = logits.tiles::<S::Tile>()[1];
    let place = logits
        .local_tile::<S::Tile>((block_idx().x, 0u32))
        .partition::<S::Threads>(thread);
    let [nth, first] = place.bound().coordinate(0);
    let part = Part {
        thread,
        logits,
        inverse: args.inverse,
    };
    let own = part.sum::<S>(tiles);
    let [greatest, sum] = sums.reduce(thread, own, merge);
    let count = args.top_k as f32;
    // With few elements above −∞, all of them are listed.
    let least = near_greatest(thread, [own[0], greatest], count, space.columns, &mut sums)
        .unwrap_or(f32::MIN);
    let (_, in_row) = args.of_row.div_rem(nth as u32);
    let room = splits.room.divisor();
    let (begin, before) = (
        i64::from(nth) * i64::from(room),
        in_row * space.columns as u32,
    );
    // SAFETY: the launcher promises room for the results. The storage is this block's.
    unsafe {
        let store = |at, logit, column| {
            splits.logits.store(begin + at, logit);
            splits.columns.store(begin + at, before + column);
        };
        let count = list::<S, T>(&part, tiles, least, room, *ends.ends, store);
        if first == 0 {
            let nth = i64::from(nth);
            splits.counts.store(nth, count.unwrap_or(0));
            splits.sums.store(2 * nth, greatest);
            let sum = if count.is_some() { sum } else { f32::NAN };
            splits.sums.store(2 * nth + 1, sum);
        }
    }
}

macro_rules! instances {
    ($($name:ident of $element:ty, $shape:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("Splits of rows of `", stringify!($element), "`, whose vectors are aligned.")]
            #[kernel(threads = 1024, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                logits: Global<$element>,
                args: SplitArgs,
                #[shared] sums: BlockReduce<Sum, Threads<THREADS>>,
                #[shared] ends: Ends,
            ) = sample_split::<$shape, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    sample_split_f32 of f32, Row4;
    sample_split_f16 of f16, Row8;
    sample_split_bf16 of bf16, Row8;
}
