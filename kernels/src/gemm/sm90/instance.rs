//! A kernel of the family as the host launches it: with its traits and its arguments.

// A build without the family makes no instances.
#![cfg_attr(not(feature = "hopper"), allow(dead_code))]

use cutlet_device::collective::{
    ArrivalCounters, DynamicCluster, Prefetch, SmAffinity, Splits, StreamedTiles,
};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{GlobalMut, Kernel};
use half::bf16;

use super::block_scales::{BlockScaling, ScalesOfBlocks, box_scales};
use super::config::{Acc, Config};
use super::element_types::{AccOf, ElementTypes};
use super::kernel_traits::KernelTraits;
use crate::gemm::args::{Args, OutputArgs, SchedulerArgs, TableArgs, TmaArgs, raster, read_once};
use crate::gemm::config::{ClusterShape, TileShape};
use crate::gemm::epilogue::{Epilogue, Scale};
use crate::gemm::scheduler::GroupArgs;
use crate::gemm::store::PartialOutput;

/// The arguments of a kernel: maps of A, B and C, C, the workspace, the arguments and the epilogue.
pub type Arguments<T, Epi> = (
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<<T as ElementTypes>::Out>,
    GlobalMut<f32>,
    Args,
    Epi,
);

/// A kernel, and its traits in the cluster that it is launched in.
#[derive(Debug)]
pub struct Instance<T: ElementTypes, Epi: 'static = Scale<AccOf<T>>> {
    /// The kernel. Instances in different clusters may have it in common.
    pub kernel: &'static Kernel<Arguments<T, Epi>>,
    /// Its traits.
    pub traits: KernelTraits,
}

impl<T: ElementTypes, Epi> Clone for Instance<T, Epi> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ElementTypes, Epi> Copy for Instance<T, Epi> {}

impl<T: ElementTypes, Epi> Instance<T, Epi> {
    /// Its [name](KernelTraits::name).
    pub const fn name(&self) -> &str {
        self.traits.name()
    }
}

impl<T: ElementTypes, Epi: Epilogue> Instance<T, Epi> {
    /// The instance of a kernel of one's own with this configuration, in the cluster that it is compiled for.
    ///
    /// # Panics
    /// If the launch chooses the cluster: see [`in_cluster`](Self::in_cluster).
    pub const fn new<C: Config<Types = T>>(kernel: &'static Kernel<Arguments<T, Epi>>) -> Self
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        Self::in_cluster::<C>(kernel, static_cluster::<C>())
    }

    /// The instance of a kernel with this configuration, in clusters of so many rows and columns.
    ///
    /// # Panics
    /// If the kernel is compiled for another cluster.
    pub const fn in_cluster<C: Config<Types = T>>(
        kernel: &'static Kernel<Arguments<T, Epi>>,
        cluster: [u32; 2],
    ) -> Self
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        Self {
            kernel,
            traits: KernelTraits::of::<C, Epi>(kernel.name(), cluster),
        }
    }

    /// Instances of a kernel with this configuration, in clusters of these rows and columns. If it computes
    /// `Cᵀ = Bᵀ·Aᵀ`, its element types are those of Bᵀ and Aᵀ.
    pub(super) const fn in_clusters<C: Config<Out = T::Out, Scaling = T::Scaling>, const N: usize>(
        kernel: &'static Kernel<Arguments<T, Epi>>,
        clusters: [[u32; 2]; N],
    ) -> [Self; N]
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        let first = Self {
            kernel,
            traits: KernelTraits::of::<C, Epi>(kernel.name(), clusters[0]),
        };
        let mut instances = [first; N];
        let mut nth = 1;
        while nth < N {
            instances[nth].traits = KernelTraits::of::<C, Epi>(kernel.name(), clusters[nth]);
            nth += 1;
        }
        instances
    }
}

/// The arguments of a kernel of 8-bit floats with scales of blocks: maps of A, B, C and the lines' scales, the blocks' scales, C,
/// the workspace, the arguments and the epilogue.
pub type BlockScaledArguments<Epi = Scale> = (
    TensorMap,
    TensorMap,
    TensorMap,
    TensorMap,
    ScalesOfBlocks,
    GlobalMut<bf16>,
    GlobalMut<f32>,
    Args,
    Epi,
);

/// A kernel of 8-bit floats with scales of blocks, and its traits in the cluster that it is launched in.
#[derive(Debug)]
pub struct BlockScaledInstance<Epi: 'static = Scale> {
    /// The kernel.
    pub kernel: &'static Kernel<BlockScaledArguments<Epi>>,
    /// Its traits.
    pub traits: KernelTraits,
    /// The box of the map of the lines' scales.
    pub box_scales: TmaBox,
}

impl<Epi: Epilogue<Acc = f32>> BlockScaledInstance<Epi> {
    /// The instance of a kernel with this configuration, in clusters of so many rows and columns.
    pub(super) const fn in_cluster<C>(
        kernel: &'static Kernel<BlockScaledArguments<Epi>>,
        cluster: [u32; 2],
    ) -> Self
    where
        C: Config<Out = bf16, Scaling: BlockScaling<Acc = f32>>,
    {
        Self {
            kernel,
            traits: KernelTraits::of::<C, Epi>(kernel.name(), cluster),
            box_scales: box_scales::<C>(),
        }
    }
}

/// The cluster that kernels of this configuration are compiled for.
pub(super) const fn static_cluster<C: Config>() -> [u32; 2] {
    C::Cluster::STATIC.expect("the launch of this kernel chooses the cluster")
}

/// The number of instances in these lists.
pub(super) const fn count<T: ElementTypes, Epi>(lists: &[&[Instance<T, Epi>]]) -> usize {
    let (mut count, mut nth) = (0, 0);
    while nth < lists.len() {
        count += lists[nth].len();
        nth += 1;
    }
    count
}

/// The `N` instances of these lists, numbered.
pub(super) const fn concat<T: ElementTypes, Epi, const N: usize>(
    lists: &[&[Instance<T, Epi>]],
) -> [Instance<T, Epi>; N] {
    let mut all = [lists[0][0]; N];
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        let mut nth = 0;
        while nth < lists[list].len() {
            all[count] = lists[list][nth];
            all[count].traits.nth = count;
            (count, nth) = (count + 1, nth + 1);
        }
        list += 1;
    }
    all
}

impl Args {
    /// For A (m, k) and B (k, n), by a kernel of configuration `C`, which says the cluster, with whole boxes of A: no
    /// splits, and no TMA store to the C whose rows are `ldc` elements apart.
    pub const fn new<C: Config>([m, n, k]: [i32; 3], ldc: i64) -> Self {
        let tile = [C::Tile::M as u32, C::Tile::N as u32];
        let cluster = static_cluster::<C>();
        let extents = [m as usize, n as usize];
        let k_tiles = (k as u32).div_ceil(C::Tile::K as u32);
        Self {
            scheduler: SchedulerArgs {
                affinity: SmAffinity::NONE,
                cluster: DynamicCluster::new(cluster),
                raster: raster(extents, tile, cluster),
                splits: Splits::interleaved(1, k_tiles, C::Cluster::K as u32),
                k_tiles,
                streamed: StreamedTiles::NONE,
                last: [u32::MAX; 2],
            },
            prefetch: [Prefetch::NOTHING; 2],
            output: OutputArgs {
                arrivals: ArrivalCounters::NONE,
                ldc,
                partial: PartialOutput::NONE,
                partial_extent: [0, 0],
                extent: [m, n],
            },
            tma: TmaArgs {
                bytes_a: (C::Tile::M * C::Tile::K * size_of::<C::In>()) as u32,
                read_once: read_once(extents, tile),
                stores_c: 0,
            },
            groups: GroupArgs::ONE,
            table: TableArgs::NONE,
        }
    }
}
