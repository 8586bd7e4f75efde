//! The persistent tile scheduler: the tiles that a block computes, one after the other, and the k-tiles of each tile.

use cutlet_layout_core::{Divisor, Raster};

use super::{ClusterShape, Group};
use crate::{DeviceData, cluster_rank, grid_dim};

// SAFETY: `repr(C)` structs of `u32`, of which every bit pattern is a value.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Raster<Divisor> {}
// SAFETY: as above.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Divisor {}
// SAFETY: as above.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Splits {}

/// The work tiles of a persistent block, in clusters of shape `C`.
///
/// The blocks of a cluster have neighbouring tiles, so that a row of blocks shares tiles of A and a column of blocks
/// shares tiles of B. Or they share the k-tiles of one tile. Clusters take turns with the tiles of a [`Raster`]. A
/// block also gets a tile beyond the last one if another block of its cluster has a tile, because it takes part in the
/// cluster's loads.
#[derive(Clone, Copy, Debug)]
pub struct PersistentTileScheduler<C> {
    raster: Raster<Divisor>,
    splits: Splits,
    pub(super) next: u32,
    pub(super) cluster: C,
}

impl<C: ClusterShape> PersistentTileScheduler<C> {
    /// The running block's work tiles. `raster` visits the tiles of clusters (see [`cluster_raster`]). Each tile is
    /// visited once for each split of its k-tiles.
    #[inline(always)]
    pub fn new(cluster: C, raster: Raster<Divisor>, splits: Splits) -> Self {
        Self {
            raster,
            splits,
            next: cluster.cluster_idx(),
            cluster,
        }
    }

    /// The row and the column of the running block's tile, in the `nth` tile of a cluster.
    #[inline(always)]
    pub(super) fn tile(&self, nth: u32) -> (u32, u32) {
        let (row, column) = self.raster.tile(nth);
        let rank = cluster_rank();
        (
            row * self.cluster.rows() + self.cluster.row(rank),
            column * self.cluster.columns() + self.cluster.column(rank),
        )
    }

    /// Gives the running block the work tiles of the cluster with index `slot`. Each cluster of the launch must take a
    /// different slot.
    #[inline(always)]
    pub fn take_slot(&mut self, slot: u32) {
        self.next = slot;
    }
}

impl<C: ClusterShape> Iterator for PersistentTileScheduler<C> {
    type Item = WorkTile;

    #[inline(always)]
    fn next(&mut self) -> Option<WorkTile> {
        let tiles = self.raster.size();
        let Splits { count, .. } = self.splits;
        if self.next >= tiles * count {
            return None;
        }
        let (mut tile, mut split) = (self.next, 0);
        while tile >= tiles {
            tile -= tiles;
            split += 1;
        }
        self.next += self.cluster.clusters(grid_dim().x);
        let (row, column) = self.tile(tile);
        let rank = cluster_rank();
        let index = tile * self.cluster.tiles() + self.cluster.nth_tile(rank);
        Some(WorkTile {
            row,
            column,
            k_tiles: self.splits.k_tiles(split, C::nth_share(rank)),
            split_row: split * self.raster.tiles()[0] * self.cluster.rows(),
            tile: index,
            share: Share {
                nth: split,
                count,
                first: index * count,
            },
            group: Group::default(),
        })
    }
}

/// How the k-tiles of each tile are split among work tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Splits {
    /// The number of splits.
    pub count: u32,
    /// The most k-tiles of a split that one block has.
    most: u32,
    /// The distance from the first k-tile of a split to that of the next split.
    step: u32,
    /// The distance from a k-tile of a split to the next one. With 1, the split ends after `most` k-tiles.
    stride: u32,
}

impl Splits {
    /// `count` splits that take turns with the `k_tiles` of a tile, at most as many as these. Blocks that run at the same
    /// time read neighbouring k-tiles. The `cluster_k` blocks of a cluster that share a tile take turns within a split.
    pub const fn interleaved(count: u32, k_tiles: u32, cluster_k: u32) -> Self {
        Self {
            count,
            most: k_tiles.div_ceil(count * cluster_k),
            step: cluster_k,
            stride: count * cluster_k,
        }
    }

    /// `count` splits of consecutive k-tiles. A cache line in which one k-tile ends and the next one begins is then read
    /// by one block, but for the ends of splits.
    pub const fn consecutive(count: u32, k_tiles: u32) -> Self {
        let most = k_tiles.div_ceil(count);
        Self {
            count,
            most,
            step: most,
            stride: 1,
        }
    }

    /// The k-tiles of a split, of which a block has the `nth` share.
    #[inline(always)]
    fn k_tiles(&self, split: u32, nth_share: u32) -> KTilesOf {
        let first = split * self.step;
        KTilesOf {
            first: first + nth_share,
            stride: self.stride,
            end: match self.stride {
                1 => first + self.most,
                _ => u32::MAX,
            },
        }
    }
}

/// The raster of a [`PersistentTileScheduler`] for `tiles` = [rows, columns] of tiles and `cluster` = [rows, columns]
/// of blocks. Blocks visit `group` rows of tiles together, column by column.
pub const fn cluster_raster(tiles: [u32; 2], cluster: [u32; 2], group: u32) -> Raster<Divisor> {
    let rows = tiles[0].div_ceil(cluster[0]);
    let columns = tiles[1].div_ceil(cluster[1]);
    Raster::planned([rows, columns], group / cluster[0])
}

/// The work of a block at a time: a tile, or one split of its k-tiles.
#[derive(Clone, Copy, Debug)]
pub struct WorkTile {
    /// The tile's row.
    pub row: u32,
    /// The tile's column.
    pub column: u32,
    /// Its k-tiles.
    pub(super) k_tiles: KTilesOf,
    /// The first row of tiles of the split in a partial output, in which the splits are stacked. Each split has the
    /// rows of whole clusters.
    pub split_row: u32,
    /// The tile's index among all tiles of clusters, including those beyond the last row or column. If there are
    /// streamed tiles, it is the index among these.
    pub tile: u32,
    /// Which share of the tile's k-tiles it has.
    pub share: Share,
    /// The group that the tile is of, in a grouped product.
    pub group: Group,
}

/// A share of a tile's k-tiles. The fixup adds the partials of all shares.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Its index among the tile's shares.
    pub nth: u32,
    /// The tile's shares.
    pub count: u32,
    /// The place of the first share's partials. The others follow.
    pub first: u32,
}

impl Share {
    /// The whole tile.
    pub(super) const WHOLE: Self = Self {
        nth: 0,
        count: 1,
        first: 0,
    };
}

/// Which k-tiles a work tile has.
#[derive(Clone, Copy, Debug)]
pub(super) struct KTilesOf {
    /// The first one.
    pub(super) first: u32,
    /// The distance from one to the next.
    pub(super) stride: u32,
    /// The one after the last, if the tile has as many.
    pub(super) end: u32,
}

impl KTilesOf {
    /// All of them.
    pub(super) const ALL: Self = Self {
        first: 0,
        stride: 1,
        end: u32::MAX,
    };
}

impl WorkTile {
    /// The k-tiles of this work tile, out of the tile's `k_tiles`. There is at least one. A load beyond the last k-tile
    /// reads zeros.
    ///
    /// With `backwards`, the last k-tile comes first, if the block has all of them. A block that goes backwards at
    /// every other tile begins with k-tiles that all blocks have just read, and that are still in the cache.
    #[inline(always)]
    pub fn k_tiles(&self, k_tiles: u32, backwards: bool) -> KTiles {
        let KTilesOf { first, stride, end } = self.k_tiles;
        KTiles {
            next: first,
            end: k_tiles.min(end).max(first + 1),
            stride,
            backwards: backwards && stride == 1 && first == 0 && end >= k_tiles,
        }
    }

    /// The number of k-tiles of this work tile, out of the tile's `k_tiles`, which are split in this way.
    #[inline(always)]
    pub fn k_tile_count(&self, k_tiles: u32, splits: &Splits) -> u32 {
        let KTilesOf { first, stride, end } = self.k_tiles;
        if end != u32::MAX {
            return k_tiles.min(end).saturating_sub(first).max(1);
        }
        // Splits that take turns have as many k-tiles as the first one, or one less.
        let Splits { most, .. } = *splits;
        let last = first + (most - 1) * stride;
        (most - u32::from(last >= k_tiles)).max(1)
    }
}

/// The k-tiles of a [`WorkTile`].
#[derive(Clone, Copy, Debug)]
pub struct KTiles {
    next: u32,
    end: u32,
    stride: u32,
    backwards: bool,
}

impl Iterator for KTiles {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let k_tile = self.next;
        if k_tile >= self.end {
            return None;
        }
        self.next += self.stride;
        Some(match self.backwards {
            true => self.end - 1 - k_tile,
            false => k_tile,
        })
    }
}
