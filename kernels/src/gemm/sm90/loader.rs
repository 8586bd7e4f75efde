//! The TMA loader: each block of a cluster loads its share of the k-tiles that it has in common with its neighbours, and
//! multicasts it to them.

use cutlet_device::collective::Filling;
use cutlet_device::sm90::{
    CacheHint, LoadOptions, Major, Mbarrier, Multicast, SharedTile, TensorMap, TmaLayout,
    grid_dependency_wait,
};
use cutlet_device::{DeviceData, cluster_rank};
use cutlet_layout_core::{Coord, tile_origin};

use super::config::{Config, RingA, RingB, SharedB};
use crate::gemm::args::TmaArgs;
use crate::gemm::config::ClusterShape;
use crate::gemm::loader::Loader;
use crate::gemm::scheduler::GroupOrigin;

/// Loads k-tiles by TMA.
pub(super) struct TmaLoader<'a, C: Config> {
    rings: (RingA<C>, RingB<C>),
    shares: (Share<'a>, Share<'a>),
    bytes: u32,
    /// K-tiles so far: blocks take turns to load a tile that does not divide among them.
    nth: u32,
}

impl<'a, C: Config> TmaLoader<'a, C> {
    /// A loader into these stages, by these maps of A and B.
    #[inline(always)]
    pub fn new(
        rings: (RingA<C>, RingB<C>),
        (map_a, map_b): (&'a TensorMap, &'a TensorMap),
        args: &TmaArgs,
    ) -> Self {
        Self {
            rings,
            shares: (Share::of_a::<C>(map_a, args), Share::of_b::<C>(map_b, args)),
            bytes: args.bytes_a + SharedB::<C>::BYTES,
            nth: 0,
        }
    }
}

impl<C: Config> Loader for TmaLoader<'_, C> {
    type OfTile = ();

    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    #[inline(always)]
    fn tile(&self, _: (u32, u32), _: Option<GroupOrigin>) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(
        &mut self,
        filling: Filling,
        (): &(),
        (row, column): (u32, u32),
        k_tile: u32,
        group: Option<GroupOrigin>,
    ) {
        let (stage, barrier) = (filling.stage(), filling.barrier());
        let from_a = tile_origin::<C::UnitA>((row, k_tile));
        let from_b = tile_origin::<C::UnitB>((column, k_tile));
        let (in_a, in_b) = (group.map(GroupOrigin::in_a), group.map(GroupOrigin::in_b));
        // Nothing is read before; all but the first call return at once.
        grid_dependency_wait();
        // SAFETY: the maps have these tiles' boxes, and the caller promises that the stage is empty.
        unsafe {
            let (tile_a, tile_b) = (self.rings.0.stage(stage), self.rings.1.stage(stage));
            let (a, b) = self.shares;
            a.load(tile_a, self.nth, from_a, in_a, barrier);
            b.load(tile_b, self.nth, from_b, in_b, barrier);
        }
        self.nth += 1;
    }
}

/// How a block loads its share of an operand's tiles, which it has in common with other blocks of its cluster.
#[derive(Clone, Copy)]
pub(super) struct Share<'a> {
    map: &'a TensorMap,
    options: LoadOptions,
    /// Blocks that have a tile in common, and which of them this is.
    blocks: usize,
    block: u32,
}

impl<'a> Share<'a> {
    /// Of A, which the blocks of a row of the cluster have in common.
    #[inline(always)]
    fn of_a<C: Config>(map: &'a TensorMap, args: &TmaArgs) -> Self {
        let (rows, columns) = (C::Cluster::M, C::Cluster::N);
        let rank = cluster_rank();
        let to_row = Multicast::every(rank.row(rows, columns) * columns as u32, 1, columns as u32);
        let options = to(columns, to_row);
        let [once, _] = args.read_once;
        // Where C is column-major, A is the weights. Elsewhere there is no register for a hint.
        let options = match !C::MajorC::IS_K_MAJOR && once != 0 {
            false => options,
            true => options.hint(CacheHint::EvictFirst),
        };
        Self {
            map,
            options,
            blocks: columns,
            block: rank.column(rows, columns),
        }
    }

    /// Of B, which the blocks of a column of the cluster have in common.
    #[inline(always)]
    pub fn of_b<C: Config>(map: &'a TensorMap, args: &TmaArgs) -> Self {
        let (rows, columns) = (C::Cluster::M, C::Cluster::N);
        let rank = cluster_rank();
        let to_column = Multicast::every(rank.column(rows, columns), columns as u32, rows as u32);
        let [_, once] = args.read_once;
        let options = to(rows, to_column).hint(match once {
            0 => CacheHint::EvictLast,
            _ => CacheHint::EvictFirst,
        });
        Self {
            map,
            options,
            blocks: rows,
            block: rank.row(rows, columns),
        }
    }

    /// Starts to load the share of the `nth` tile, which begins at `from`, or so many rows further on in the matrix with
    /// this index in the map.
    ///
    /// # Safety
    /// The map must have the tile's boxes, and the tile must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load<T: DeviceData, L: TmaLayout>(
        &self,
        tile: SharedTile<T, L, L::Swizzle>,
        nth: u32,
        from: Coord,
        in_group: Option<(i32, i32)>,
        barrier: Mbarrier,
    ) {
        let Self {
            map,
            options,
            blocks,
            block,
        } = *self;
        // SAFETY: as promised by the caller.
        unsafe {
            match in_group {
                None => tile.load_multicast(blocks, block, nth, map, from, barrier, options),
                Some((first_row, index)) => {
                    let from = [from[0] + first_row, from[1], index];
                    tile.load_multicast(blocks, block, nth, map, from, barrier, options);
                }
            }
        }
    }
}

/// How `blocks` blocks load: each for itself, or for all of them.
#[inline(always)]
fn to(blocks: usize, multicast: Multicast) -> LoadOptions {
    match blocks {
        1 => LoadOptions::DEFAULT,
        _ => LoadOptions::DEFAULT.multicast(multicast),
    }
}
