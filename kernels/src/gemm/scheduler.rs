//! The tile scheduler's seam: which tiles a block computes, in which order, and which k-tiles of each.

use cutlet_device::collective::{AffinitySlot, ClusterShape, PersistentTileScheduler, WorkTile};

use super::args::SchedulerArgs;

/// The rows of C that a warp stores. Edge tiles shift by multiples of them.
pub const WARP_ROWS: usize = 16;

/// A tile scheduler. Every role of a block asks it anew: values that a role kept for another one would hold registers
/// throughout.
pub trait TileScheduler {
    /// The running block's work tiles, in order.
    type WorkTiles: Iterator<Item = WorkTile>;

    /// The running block's work tiles, from the first one on.
    fn work_tiles(&self) -> Self::WorkTiles;

    /// Where the tile begins, in units of [`WARP_ROWS`] rows and of an epilogue subtile's columns.
    fn begin(&self, work: WorkTile) -> (u32, u32);

    /// K-tiles of A and B.
    fn k_tiles(&self) -> u32;

    /// How many of them the work tile has.
    fn k_tile_count(&self, work: WorkTile) -> u32;
}

/// The scheduler of blocks that stay for the whole launch, in clusters of shape `C`.
#[derive(Clone, Copy, Debug)]
pub struct Persistent<'a, C> {
    args: &'a SchedulerArgs,
    /// A tile's rows and columns, in the units of [`TileScheduler::begin`].
    tile: [u32; 2],
    /// The slot that the cluster claimed, if it claims one.
    slot: AffinitySlot,
    claims_slot: bool,
    cluster: core::marker::PhantomData<C>,
}

impl<'a, C: ClusterShape> Persistent<'a, C> {
    /// The scheduler of a launch with these arguments.
    #[inline(always)]
    pub fn new(args: &'a SchedulerArgs, tile: [u32; 2], slot: AffinitySlot) -> Self {
        Self {
            args,
            tile,
            slot,
            claims_slot: C::TILES > 1 && !args.affinity.is_none(),
            cluster: core::marker::PhantomData,
        }
    }

    /// Whether the running block's cluster claims a slot.
    #[inline(always)]
    pub fn claims_slot(&self) -> bool {
        self.claims_slot
    }
}

impl<C: ClusterShape> TileScheduler for Persistent<'_, C> {
    type WorkTiles = PersistentTileScheduler<C>;

    #[inline(always)]
    fn work_tiles(&self) -> PersistentTileScheduler<C> {
        let mut work_tiles = PersistentTileScheduler::new(self.args.raster, self.args.splits);
        if self.claims_slot {
            work_tiles.take_slot(self.slot.claimed());
        }
        work_tiles
    }

    #[inline(always)]
    fn begin(&self, work: WorkTile) -> (u32, u32) {
        let [last_row, last_column] = self.args.last;
        let [rows, columns] = self.tile;
        (
            (work.row * rows).min(last_row),
            (work.column * columns).min(last_column),
        )
    }

    #[inline(always)]
    fn k_tiles(&self) -> u32 {
        self.args.k_tiles
    }

    #[inline(always)]
    fn k_tile_count(&self, work: WorkTile) -> u32 {
        work.k_tile_count(self.args.k_tiles, self.args.split_k_tiles)
    }
}
