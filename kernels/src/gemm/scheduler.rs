//! The tile scheduler's seam: which tiles a block computes, in which order, and which k-tiles of each.

use core::marker::PhantomData;
use core::num::NonZeroU32;

use cutlet_device::collective::{
    AffinitySlot, ClusterShape, GroupedTileScheduler, Groups, PersistentTileScheduler, SizesAre,
    StreamKTileScheduler, WorkTile,
};
use cutlet_device::{DeviceData, grid_dependency_wait};
use cutlet_layout_core::{Divide, Divisor};

use super::args::SchedulerArgs;

/// The rows of C that a warp stores. Edge tiles shift by multiples of them.
pub const WARP_ROWS: usize = 16;

/// A tile scheduler. Every role of a block asks it anew: values that a role kept for another one would hold registers
/// throughout.
pub trait TileScheduler {
    /// The running block's work tiles, in order.
    type WorkTiles: Iterator<Item = WorkTile>;

    /// Whether work tiles are of groups, whose matrices lie behind one another.
    const IS_GROUPED: bool;

    /// The running block's work tiles, from the first one on.
    fn work_tiles(&self) -> Self::WorkTiles;

    /// Where the tile begins, in units of [`WARP_ROWS`] rows and of an epilogue subtile's columns.
    fn begin(&self, work: WorkTile) -> (u32, u32);

    /// K-tiles of A and B.
    fn k_tiles(&self) -> u32;

    /// How many of them the work tile has.
    fn k_tile_count(&self, work: WorkTile) -> u32;

    /// Whether clusters claim slots.
    fn claims_slot(&self) -> bool;

    /// Where the work tile's matrices begin. Only asked if there are groups.
    fn origin(&self, work: WorkTile) -> GroupOrigin;

    /// The coordinates of a k-tile along the inner mode of k, in k-tiles, and along the outer one. Only asked if there
    /// are groups.
    fn along_k(&self, k_tile: u32) -> (u32, i32);
}

/// Where the matrices of a group begin.
#[derive(Clone, Copy, Debug)]
pub struct GroupOrigin {
    /// Its first row in the tensor maps of A and C.
    pub first_row: i32,
    /// The coordinates of its A, B and C along the last two dimensions of their maps, the inner and the outer mode of
    /// the batch.
    pub nth: [[i32; 2]; 3],
    /// Rows of its C.
    pub rows: i32,
    /// Elements from the first C to its own, besides its rows.
    pub to_c: i64,
    /// Whether rows of other groups follow in C.
    pub is_followed: bool,
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
    cluster: PhantomData<C>,
}

impl<'a, C: ClusterShape> Persistent<'a, C> {
    /// The scheduler of a launch with these arguments.
    #[inline(always)]
    pub fn new(args: &'a SchedulerArgs, tile: [u32; 2], slot: AffinitySlot) -> Self {
        Self {
            args,
            tile,
            slot,
            claims_slot: C::MAY_HAVE_TILES && !args.affinity.is_none(),
            cluster: PhantomData,
        }
    }
}

impl<C: ClusterShape> TileScheduler for Persistent<'_, C> {
    type WorkTiles = PersistentTileScheduler<C>;
    const IS_GROUPED: bool = false;

    #[inline(always)]
    fn work_tiles(&self) -> PersistentTileScheduler<C> {
        let SchedulerArgs {
            cluster,
            raster,
            splits,
            ..
        } = *self.args;
        let mut work_tiles = PersistentTileScheduler::new(C::of_launch(cluster), raster, splits);
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
        work.k_tile_count(self.args.k_tiles, &self.args.splits)
    }

    #[inline(always)]
    fn claims_slot(&self) -> bool {
        self.claims_slot
    }

    #[inline(always)]
    fn origin(&self, _: WorkTile) -> GroupOrigin {
        unreachable!("there are no groups")
    }

    #[inline(always)]
    fn along_k(&self, _: u32) -> (u32, i32) {
        unreachable!("there are no groups")
    }
}

/// A [`Persistent`] scheduler that streams the last tiles, if the launch says so.
#[derive(Clone, Copy, Debug)]
pub struct StreamK<'a, C>(pub Persistent<'a, C>);

impl<C: ClusterShape> TileScheduler for StreamK<'_, C> {
    type WorkTiles = StreamKTileScheduler<C>;
    const IS_GROUPED: bool = false;

    #[inline(always)]
    fn work_tiles(&self) -> StreamKTileScheduler<C> {
        StreamKTileScheduler::new(self.0.work_tiles(), self.0.args.streamed)
    }

    #[inline(always)]
    fn begin(&self, work: WorkTile) -> (u32, u32) {
        self.0.begin(work)
    }

    #[inline(always)]
    fn k_tiles(&self) -> u32 {
        self.0.k_tiles()
    }

    #[inline(always)]
    fn k_tile_count(&self, work: WorkTile) -> u32 {
        self.0.k_tile_count(work)
    }

    #[inline(always)]
    fn claims_slot(&self) -> bool {
        self.0.claims_slot()
    }

    #[inline(always)]
    fn origin(&self, work: WorkTile) -> GroupOrigin {
        self.0.origin(work)
    }

    #[inline(always)]
    fn along_k(&self, k_tile: u32) -> (u32, i32) {
        self.0.along_k(k_tile)
    }
}

/// A scheduler of the same tiles for a C of half as many columns, whose tiles are half as wide.
#[derive(Clone, Copy, Debug)]
pub struct HalfColumns<S>(pub S);

impl<S: TileScheduler> TileScheduler for HalfColumns<S> {
    type WorkTiles = S::WorkTiles;
    const IS_GROUPED: bool = S::IS_GROUPED;

    #[inline(always)]
    fn work_tiles(&self) -> S::WorkTiles {
        self.0.work_tiles()
    }

    #[inline(always)]
    fn begin(&self, work: WorkTile) -> (u32, u32) {
        let (row, column) = self.0.begin(work);
        (row, column / 2)
    }

    #[inline(always)]
    fn k_tiles(&self) -> u32 {
        self.0.k_tiles()
    }

    #[inline(always)]
    fn k_tile_count(&self, work: WorkTile) -> u32 {
        self.0.k_tile_count(work)
    }

    #[inline(always)]
    fn claims_slot(&self) -> bool {
        self.0.claims_slot()
    }

    #[inline(always)]
    fn origin(&self, work: WorkTile) -> GroupOrigin {
        self.0.origin(work)
    }

    #[inline(always)]
    fn along_k(&self, k_tile: u32) -> (u32, i32) {
        self.0.along_k(k_tile)
    }
}

/// The products of a launch. The rows of its [`Args`](super::args::Args) are those of A, or of each A.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct GroupArgs {
    /// The groups.
    pub groups: Groups,
    /// For each of A, B and C, 1 for a mode of the batch along which each group has a matrix of its own, and 0 for one
    /// along which all share it.
    pub stacked: [[u32; 2]; 3],
    /// Columns of the tiles of clusters.
    pub columns: u32,
    /// K-tiles along the inner mode of k. K has an outer mode, too: the third dimension of the maps of A and B.
    pub inner_k_tiles: Divisor,
}

impl GroupArgs {
    /// One product, for kernels that have no others.
    pub const ONE: Self = Self {
        groups: Groups::ONE,
        stacked: [[0; 2]; 3],
        columns: 0,
        inner_k_tiles: Divisor::new(NonZeroU32::MIN),
    };
}

/// The scheduler of blocks that stay for the whole launch, and compute tiles of many groups. K is not split.
#[derive(Clone, Copy, Debug)]
pub struct Grouped<'a, C> {
    args: &'a SchedulerArgs,
    groups: &'a GroupArgs,
    /// Rows of A, or of each A.
    rows: i32,
    /// Rows of a tile.
    tile_rows: u32,
    /// A tile's rows and columns, in the units of [`TileScheduler::begin`].
    tile: [u32; 2],
    cluster: PhantomData<C>,
}

impl<'a, C: ClusterShape> Grouped<'a, C> {
    /// The scheduler of a launch with these arguments, where A, or each A, has `rows` rows.
    ///
    /// # Safety
    /// There must be a size for each group, unless there are none.
    #[inline(always)]
    pub unsafe fn new(
        args: &'a SchedulerArgs,
        groups: &'a GroupArgs,
        rows: i32,
        tile_rows: u32,
        tile: [u32; 2],
    ) -> Self {
        Self {
            args,
            groups,
            rows,
            tile_rows,
            tile,
            cluster: PhantomData,
        }
    }
}

impl<'a, C: ClusterShape> TileScheduler for Grouped<'a, C> {
    type WorkTiles = GroupedTileScheduler<'a, C>;
    const IS_GROUPED: bool = true;

    #[inline(always)]
    fn work_tiles(&self) -> GroupedTileScheduler<'a, C> {
        // The kernel before this one may write the sizes.
        grid_dependency_wait();
        let GroupArgs {
            groups, columns, ..
        } = self.groups;
        // SAFETY: as promised by the creator.
        unsafe {
            GroupedTileScheduler::new(
                C::of_launch(self.args.cluster),
                groups,
                self.rows,
                self.tile_rows,
                *columns,
            )
        }
    }

    #[inline(always)]
    fn begin(&self, work: WorkTile) -> (u32, u32) {
        let [rows, columns] = self.tile;
        (work.row * rows, work.column * columns)
    }

    #[inline(always)]
    fn k_tiles(&self) -> u32 {
        self.args.k_tiles
    }

    #[inline(always)]
    fn k_tile_count(&self, _: WorkTile) -> u32 {
        self.args.k_tiles
    }

    #[inline(always)]
    fn claims_slot(&self) -> bool {
        false
    }

    #[inline(always)]
    fn origin(&self, work: WorkTile) -> GroupOrigin {
        let GroupArgs {
            groups, stacked, ..
        } = self.groups;
        let group = work.group;
        let [inner, outer] = groups.coordinates(group);
        let nth = stacked.map(|it| [(it[0] * inner) as i32, (it[1] * outer) as i32]);
        let [along_inner, along_outer] = groups.strides.map(|it| it[2]);
        GroupOrigin {
            first_row: group.first_row,
            nth,
            rows: group.rows,
            to_c: i64::from(inner) * along_inner + i64::from(outer) * along_outer,
            is_followed: groups.sizes_are != SizesAre::NONE,
        }
    }

    #[inline(always)]
    fn along_k(&self, k_tile: u32) -> (u32, i32) {
        let (outer, inner) = self.groups.inner_k_tiles.div_rem(k_tile);
        (inner, outer as i32)
    }
}
