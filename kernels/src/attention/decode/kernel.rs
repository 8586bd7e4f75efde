//! The kernel: what a block does, and what becomes of its warps' outputs.

use cutlet_device::{
    Global, GlobalMut, atomic_count, block_idx, grid_dependency_wait, grid_dim, lane_idx,
    launch_dependents, sync_threads,
};
use cutlet_layout_core::{
    CopyPartition, Divide, Engine, L, RowMajor, Tensor, ThreadValue, TiledCopy, Tv, Width,
    tile_origin,
};

use super::args::{DecodeArgs, ROWS, Work};
use super::cache::{CachedRows, KeysAndValues};
use super::combine::combine_row;
use super::partial::RowSum;
use super::rows::{PackedRows, matrix};
use super::scores::Scores;
use super::storage::{Outputs, Storage, block_of};
use super::warp::Warp;
use super::warps::Warps;
use crate::attention::element::{Element, TileOfBlock, warp_of_block};

/// 64 features of the outputs in 128 parts: a thread of 128 would have each. A part has elements of one row.
type Parts = TiledCopy<Width<4>, L!((16, 8):(8, 1)), L!((1, 4):(0, 1))>;
/// The first parts of a warp, and of a lane.
type PartsOfWarp = L!((1, 32):(1@0, 1@1));
type PartOfLane = Tv<L!(32:1@1), L!(1:1@1)>;
/// The elements of a part.
type OfPart = <CopyPartition<Parts, TileOfBlock> as ThreadValue>::Val;

/// Threads of a block.
pub const fn threads<W: Warps>() -> u32 {
    32 * W::WARPS
}

/// Attends with a tile of rows to the keys of a split, and writes the output, or the partial output and the logarithms
/// of sums if there are several splits.
///
/// # Safety
/// The tensors must be those of the arguments. With several splits, there must be 16 rows of `D` partial outputs for
/// each block, and as many logarithms, and a counter for each tile of rows if there are counters.
#[inline(always)]
pub unsafe fn decode<T: Element, W: Warps, const D: usize, const BLOCKS: usize>(
    queries: Global<T>,
    keys: Global<T>,
    values: Global<T>,
    output: GlobalMut<T>,
    args: DecodeArgs,
    storage: Storage<T, W, D>,
) {
    grid_dependency_wait();
    launch_dependents();
    let work = args.work.of_block(block_idx().x);
    // SAFETY: the launcher promises the tensors. Barriers order the accesses to shared memory.
    unsafe {
        let sequence = args.sequence(work.sequence);
        let visible = args.visible(sequence);
        let extent = [visible.end - visible.first, args.features];
        let rows = CachedRows::new(args.cache, work.sequence, visible.first);
        let cache = KeysAndValues { keys, values }.offset(args.cache.of_head(work.head));
        let warp = Warp::<T, W, D, BLOCKS>::new(storage.first());
        let attended = warp.attend(
            PackedRows::of_tile(queries, args.queries, args.work, work, args.features),
            matrix(cache, rows, extent),
            args.work
                .tiles_of_split(work.split, extent[0] as u32, W::WARPS),
            Scores::new(&args, work, sequence, visible.first),
        );
        // All warps are done with their stages.
        sync_threads();
        warp.give(attended, storage.second());
        sync_threads();
        store::<T, W, D, BLOCKS>(storage.second(), output, &args, work);
        if args.work.has_splits() && args.has_counters != 0 {
            combine_if_last::<T, W, D, BLOCKS>(storage.second(), output, &args, work);
        }
    }
}

/// Combines the splits of the block's tile of rows if the block's is the last one that was written. The warps take the
/// rows by turns.
///
/// # Safety
/// As [`decode`]. The block has written its partial outputs.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn combine_if_last<T: Element, W: Warps, const D: usize, const BLOCKS: usize>(
    outputs: Outputs<W, D>,
    output: GlobalMut<T>,
    args: &DecodeArgs,
    work: Work,
) {
    let last = args.work.splits.divisor() - 1;
    // All threads have written partial outputs, and are done with those in shared memory.
    sync_threads();
    if warp_of_block() == 0 && lane_idx().is_first() {
        // SAFETY: there is a counter for each tile. The place in shared memory is free.
        unsafe {
            let before = atomic_count(args.counters, args.work.tile_of(work).into(), last);
            let is_last = f32::from(u8::from(before == last));
            outputs.logarithms.store(0, is_last);
        }
    }
    sync_threads();
    // SAFETY: the thread that counted has written it.
    if unsafe { outputs.logarithms.load(0) } == 0.0 {
        return;
    }
    let first = work.tile * ROWS;
    let end = (first + ROWS).min(args.work.rows.divisor());
    let mut row = first + warp_of_block();
    while row < end {
        // SAFETY: as promised by the caller. All splits have been counted, so their partial outputs have been written.
        unsafe {
            combine_row::<T, D, BLOCKS>(output, args, [work.sequence, work.head, row]);
        }
        row += W::WARPS;
    }
}

/// Merges the outputs of the warps, and stores them. The threads take the parts by turns.
///
/// # Safety
/// As [`decode`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store<T: Element, W: Warps, const D: usize, const BLOCKS: usize>(
    outputs: Outputs<W, D>,
    output: GlobalMut<T>,
    args: &DecodeArgs,
    work: Work,
) {
    let of_warp = Tensor::identity([1, 128]).local_tile::<PartsOfWarp>((0u32, warp_of_block()));
    let [_, first] = of_warp.partition::<PartOfLane>(lane_idx()).coordinate(0);
    let mut part = first as u32;
    while part < Parts::THREADS {
        // SAFETY: as promised by the caller.
        unsafe { store_part::<T, W, D, BLOCKS>(part, outputs, output, args, work) };
        part += const { threads::<W>() };
    }
}

/// Merges a part of the outputs, and stores it.
///
/// # Safety
/// As [`decode`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store_part<T: Element, W: Warps, const D: usize, const BLOCKS: usize>(
    part: u32,
    outputs: Outputs<W, D>,
    output: GlobalMut<T>,
    args: &DecodeArgs,
    work: Work,
) {
    let part = Parts::thread_slice(part);
    let all = Tensor::identity([16, 64]).local_tile::<TileOfBlock>((0u32, 0u32));
    let [row, column] = part.partition(all).coordinate(0);
    let mut sum = RowSum::<OfPart, BLOCKS>::new();
    for warp in 0..W::WARPS {
        let tile = outputs.values.tile(warp);
        // SAFETY: all warps have written their outputs.
        unsafe {
            let place = warp * ROWS + row as u32;
            sum.add(outputs.logarithms.load(i64::from(place)), |block| {
                part.partition(block_of(tile, block).tensor()).load(0.0)
            });
        }
    }
    let block = block_idx().x;
    // SAFETY: as promised by the caller.
    unsafe {
        if args.work.has_splits() {
            let rows = (grid_dim().x * ROWS) as i32;
            let partials = Tensor::new(args.partials, RowMajor::new([rows, D as i32], D as i64));
            for (nth, values) in sum.output().iter().enumerate() {
                let tile = partials.local_tile::<TileOfBlock>((block, nth as u32));
                part.partition(tile).store(values);
            }
            if column == 0 {
                let [first, _] = tile_origin::<L!((16, 1):(1@0, 1@1))>((block, 0u32));
                args.logarithms
                    .store(i64::from(first + row), sum.logarithm());
            }
            return;
        }
        let query_and_head = args
            .work
            .query_and_head(work.head, work.tile * ROWS + row as u32);
        sum.add_sink(args.sink(query_and_head.1));
        if column == 0 {
            args.store_log_sum_exp(work.sequence, query_and_head, sum.logarithm());
        }
        let output = PackedRows::of_tile(output, args.output, args.work, work, args.features);
        for (nth, values) in sum.output().iter().enumerate() {
            let tile = output.local_tile::<TileOfBlock>((0u32, nth as u32));
            part.partition(tile)
                .store(&values.map(|_, value| T::from_f32(value)));
        }
    }
}
