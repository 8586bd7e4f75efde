//! The mainloop's seam: how the accumulators of a tile are computed from its k-tiles.

/// A mainloop, for a consumer warpgroup of a block.
pub trait Mainloop {
    /// The accumulators that a thread holds.
    type Accumulators;

    /// Whether the next work tile is this warpgroup's. If it is another one's, its `k_tiles` k-tiles are passed over.
    fn takes_next(&mut self, k_tiles: u32) -> bool;

    /// Waits for the next `k_tiles` k-tiles, and releases them. None of the work tile's rows are this warpgroup's.
    fn pass_over(&mut self, k_tiles: u32);

    /// Multiplies the next `k_tiles` k-tiles, at least one.
    fn mma(&mut self, k_tiles: u32) -> Self::Accumulators;
}
