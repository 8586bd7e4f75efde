//! Schedules: which tiles a persistent block computes, one after the other.

use cutlet_layout_core::Raster;

use crate::{block_idx, cluster_rank, grid_dim};

/// The tiles of a block that stays for the whole launch, in clusters of `CLUSTER` blocks.
///
/// The blocks of a cluster have neighbouring rows of tiles and the same column, so that they can
/// share what a column needs. Clusters take the tiles of a [`Raster`] in turns. Blocks whose row
/// is beyond the last are given it all the same: they must keep step with their cluster.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<const CLUSTER: u32> {
    raster: Raster,
    next: u32,
}

impl<const CLUSTER: u32> Schedule<CLUSTER> {
    /// The running block's schedule of `tiles` = (rows, columns) of tiles. `group` is how many rows
    /// of tiles are visited together, column by column; see [`Raster`].
    #[inline(always)]
    pub fn new(tiles: [u32; 2], group: u32) -> Self {
        let raster = Raster::new([tiles[0].div_ceil(CLUSTER), tiles[1]], group / CLUSTER);
        Self {
            raster,
            next: block_idx().x.get() / CLUSTER,
        }
    }
}

impl<const CLUSTER: u32> Iterator for Schedule<CLUSTER> {
    /// (row, column), in tiles.
    type Item = (u32, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.next >= self.raster.size() {
            return None;
        }
        let (row, column) = self.raster.tile(self.next);
        self.next += grid_dim().x / CLUSTER;
        let rank = if CLUSTER == 1 {
            0
        } else {
            cluster_rank().get()
        };
        Some((row * CLUSTER + rank, column))
    }
}
