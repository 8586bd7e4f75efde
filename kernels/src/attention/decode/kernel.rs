//! The kernel: what a block does, and what becomes of its warps' outputs.

use cutlet_device::{Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, grid_dim, sync_threads};
use cutlet_layout_core::{
    CopyPartition, Engine, L, RowMajor, Tensor, ThreadValue, TiledCopy, Width, tile_origin,
};

use super::args::{DecodeArgs, ROWS, WARPS, Work};
use super::cache::{CachedRows, KeysAndValues};
use super::partial::RowSum;
use super::rows::{PackedRows, matrix};
use super::scores::Scores;
use super::storage::{Outputs, Storage, block_of};
use super::warp::Warp;
use crate::attention::element::{Element, TileOfBlock};

/// The threads' elements of 64 features of the outputs. Each has elements of one row.
type Elements = TiledCopy<Width<4>, L!((16, 8):(8, 1)), L!((1, 4):(0, 1))>;
/// A thread's elements of 64 features.
type OfThread = <CopyPartition<Elements, TileOfBlock> as ThreadValue>::Val;

/// Threads of a block.
pub const THREADS: u32 = 32 * WARPS;

/// Attends with a tile of rows to the keys of a split, and writes the output, or the partial output and the logarithms
/// of sums if there are several splits.
///
/// # Safety
/// The tensors must be those of the arguments. With several splits, there must be 16 rows of `D` partial outputs for
/// each block, and as many logarithms.
#[inline(always)]
pub unsafe fn decode<T: Element, const D: usize, const BLOCKS: usize>(
    thread: ThreadIdx<impl ThreadGroup>,
    queries: Global<T>,
    keys: Global<T>,
    values: Global<T>,
    output: GlobalMut<T>,
    args: DecodeArgs,
    storage: Storage<T, D>,
) {
    let work = args.work.of_block(block_idx().x);
    // SAFETY: the launcher promises the tensors. Barriers order the accesses to shared memory.
    unsafe {
        let sequence = args.sequence(work.sequence);
        let visible = args.visible(sequence);
        let extent = [visible.end - visible.first, args.features];
        let rows = CachedRows::new(args.cache, work.sequence, visible.first);
        let cache = KeysAndValues { keys, values }.offset(args.cache.of_head(work.head));
        let warp = Warp::<T, D, BLOCKS>::new(storage.first());
        let attended = warp.attend(
            PackedRows::of_tile(queries, args.queries, args.work, work, args.features),
            matrix(cache, rows, extent),
            args.work.tiles_of_split(work.split, extent[0] as u32),
            Scores::new(&args, work, sequence, visible.first),
        );
        // All warps are done with their stages.
        sync_threads();
        warp.give(attended, storage.second());
        sync_threads();
        store::<T, D, BLOCKS>(thread, storage.second(), output, &args, work);
    }
}

/// Merges the outputs of the warps, and stores them.
///
/// # Safety
/// As [`decode`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store<T: Element, const D: usize, const BLOCKS: usize>(
    thread: ThreadIdx<impl ThreadGroup>,
    outputs: Outputs<D>,
    output: GlobalMut<T>,
    args: &DecodeArgs,
    work: Work,
) {
    let elements = Elements::thread_slice(thread);
    let all = Tensor::identity([16, 64]).local_tile::<TileOfBlock>((0u32, 0u32));
    let [row, column] = elements.partition(all).coordinate(0);
    let mut sum = RowSum::<OfThread, BLOCKS>::new();
    for warp in 0..WARPS {
        let tile = outputs.values.tile(warp);
        // SAFETY: all warps have written their outputs.
        unsafe {
            let place = warp * ROWS + row as u32;
            sum.add(outputs.logarithms.load(i64::from(place)), |block| {
                elements.partition(block_of(tile, block).tensor()).load(0.0)
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
                elements.partition(tile).store(values);
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
            elements
                .partition(tile)
                .store(&values.map(|_, value| T::from_f32(value)));
        }
    }
}
