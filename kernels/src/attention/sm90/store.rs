//! The end of a tile: a consumer divides its output by the sums of the weights, and stores it.

use cutlet_device::sm90::store_accumulator;
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, MmaInstruction, fence_async_shared, sync_warp};
use cutlet_layout_core::{Fragment, RowMajor, Tensor};

use super::config::{CONSUMERS, Config, ROWS, Tile};
use crate::attention::args::{Args, OutputArgs};
use crate::attention::scheduler::{Sequence, WorkTile};
use crate::attention::softmax::{PerRow, normalised};

pub(super) use crate::attention::rows::Rows;

/// A thread's part of a consumer's output.
pub(super) type Output<C> = Fragment<f32, <<C as Config>::Output as MmaInstruction>::Values>;

impl Rows {
    /// The rows of a consumer in a work tile.
    #[inline(always)]
    pub(super) fn of(args: &Args, work: u32, consumer: WarpgroupIdx) -> Self {
        let tile = WorkTile::of(&args.tiles, work);
        let block = tile.of_queries * CONSUMERS as u32 + consumer.own(1, 0);
        Self {
            sequence: Sequence::of(&args.sequences, tile.sequence),
            tile,
            first_query: block as i32 * ROWS as i32,
        }
    }
}

/// Multiplies the rows by their factors, and stores them by way of a tile in shared memory, which TMA may fill again
/// after the consumer's threads have met.
///
/// # Safety
/// The tile must be the consumer's. The output must have these rows.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn store<C: Config>(
    tile: Tile<C, C::Queries>,
    output: GlobalMut<C::Element>,
    args: &OutputArgs,
    rows: Rows,
    (values, factors): (&Output<C>, PerRow),
    thread: WarpgroupThread,
) {
    let values = normalised(values, factors);
    let extent = [rows.sequence.queries, args.features];
    // SAFETY: as promised by the caller. A warp reads the rows that it has written.
    unsafe {
        store_accumulator::<C::Output, _, _, _>(tile, 0u32, 0, thread, &values);
        sync_warp();
        let to = output.offset(rows.offset(args.strides));
        let from = tile.tensor().partition::<C::Stores>(thread);
        let to = Tensor::new(to, RowMajor::new(extent, args.strides[1]))
            .local_tile::<C::TileOfOutput>((rows.first_query as u32 / ROWS as u32, 0))
            .partition::<C::Stores>(thread);
        to.store(&from.load(C::Element::default()));
    }
    fence_async_shared();
}
