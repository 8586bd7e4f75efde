//! The end of a tile: a consumer divides its output by the sums of the weights, and stores it.

use cutlet_device::sm90::store_accumulator;
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, MmaInstruction, fence_async_shared, sync_warp};
use cutlet_layout_core::{Fragment, RowMajor, Tensor, each};

use super::config::{CONSUMERS, Config, ROWS, Tile};
use crate::attention::args::{Args, OutputArgs};
use crate::attention::mask::{RowsOfThread, ScorePlaces};
use crate::attention::scheduler::{Sequence, WorkTile};
use crate::attention::softmax::PerRow;

/// A thread's part of a consumer's output.
pub(super) type Output<C> = Fragment<f32, <<C as Config>::Output as MmaInstruction>::Values>;

/// Where the rows of a consumer go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Their sequence.
    pub sequence: Sequence,
    /// Their tile.
    pub tile: WorkTile,
    /// Which of the tile's rows.
    pub consumer: WarpgroupIdx,
}

impl Rows {
    /// The rows of a consumer in a work tile.
    #[inline(always)]
    pub fn of(args: &Args, work: u32, consumer: WarpgroupIdx) -> Self {
        let tile = WorkTile::of(&args.tiles, work);
        Self {
            sequence: Sequence::of(&args.sequences, tile.sequence),
            tile,
            consumer,
        }
    }

    /// The block of rows of the sequence, in units of [`ROWS`].
    #[inline(always)]
    fn block(&self) -> u32 {
        self.tile.of_queries * CONSUMERS as u32 + self.consumer.own(1, 0)
    }

    /// The first row's query.
    #[inline(always)]
    pub fn first_query(&self) -> i32 {
        self.block() as i32 * ROWS as i32
    }

    /// Elements from the first one to those of the sequence and the head, by these strides.
    #[inline(always)]
    fn offset(&self, [sequence, row, head]: [i64; 3]) -> i64 {
        i64::from(self.sequence.nth) * sequence
            + i64::from(self.sequence.first_query) * row
            + i64::from(self.tile.head) * head
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
    let values = values.map(|v, value| match factors[ScorePlaces::row_of(v)] {
        // Whatever the values are.
        0.0 => 0.0,
        factor => value * factor,
    });
    let extent = [rows.sequence.queries, args.features];
    // SAFETY: as promised by the caller. A warp reads the rows that it has written.
    unsafe {
        store_accumulator::<C::Output, _, _, _>(tile, 0u32, 0, thread, &values);
        sync_warp();
        let to = output.offset(rows.offset(args.strides));
        let from = tile.tensor().partition::<C::Stores>(thread);
        let to = Tensor::new(to, RowMajor::new(extent, args.strides[1]))
            .local_tile::<C::TileOfOutput>((rows.block(), 0))
            .partition::<C::Stores>(thread);
        to.store(&from.load(C::Element::default()));
    }
    fence_async_shared();
}

/// Stores the logarithms of the rows' sums.
///
/// # Safety
/// They must have these rows.
#[inline(always)]
pub(super) unsafe fn store_log_sum_exp(
    args: &OutputArgs,
    rows: Rows,
    logarithms: PerRow,
    places: ScorePlaces,
) {
    if args.writes_log_sum_exp == 0 || places.column != 0 {
        return;
    }
    let to = args
        .log_sum_exp
        .offset(rows.offset(args.log_sum_exp_strides));
    each::<RowsOfThread>(|nth| {
        let query = rows.first_query() + places.row_below(nth);
        if query < rows.sequence.queries {
            let index = i64::from(query) * args.log_sum_exp_strides[1];
            // SAFETY: as promised by the caller.
            unsafe { to.store(index, logarithms[nth]) };
        }
    });
}
