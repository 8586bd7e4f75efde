//! The TMA loader: each block of a cluster loads its share of the k-tiles that it has in common with its neighbours,
//! and multicasts it to them.

use cutlet_device::cluster::Multicast;
use cutlet_device::collective::Filling;
use cutlet_device::tile::Major;
use cutlet_device::tma::{CacheHint, LoadOptions, TensorMap, prefetch_tensor_map};
use cutlet_device::warpgroup::{WarpgroupThread, decrease_registers, increase_registers};
use cutlet_device::{WarpIdx, cluster_rank, elect_one, grid_dependency_wait};
use cutlet_layout_core::tile_origin;

use super::config::{Config, RingA, RingB, SharedB, Storage};
use super::kernel::{Params, ProducerRole, produce};
use super::scaling::{ScaleOperands, ScaleRing, Scaling};
use crate::gemm::args::TmaArgs;
use crate::gemm::config::{ClusterShape, Consumers};
use crate::gemm::loader::Loader;
use crate::gemm::scheduler::{GroupOrigin, TileScheduler};

/// TMA loads A, for one thread.
#[derive(Debug)]
pub struct ByTma;

impl<C: Config> ProducerRole<C> for ByTma {
    const ARRIVALS: u32 = 1;

    #[inline(always)]
    fn prefetch_map(map_a: &TensorMap) {
        prefetch_tensor_map(map_a);
    }

    #[inline(always)]
    fn release_registers() {
        match C::Consumers::WARPGROUPS {
            1 => {}
            2 => decrease_registers::<40>(),
            _ => decrease_registers::<32>(),
        }
    }

    #[inline(always)]
    fn request_registers() {
        match C::Consumers::WARPGROUPS {
            1 => {}
            2 => increase_registers::<232>(),
            _ => increase_registers::<160>(),
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn produce<S: TileScheduler, Epi: Copy>(
        block: Storage<C>,
        scheduler: &S,
        params: &Params<'_, C::Out, Epi>,
        scales: ScaleOperands<'_, C>,
        (warp, thread): (WarpIdx, WarpgroupThread),
    ) {
        if !warp.is_first() {
            C::Scaling::transform::<C, S>(block, scheduler, thread);
        } else if elect_one() {
            let args = params.args;
            let cluster = C::Cluster::of_launch(args.scheduler.cluster);
            let maps = (params.map_a, params.map_b);
            let scales = (block.scales, scales);
            let loader = TmaLoader::<C>::new(block.rings, scales, maps, cluster, &args.tma);
            produce(block.pipeline.producer(), scheduler, loader);
        }
    }
}

/// Loads k-tiles by TMA.
struct TmaLoader<'a, 's, C: Config> {
    rings: (RingA<C>, RingB<C>),
    scales: (ScaleRing<C>, ScaleOperands<'s, C>),
    maps: (&'a TensorMap, &'a TensorMap),
    options: (LoadOptions, LoadOptions),
    cluster: C::Cluster,
    /// The block's row and column in its cluster.
    in_cluster: (u32, u32),
    bytes: u32,
    /// K-tiles so far: blocks take turns to load a tile that does not divide among them.
    nth: u32,
}

impl<'a, 's, C: Config> TmaLoader<'a, 's, C> {
    /// A loader into these stages, by these maps of A and B.
    #[inline(always)]
    pub fn new(
        rings: (RingA<C>, RingB<C>),
        scales: (ScaleRing<C>, ScaleOperands<'s, C>),
        maps: (&'a TensorMap, &'a TensorMap),
        cluster: C::Cluster,
        args: &TmaArgs,
    ) -> Self {
        let bytes = args.bytes_a + SharedB::<C>::BYTES + C::Scaling::bytes::<C::Tile>();
        let (options, in_cluster) = options::<C>(cluster, args);
        Self {
            rings,
            scales,
            maps,
            options,
            cluster,
            in_cluster,
            bytes,
            nth: 0,
        }
    }
}

/// How the running block loads its shares of A and of B, and its row and column in its cluster.
#[inline(always)]
pub(super) fn options<C: Config>(
    cluster: C::Cluster,
    args: &TmaArgs,
) -> ((LoadOptions, LoadOptions), (u32, u32)) {
    let (rows, columns) = (cluster.rows(), cluster.columns());
    let to = |blocks: u32, multicast: Multicast| match blocks {
        1 => LoadOptions::DEFAULT,
        _ => LoadOptions::DEFAULT.multicast(multicast),
    };
    let rank = cluster_rank();
    let (row, column) = (cluster.row(rank), cluster.column(rank));
    let to_row = Multicast::every(row * columns, 1, columns);
    let to_column = Multicast::every(column, columns, rows);
    let (options_a, options_b) = (to(columns, to_row), to(rows, to_column));
    let [once_a, once_b] = args.read_once;
    // Where C is column-major, A is the weights. Elsewhere there is no register for a hint.
    let options_a = match !C::MajorC::IS_K_MAJOR && once_a != 0 {
        false => options_a,
        true => options_a.hint(CacheHint::EvictFirst),
    };
    let options_b = options_b.hint(match once_b {
        0 => CacheHint::EvictLast,
        _ => CacheHint::EvictFirst,
    });
    ((options_a, options_b), (row, column))
}

impl<C: Config> Loader for TmaLoader<'_, '_, C> {
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
        begin: (u32, u32),
        (k_tile, k_outer): (u32, i32),
        group: Option<GroupOrigin>,
    ) {
        let (stage, barrier) = (filling.stage(), filling.barrier());
        let (ring, scales) = self.scales;
        let from_a = tile_origin::<C::UnitA>((begin.0, k_tile));
        let from_b = tile_origin::<C::UnitB>((begin.1, k_tile));
        let [rows, columns] = [self.cluster.rows(), self.cluster.columns()].map(|it| it as usize);
        let (row, column) = self.in_cluster;
        // Nothing is read before; all but the first call return at once.
        grid_dependency_wait();
        // SAFETY: the maps have these tiles' boxes, and the caller promises that the stage is empty.
        unsafe {
            let (tile_a, tile_b) = (self.rings.0.stage(stage), self.rings.1.stage(stage));
            let (map_a, map_b) = self.maps;
            let (options_a, options_b) = self.options;
            let nth = self.nth;
            match group {
                None => {
                    tile_a.load_multicast(columns, column, nth, map_a, from_a, barrier, options_a);
                    tile_b.load_multicast(rows, row, nth, map_b, from_b, barrier, options_b);
                }
                Some(group) => {
                    let [nth_a, nth_b, _] = group.nth;
                    let from_row = from_a[0] + group.first_row;
                    let from_a = [from_row, from_a[1], k_outer, nth_a[0], nth_a[1]];
                    let from_b = [from_b[0], from_b[1], k_outer, nth_b[0], nth_b[1]];
                    tile_a.load_multicast(columns, column, nth, map_a, from_a, barrier, options_a);
                    tile_b.load_multicast(rows, row, nth, map_b, from_b, barrier, options_b);
                }
            }
        }
        // SAFETY: as above.
        unsafe { C::Scaling::load::<C>(ring, scales, &filling, begin, k_tile, group) };
        self.nth += 1;
    }
}
