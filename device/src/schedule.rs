//! Schedules: which tiles a persistent block computes, one after the other, and which steps of each.

use cutlet_layout_core::{Divisor, Raster};

use crate::{DeviceData, block_idx, cluster_rank, grid_dim};

// SAFETY: `repr(C)` structs of `u32`, of which every bit pattern is a value.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Raster<Divisor> {}

/// The work of a block that stays for the whole launch, in clusters of `ROWS` × `COLUMNS` blocks, or of
/// `DEPTH` blocks at the same tile.
///
/// The blocks of a cluster have neighbouring tiles, so that those of a row and those of a column can share what
/// both need; or they share a tile's steps. Clusters take the tiles of a
/// [`Raster`] in turns. Blocks whose tile is beyond the last are given it all the same: they must
/// keep step with their cluster.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<const ROWS: usize, const COLUMNS: usize, const DEPTH: usize> {
    raster: Raster<Divisor>,
    splits: u32,
    next: u32,
}

impl<const ROWS: usize, const COLUMNS: usize, const DEPTH: usize> Schedule<ROWS, COLUMNS, DEPTH> {
    const CLUSTER: u32 = {
        assert!(
            DEPTH == 1 || ROWS * COLUMNS == 1,
            "the blocks of a cluster have a tile each, or one together"
        );
        (ROWS * COLUMNS * DEPTH) as u32
    };

    /// The running block's schedule, where `raster` is of clusters' tiles (see [`cluster_raster`]), each of
    /// which comes `splits` times, for that many parts of its steps.
    #[inline(always)]
    pub fn new(raster: Raster<Divisor>, splits: u32) -> Self {
        Self {
            raster,
            splits,
            next: block_idx().x.get() / Self::CLUSTER,
        }
    }

    /// Makes it the schedule of the cluster with index `seat` instead of the running block's, if each
    /// cluster of the launch has another one's.
    #[inline(always)]
    pub fn take_seat(&mut self, seat: u32) {
        self.next = seat;
    }
}

impl<const ROWS: usize, const COLUMNS: usize, const DEPTH: usize> Iterator
    for Schedule<ROWS, COLUMNS, DEPTH>
{
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
        let rank = cluster_rank();
        let row = row * ROWS as u32 + rank.row(ROWS, COLUMNS);
        let column = column * COLUMNS as u32 + rank.column(ROWS, COLUMNS);
        Some(Work {
            row,
            column,
            first_step: split * DEPTH as u32 + rank.part(DEPTH),
            stride: self.splits * DEPTH as u32,
            part: split,
            part_row: split * self.raster.tiles()[0] * ROWS as u32,
            tile: tile * (ROWS * COLUMNS) as u32 + rank.part(ROWS * COLUMNS),
        })
    }
}

/// The raster for a [`Schedule`] of `tiles` = (rows, columns) of tiles, in clusters of so many rows and
/// columns of blocks. `group` is how many rows of tiles are visited together, column by column.
pub const fn cluster_raster(tiles: [u32; 2], cluster: [u32; 2], group: u32) -> Raster<Divisor> {
    let rows = tiles[0].div_ceil(cluster[0]);
    let columns = tiles[1].div_ceil(cluster[1]);
    Raster::planned([rows, columns], group / cluster[0])
}

/// A tile to compute, or some of its steps.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The tile's row.
    pub row: u32,
    /// The tile's column.
    pub column: u32,
    /// The first of its steps, …
    first_step: u32,
    /// … and how far it is from one to the next.
    stride: u32,
    /// Which part of the tile's steps it is.
    pub part: u32,
    /// The first row of tiles of that part, if those of each part lie below those of the part before, each with whole
    /// clusters of rows.
    pub part_row: u32,
    /// The tile's index among all, those included that only keep a cluster company.
    pub tile: u32,
}

impl Work {
    /// Its steps, of `steps` in all: every so many, so that blocks which run at the same time read
    /// neighbouring ones. There is at least one, which may be beyond the last: a load of it brings
    /// zeros. `back` has the last come first, if they are all of the tile's: where each block does that
    /// with every other tile, it begins with what all have just read, and what the cache still has.
    #[inline(always)]
    pub fn steps(&self, steps: u32, back: bool) -> Steps {
        Steps {
            next: self.first_step,
            end: steps.max(self.first_step + 1),
            stride: self.stride,
            back: back && self.stride == 1,
        }
    }

    /// How many these are, where no other block has more than `most` of this tile's, and none has
    /// less than one below it.
    #[inline(always)]
    pub fn step_count(&self, steps: u32, most: u32) -> u32 {
        let last = self.first_step + (most - 1) * self.stride;
        (most - u32::from(last >= steps)).max(1)
    }
}

/// Some of a tile's steps.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    next: u32,
    end: u32,
    stride: u32,
    back: bool,
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
        Some(match self.back {
            true => self.end - 1 - step,
            false => step,
        })
    }
}
