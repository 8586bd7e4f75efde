//! The end of a tile: a consumer divides its output by the sums of the weights, and stores it.

use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, MmaInstruction};
use cutlet_layout_core::{Fragment, RowMajor};

use super::config::{CONSUMERS, Config, ROWS, Tile};
use super::rows::store_rows;
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
    let to = output.offset(rows.offset(args.strides));
    // SAFETY: as promised by the caller.
    unsafe {
        store_rows::<C::Output, _, C::Queries, C::Stores>(
            tile,
            (to, RowMajor::new(extent, args.strides[1])),
            (rows.first_query as u32 / ROWS as u32, 0u32),
            &values,
            thread,
        );
    }
}
