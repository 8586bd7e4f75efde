//! Grouped products: a launch computes many products of the same n and k, and each has its own rows.

use core::num::NonZeroU32;

use cutlet_layout_core::{Divide, Divisor};

use super::{ClusterShape, KTilesOf, Share, WorkTile};
use crate::{DeviceData, Global, block_idx, cluster_rank, grid_dim, uniform};

/// The products of a launch: a batch of equal ones, or groups of rows whose sizes are in device memory.
///
/// A batch has two modes, an inner one and an outer one. Groups have the inner one alone.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Groups {
    /// Along the inner and the outer mode, the elements from A, B and C of a group to those of the next. Those of A and
    /// C are 0 if all groups' rows lie in one matrix.
    pub strides: [[i64; 3]; 2],
    /// One number for each group, as `sizes_are` says.
    pub sizes: Global<i32>,
    /// What the sizes are.
    pub sizes_are: SizesAre,
    /// How many groups there are.
    pub count: u32,
    /// How many of them are along the inner mode.
    pub inner: Divisor,
    /// Bytes that would else be padding.
    pub _unused: u32,
}

// SAFETY: a `repr(C)` struct of device data without padding.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Groups {}

/// The operands, as they are numbered.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// What the sizes of [`Groups`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SizesAre(u32);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for SizesAre {}

impl SizesAre {
    /// There are none: each group has all rows of its A.
    pub const NONE: Self = Self(0);
    /// The end of each group's rows in the one A, where the next group's begin.
    pub const ENDS: Self = Self(1);
    /// How many of the first rows of its own A each group has.
    pub const COUNTS: Self = Self(2);
}

/// A group: which rows of A it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// Its index.
    pub index: u32,
    /// The first of its rows.
    pub first_row: i32,
    /// How many rows it has.
    pub rows: i32,
}

impl Groups {
    /// One product.
    pub const ONE: Self = Self {
        strides: [[0; 3]; 2],
        sizes: Global::from_ptr(core::ptr::null()),
        sizes_are: SizesAre::NONE,
        count: 1,
        inner: Divisor::new(NonZeroU32::MIN),
        _unused: 0,
    };

    /// The coordinates of a group along the inner and the outer mode.
    #[inline(always)]
    pub fn coordinates(&self, group: Group) -> [u32; 2] {
        let (outer, inner) = self.inner.div_rem(group.index);
        [inner, outer]
    }

    /// The group with this index, where A has `rows` rows. Sizes that reach beyond them are cut off.
    ///
    /// # Safety
    /// There must be a size for each group, unless there are none.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(&self, index: u32, rows: i32) -> Group {
        let size = |index: u32| {
            // SAFETY: as promised by the caller.
            let size = unsafe { self.sizes.load(i64::from(index)) };
            // `clamp` could panic.
            size.min(rows).max(0)
        };
        let (first_row, end) = match self.sizes_are {
            SizesAre::ENDS => {
                let first = match index {
                    0 => 0,
                    _ => size(index - 1),
                };
                (first, size(index).max(first))
            }
            SizesAre::COUNTS => (0, size(index)),
            _ => (0, rows),
        };
        Group {
            index,
            first_row,
            rows: end - first_row,
        }
    }

    /// The group of the running block, which is number `first` and as many more as its index along y, where A has
    /// `rows` rows.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn of_block(&self, first: u32, rows: i32) -> Group {
        // SAFETY: as promised by the caller.
        unsafe { self.get(first + block_idx().y.get(), rows) }
    }

    /// The same as [`of_block`](Self::of_block), but one lane says which group it is. So the compiler does not know
    /// that the answer is the same, and holds nothing of an earlier one in registers.
    ///
    /// # Safety
    /// As [`get`](Self::get). All threads of the warp must take part.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn of_block_anew(&self, first: u32, rows: i32) -> Group {
        // SAFETY: as promised by the caller.
        unsafe { self.get(first + uniform(block_idx().y.get()), rows) }
    }

    /// Elements from the first of A, B and C to the group's, where rows of A and of C are so many elements apart.
    #[inline(always)]
    pub fn offsets(&self, group: Group, row_strides: [i64; 2]) -> [i64; 3] {
        let [inner, outer] = self.coordinates(group).map(i64::from);
        let [along_inner, along_outer] = self.strides;
        let to = |nth: usize| inner * along_inner[nth] + outer * along_outer[nth];
        let first_row = i64::from(group.first_row);
        [
            to(A) + first_row * row_strides[0],
            to(B),
            to(C) + first_row * row_strides[1],
        ]
    }
}

/// The work tiles of a persistent block in a grouped product, in clusters of shape `C`.
///
/// Clusters take turns with the tiles of all groups, one group after the other. In a group they visit
/// 16 rows of tiles together, column by column.
#[derive(Clone, Copy, Debug)]
pub struct GroupedTileScheduler<'a, C> {
    groups: &'a Groups,
    /// Rows of A, or of each A.
    rows: i32,
    /// Rows of a tile.
    tile_rows: u32,
    /// Columns of clusters' tiles.
    columns: u32,
    /// The cluster's next tile, among those of all groups.
    next: u32,
    /// The group that is being visited, and its first tile.
    index: u32,
    first: u32,
    cluster: C,
}

impl<'a, C: ClusterShape> GroupedTileScheduler<'a, C> {
    /// Rows of clusters' tiles that are visited together, so that the L2 cache serves them.
    #[inline(always)]
    fn raster_rows(&self) -> u32 {
        16 / self.cluster.rows()
    }

    /// The running block's work tiles, of `columns` columns of clusters' tiles of `tile_rows` rows. Each A has `rows`
    /// rows.
    ///
    /// # Safety
    /// There must be a size for each group, unless there are none. Kernels before this one must have written them.
    #[inline(always)]
    pub unsafe fn new(
        cluster: C,
        groups: &'a Groups,
        rows: i32,
        tile_rows: u32,
        columns: u32,
    ) -> Self {
        Self {
            groups,
            rows,
            tile_rows,
            columns,
            next: cluster.cluster_idx(),
            index: 0,
            first: 0,
            cluster,
        }
    }

    /// The rows of clusters' tiles of a group.
    #[inline(always)]
    fn tile_rows_of(&self, group: Group) -> u32 {
        (group.rows as u32).div_ceil(self.tile_rows * self.cluster.rows())
    }

    /// The group that has the next tile, if any has.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn find(&mut self) -> Option<Group> {
        if self.groups.sizes_are == SizesAre::NONE {
            // All groups have as many tiles.
            let whole = Group {
                index: 0,
                first_row: 0,
                rows: self.rows,
            };
            let tiles = self.tile_rows_of(whole) * self.columns;
            (self.index, _) = div_rem(self.next, tiles);
            self.first = self.index * tiles;
            return (self.index < self.groups.count).then_some(Group {
                index: self.index,
                ..whole
            });
        }
        while self.index < self.groups.count {
            // SAFETY: as promised by the creator.
            let group = unsafe { self.groups.get(self.index, self.rows) };
            let end = self.first + self.tile_rows_of(group) * self.columns;
            if self.next < end {
                return Some(group);
            }
            self.first = end;
            self.index += 1;
        }
        None
    }
}

/// Quotient and remainder by a divisor that is not 0. (`/` could panic.)
#[inline(always)]
fn div_rem(dividend: u32, divisor: u32) -> (u32, u32) {
    let divisor = divisor.max(1);
    (dividend / divisor, dividend % divisor)
}

impl<C: ClusterShape> Iterator for GroupedTileScheduler<'_, C> {
    type Item = WorkTile;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn next(&mut self) -> Option<WorkTile> {
        let group = self.find()?;
        let nth = self.next - self.first;
        self.next += self.cluster.clusters(grid_dim().x);
        // The rows that are visited together.
        let together = self.raster_rows() * self.columns;
        let (above, inside) = div_rem(nth, together);
        let top = above * self.raster_rows();
        let height = self.raster_rows().min(self.tile_rows_of(group) - top);
        let (column, row) = div_rem(inside, height);
        let row = top + row;
        let rank = cluster_rank();
        Some(WorkTile {
            row: row * self.cluster.rows() + self.cluster.row(rank),
            column: column * self.cluster.columns() + self.cluster.column(rank),
            k_tiles: KTilesOf::ALL,
            share: Share::WHOLE,
            split_row: 0,
            tile: 0,
            group,
        })
    }
}
