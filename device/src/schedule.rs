//! Schedules: which tiles a persistent block computes, one after the other, and which steps of each.

use cutlet_layout_core::Raster;

use crate::{block_idx, cluster_rank, grid_dim};

/// The work of a block that stays for the whole launch, in clusters of `ROWS` blocks or, side by
/// side, of `COLUMNS` blocks.
///
/// The blocks of a cluster have neighbouring tiles of the same column, or of the same row, so that
/// they can share what that needs. Clusters take the tiles of a [`Raster`] in turns. Blocks whose
/// tile is beyond the last are given it all the same: they must keep step with their cluster.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<const ROWS: usize, const COLUMNS: usize> {
    raster: Raster,
    /// Rows of tiles, in whole clusters.
    rows: u32,
    splits: u32,
    next: u32,
}

impl<const ROWS: usize, const COLUMNS: usize> Schedule<ROWS, COLUMNS> {
    const CLUSTER: u32 = {
        assert!(
            ROWS == 1 || COLUMNS == 1,
            "a cluster extends in one direction"
        );
        (ROWS * COLUMNS) as u32
    };

    /// The running block's schedule of `tiles` = (rows, columns) of tiles, each of which comes
    /// `splits` times, for that many parts of its steps. `group` is how many rows of tiles are
    /// visited together, column by column; see [`Raster`].
    #[inline(always)]
    pub fn new(tiles: [u32; 2], group: u32, splits: u32) -> Self {
        let rows = tiles[0].div_ceil(ROWS as u32);
        let columns = tiles[1].div_ceil(COLUMNS as u32);
        Self {
            raster: Raster::new([rows, columns], group / ROWS as u32),
            rows: rows * ROWS as u32,
            splits,
            next: block_idx().x.get() / Self::CLUSTER,
        }
    }
}

impl<const ROWS: usize, const COLUMNS: usize> Iterator for Schedule<ROWS, COLUMNS> {
    type Item = Work;

    #[inline(always)]
    fn next(&mut self) -> Option<Work> {
        let tiles = self.raster.size();
        if self.next >= tiles * self.splits {
            return None;
        }
        let (mut tile, mut split) = (self.next, 0);
        while tile >= tiles {
            tile -= tiles;
            split += 1;
        }
        let (row, column) = self.raster.tile(tile);
        self.next += grid_dim().x / Self::CLUSTER;
        let rank = if Self::CLUSTER == 1 {
            0
        } else {
            cluster_rank().get()
        };
        let row = row * ROWS as u32 + if ROWS > 1 { rank } else { 0 };
        let column = column * COLUMNS as u32 + if COLUMNS > 1 { rank } else { 0 };
        Some(Work {
            row,
            column,
            split,
            splits: self.splits,
            part_row: split * self.rows + row,
        })
    }
}

/// A tile to compute, or one part of its steps.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The tile's row.
    pub row: u32,
    /// The tile's column.
    pub column: u32,
    /// Which part of the steps, …
    pub split: u32,
    /// … of how many.
    pub splits: u32,
    /// The tile's row, if the tiles of each part lie below those of the part before, each with whole
    /// clusters of rows.
    pub part_row: u32,
}

impl Work {
    /// The steps of this part, of `steps` in all: every so many, so that blocks which run at the same
    /// time read neighbouring ones.
    #[inline(always)]
    pub fn steps(&self, steps: u32) -> Steps {
        Steps {
            next: self.split,
            end: steps,
            stride: self.splits,
        }
    }

    /// How many these are, where no part has more than `most`, and none has less than one below it.
    #[inline(always)]
    pub fn step_count(&self, steps: u32, most: u32) -> u32 {
        let last = self.split + (most - 1) * self.splits;
        most - u32::from(last >= steps)
    }
}

/// The steps of a part of a tile's.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    next: u32,
    end: u32,
    stride: u32,
}

impl Iterator for Steps {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let step = self.next;
        if step >= self.end {
            return None;
        }
        self.next += self.stride;
        Some(step)
    }
}
