//! Rasters: the order in which blocks, or the steps of a persistent block, visit a matrix's tiles.

use core::num::NonZeroU32;

use crate::{Divide, Divisor, TileIndex};

/// Tiles in groups of rows of tiles. Within a group, tiles are visited column by column: blocks
/// that run at the same time then share operands of their rows and of their columns in the L2
/// cache.
///
/// `D` is the type of its divisors: numbers, or [`Divisor`]s if the raster is made before the
/// kernel runs.
///
/// ```
/// use cutlet_layout_core::Raster;
///
/// let raster = Raster::new([3, 2], 2); // 3×2 tiles, two rows of tiles to a group
/// let order: Vec<_> = (0..6u32).map(|i| raster.tile(i)).collect();
/// assert_eq!(order, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Raster<D = NonZeroU32> {
    tiles: [u32; 2],
    /// Tiles of a group.
    group_tiles: D,
    /// Rows of tiles of a group.
    group_rows: D,
    /// Rows of tiles of the last group, if it has fewer.
    last_rows: D,
}

impl Raster {
    /// The raster of `tiles` = (rows, columns) of tiles, in groups of `group` rows of tiles, at least one.
    #[inline(always)]
    pub const fn new(tiles: [u32; 2], group: u32) -> Self {
        let group = at_least_one(group);
        Self {
            tiles,
            group_tiles: at_least_one(group.get() * tiles[1]),
            group_rows: group,
            last_rows: at_least_one(tiles[0] % group.get()),
        }
    }
}

impl Raster<Divisor> {
    /// [`Raster::new`] for a kernel that must not spend time on divisions.
    ///
    /// ```
    /// use cutlet_layout_core::Raster;
    ///
    /// let raster = Raster::planned([3, 2], 2);
    /// let order: Vec<_> = (0..6u32).map(|i| raster.tile(i)).collect();
    /// assert_eq!(order, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]);
    /// ```
    pub const fn planned(tiles: [u32; 2], group: u32) -> Self {
        let by_numbers = Raster::new(tiles, group);
        Self {
            tiles,
            group_tiles: Divisor::new(by_numbers.group_tiles),
            group_rows: Divisor::new(by_numbers.group_rows),
            last_rows: Divisor::new(by_numbers.last_rows),
        }
    }
}

impl<D: Divide> Raster<D> {
    /// Rows of tiles of a group, at most those of the matrix.
    #[inline(always)]
    pub fn group(&self) -> u32 {
        self.group_rows.divisor().min(self.tiles[0])
    }

    /// Rows and columns of tiles.
    #[inline(always)]
    pub fn tiles(&self) -> [u32; 2] {
        self.tiles
    }

    /// The number of tiles.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.tiles[0] * self.tiles[1]
    }

    /// The tile that is visited `i`th, as (row, column).
    #[inline(always)]
    pub fn tile(&self, i: impl TileIndex) -> (u32, u32) {
        let (group, within) = self.group_tiles.div_rem(i.index());
        let rows = self.group_rows.divisor();
        let first_row = group * rows;
        let (column, row) = if first_row + rows <= self.tiles[0] {
            self.group_rows.div_rem(within)
        } else {
            self.last_rows.div_rem(within)
        };
        (first_row + row, column)
    }
}

/// A divisor that the compiler knows is not 0, so that a kernel contains no panic.
#[inline(always)]
const fn at_least_one(divisor: u32) -> NonZeroU32 {
    match NonZeroU32::new(divisor) {
        Some(divisor) => divisor,
        None => NonZeroU32::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tile_is_visited_once_by_numbers_and_by_divisors() {
        for tiles in [[1, 1], [5, 7], [16, 3], [33, 9], [40, 1], [1, 40]] {
            for group in [0, 1, 2, 3, 8, 16, 64] {
                let (raster, planned) = (Raster::new(tiles, group), Raster::planned(tiles, group));
                assert_eq!(planned.group(), group.clamp(1, tiles[0]));
                let mut visited = [[false; 40]; 40];
                for i in 0..raster.size() {
                    let (row, column) = raster.tile(i);
                    assert_eq!(
                        planned.tile(i),
                        (row, column),
                        "{i} of {tiles:?} by {group}"
                    );
                    assert!(row < tiles[0] && column < tiles[1]);
                    let visited = &mut visited[row as usize][column as usize];
                    assert!(
                        !*visited,
                        "twice at ({row}, {column}) of {tiles:?} by {group}"
                    );
                    *visited = true;
                }
            }
        }
    }
}
