//! The mainloop's seam: how the accumulators of a tile are computed from its k-tiles.

use cutlet_device::collective::KTiles;

/// A work tile, as a mainloop sees it.
#[derive(Clone, Copy, Debug)]
pub struct MainloopTile {
    /// Where it begins, as [`TileScheduler::begin`](super::scheduler::TileScheduler::begin) counts.
    pub begin: (u32, u32),
    /// Its k-tiles, in the order in which they are loaded.
    pub k_tiles: KTiles,
    /// The number of its k-tiles, at least one.
    pub count: u32,
    /// The first row in A's map of the group that it is of, and which B of a batch it multiplies, along the inner mode.
    pub group: (i32, i32),
}

/// A mainloop, for a consumer warpgroup of a block.
pub trait Mainloop {
    /// The accumulators that a thread holds.
    type Accumulators;

    /// Whether the next work tile is this warpgroup's. If it is another one's, its `k_tiles` k-tiles are passed over.
    fn takes_next(&mut self, k_tiles: u32) -> bool;

    /// Waits for the next `k_tiles` k-tiles, and releases them. None of the work tile's rows are this warpgroup's.
    fn pass_over(&mut self, k_tiles: u32);

    /// Multiplies the next k-tiles, which are those of the tile.
    fn mma(&mut self, tile: MainloopTile) -> Self::Accumulators;
}
