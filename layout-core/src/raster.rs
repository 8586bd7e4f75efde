//! Rasters: the order in which blocks, or the steps of a persistent block, visit a matrix's tiles.

use core::num::NonZeroU32;

use crate::TileIndex;

/// Tiles in groups of rows: within a group, tiles are visited column by column, so that blocks
/// which run at the same time share both their rows' and their columns' operands in the L2 cache.
///
/// ```
/// use cutlet_layout_core::Raster;
///
/// let raster = Raster::new([3, 2], 2); // 3×2 tiles, two rows of tiles to a group
/// let order: Vec<_> = (0..6u32).map(|i| raster.tile(i)).collect();
/// assert_eq!(order, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Raster {
    tiles: [u32; 2],
    group: u32,
    /// Tiles of a full group.
    group_tiles: NonZeroU32,
}

impl Raster {
    /// The raster of `tiles` = (rows, columns) of tiles, in groups of `group` rows of tiles.
    #[inline(always)]
    pub fn new(tiles: [u32; 2], group: u32) -> Self {
        Self {
            tiles,
            group,
            group_tiles: at_least_one(group * tiles[1]),
        }
    }

    /// The number of tiles.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.tiles[0] * self.tiles[1]
    }

    /// The tile that is visited `i`th, as (row, column).
    #[inline(always)]
    pub fn tile(&self, i: impl TileIndex) -> (u32, u32) {
        let i = i.index();
        let first_row = i / self.group_tiles * self.group;
        let within = i % self.group_tiles;
        // The last group may have fewer rows.
        let rows = at_least_one(self.group.min(self.tiles[0] - first_row));
        (first_row + within % rows, within / rows)
    }
}

/// A divisor that the compiler knows not to be 0, so that a kernel has no panic to call.
#[inline(always)]
fn at_least_one(divisor: u32) -> NonZeroU32 {
    NonZeroU32::new(divisor).unwrap_or(NonZeroU32::MIN)
}
