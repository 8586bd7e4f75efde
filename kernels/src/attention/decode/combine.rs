//! The output of a row, which a warp makes of the partial outputs of splits, and the kernel that makes those of all rows.

use cutlet_device::{
    DeviceData, Float, GlobalMut, block_idx, grid_dependency_wait, lane_idx, launch_dependents,
    warp_idx_sync,
};
use cutlet_layout_core::{
    CopyPartition, Divide, Fixed, Fragment, L, M, RowMajor, StaticLayout, Tensor, ThreadValue,
    TiledCopy, Width, each, tile_origin,
};

use super::args::{DecodeArgs, ROWS, Work};
use super::partial::RowSum;

/// Threads of a block: four warps.
pub const THREADS: u32 = 128;
/// Rows of a block.
pub const ROWS_OF_BLOCK: u32 = 4;
/// Blocks of 64 features of partial outputs that a warp loads at a time.
type Batch = M<16, 1>;
/// 64 features of a row, one after the other.
type InRow = L!((1, 64):(64, 1));
/// The same as a tile, and a lane's elements of it.
type Tile = L!((1, 64):(1@0, 1@1));
type Elements = TiledCopy<Width<2>, L!((1, 32):(0, 1)), L!((1, 2):(0, 1))>;
type OfLane = <CopyPartition<Elements, Tile> as ThreadValue>::Val;

/// Combines the partial outputs of each row's splits.
///
/// # Safety
/// As for the kernel that wrote them, with its arguments.
#[inline(always)]
pub unsafe fn combine<T: Float + DeviceData, const D: usize, const BLOCKS: usize>(
    output: GlobalMut<T>,
    args: DecodeArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let [first, _] = tile_origin::<L!((4, 1):(1@0, 1@1))>((block_idx().x, 0u32));
    let [in_block, _] = tile_origin::<L!((1, 1):(1@0, 1@1))>((warp_idx_sync(), 0u32));
    let (of_head, row) = args.work.rows.div_rem((first + in_block) as u32);
    let (sequence, head_of_keys) = args.work.heads_of_keys.div_rem(of_head);
    if sequence as i32 >= args.work.sequences {
        return;
    }
    // SAFETY: as promised by the caller. The kernel before has written all partial outputs.
    unsafe { combine_row::<T, D, BLOCKS>(output, &args, [sequence, head_of_keys, row]) };
}

/// Combines the partial outputs of a row of a head of keys, by a warp.
///
/// # Safety
/// As [`combine`]. The partial outputs must have been written.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn combine_row<T: Float + DeviceData, const D: usize, const BLOCKS: usize>(
    output: GlobalMut<T>,
    args: &DecodeArgs,
    [sequence, head_of_keys, row]: [u32; 3],
) {
    let work = |split| Work {
        tile: row / ROWS,
        head: head_of_keys,
        split,
        sequence,
    };
    let lane = Elements::thread_slice(lane_idx());
    // A tile whose bounds the compiler knows: a check would keep the loads of a batch apart.
    let partials = |row: u32, block: usize| {
        let start = i64::from(row) * D as i64 + (64 * block) as i64;
        // SAFETY: the launcher promises rows for each block.
        unsafe {
            Tensor::new(
                args.partials.as_global().offset(start),
                Fixed::<InRow>::new(),
            )
        }
    };
    let splits = args.work.splits.divisor();
    let mut sum = RowSum::<OfLane, BLOCKS>::new();
    let rows_at_once = const { Batch::SIZE / BLOCKS };
    let mut next = 0;
    while next < splits {
        let row_of =
            |nth: u32| args.work.block_of(work((next + nth).min(splits - 1))) * ROWS + row % ROWS;
        let batch = Fragment::<_, Batch>::from_fn(|nth| {
            // Rows beyond these are never read, and the compiler drops them.
            if nth >= rows_at_once {
                return (f32::NEG_INFINITY, [Fragment::filled(0.0); BLOCKS]);
            }
            let row = row_of(nth as u32);
            // SAFETY: as above.
            let logarithm = unsafe { args.logarithms.load(i64::from(row)) };
            let logarithm = match next + (nth as u32) < splits {
                true => logarithm,
                false => f32::NEG_INFINITY,
            };
            let values = core::array::from_fn::<_, BLOCKS, _>(|block| {
                lane.partition(partials(row, block)).load(0.0)
            });
            (logarithm, values)
        });
        each::<Batch>(|nth| {
            if nth < rows_at_once {
                let (logarithm, values) = batch.get(nth);
                sum.add(logarithm, |block| values[block]);
            }
        });
        next += rows_at_once as u32;
    }
    let (query, head) = args.work.query_and_head(head_of_keys, row);
    let [of_sequence, of_query, of_head] = args.output;
    let start =
        i64::from(sequence) * of_sequence + i64::from(query) * of_query + i64::from(head) * of_head;
    // SAFETY: as promised by the caller.
    let output = unsafe {
        sum.add_sink(args.sink(head));
        if lane_idx().is_first() {
            args.store_log_sum_exp(sequence, (query, head), sum.logarithm());
        }
        Tensor::new(output.offset(start), RowMajor::new([1, args.features], 0))
    };
    for (block, values) in sum.output().iter().enumerate() {
        let values = values.map(|_, value| T::from_f32(value));
        lane.partition(output.local_tile::<Tile>((0u32, block as u32)))
            .store(&values);
    }
}
