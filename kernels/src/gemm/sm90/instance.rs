//! What the host knows of a kernel of the family: how to choose it, and how to launch it.

// A build without the family makes no instances.
#![cfg_attr(not(feature = "hopper"), allow(dead_code))]

use core::marker::PhantomData;

use cutlet_device::tile::Major;
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{GlobalMut, Kernel};

use super::config::{Acc, Config, box_a, box_b, box_c, runs_fixup, streams_tiles, writes_partials};
use super::instance_name::InstanceName;
use crate::gemm::args::{Args, OutputArgs, SchedulerArgs, TableArgs, TmaArgs, raster, read_once};
use crate::gemm::config::{ClusterShape, Consumers, TileShape};
use crate::gemm::epilogue::{Epilogue, Scale};
use crate::gemm::scheduler::{GroupArgs, WARP_ROWS};
use crate::gemm::store::PartialOutput;
use cutlet_device::collective::{
    ArrivalCounters, DynamicCluster, Prefetch, SmAffinity, Splits, StreamedTiles,
};

/// The arguments of a kernel: maps of A, B and C, C, the workspace, the arguments and the epilogue.
pub type Arguments<T, Epi> = (
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<T>,
    GlobalMut<f32>,
    Args,
    Epi,
);

/// A kernel, the cluster that it is launched in, and what its configuration says.
#[derive(Debug)]
pub struct Instance<T: 'static, Epi: 'static = Scale> {
    /// Its place among the instances with its epilogue: the same for bf16 and f16.
    pub nth: usize,
    /// The kernel. Instances in different clusters may have it in common.
    pub kernel: &'static Kernel<Arguments<T, Epi>>,
    name: InstanceName,
    /// The type of its elements and its epilogue.
    pub of: PhantomData<fn() -> (T, Epi)>,
    /// Whether A and B are K-major.
    pub k_major: [bool; 2],
    /// Rows and columns of a block's tile of C.
    pub tile: [u32; 2],
    /// The k of a k-tile.
    pub tile_k: u32,
    /// Rows and columns of tiles of a cluster.
    pub cluster: [u32; 2],
    /// Consumer warpgroups.
    pub consumers: u32,
    /// Whether they are ping-pong.
    pub is_pingpong: bool,
    /// Whether it can only overwrite a C of its type, by TMA. Consumers of several M atoms have no registers for
    /// anything else, and a column-major C is not read.
    pub overwrites_only: bool,
    /// Epilogue subtiles of a consumer that have room in shared memory at a time.
    pub staged_subtiles: usize,
    /// Whether it can write partial output.
    pub writes_partials: bool,
    /// Whether its blocks can run the fixup.
    pub runs_fixup: bool,
    /// Whether its blocks can stream tiles.
    pub streams_tiles: bool,
    /// Whether C is column-major, so that a row-major C is computed as `Cᵀ = Bᵀ·Aᵀ`. Then A, B and C stand here for Bᵀ,
    /// Aᵀ and Cᵀ.
    pub transposed: bool,
    /// The boxes of the tensor maps of A, B and C.
    pub boxes: [TmaBox; 3],
}

impl<T, Epi> Clone for Instance<T, Epi> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, Epi> Copy for Instance<T, Epi> {}

impl<T, Epi: Epilogue> Instance<T, Epi> {
    /// The instance of a kernel of one's own with this configuration, in the cluster that it is compiled for.
    ///
    /// # Panics
    /// If the launch chooses the cluster: see [`in_cluster`](Self::in_cluster).
    pub const fn new<C: Config<Element = T>>(kernel: &'static Kernel<Arguments<T, Epi>>) -> Self
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        Self::in_cluster::<C>(kernel, static_cluster::<C>())
    }

    /// The instance of a kernel with this configuration, in clusters of so many rows and columns.
    ///
    /// # Panics
    /// If the kernel is compiled for another cluster.
    pub const fn in_cluster<C: Config<Element = T>>(
        kernel: &'static Kernel<Arguments<T, Epi>>,
        cluster: [u32; 2],
    ) -> Self
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        assert!(
            C::Cluster::K == 1,
            "each block of a cluster that the library launches has a tile of its own"
        );
        let name = match C::Cluster::STATIC {
            Some([rows, columns]) => {
                assert!(
                    rows == cluster[0] && columns == cluster[1],
                    "the kernel is compiled for another cluster"
                );
                InstanceName::of_kernel(kernel.name())
            }
            None => InstanceName::in_cluster(kernel.name(), cluster),
        };
        Self {
            nth: 0,
            kernel,
            name,
            of: PhantomData,
            k_major: [C::MajorA::IS_K_MAJOR, C::MajorB::IS_K_MAJOR],
            tile: [C::Tile::M as u32, C::Tile::N as u32],
            tile_k: C::Tile::K as u32,
            cluster,
            consumers: C::Consumers::WARPGROUPS as u32,
            is_pingpong: !C::Consumers::ARE_COOPERATIVE,
            overwrites_only: C::Consumers::M_ATOMS > 1 || !C::MajorC::IS_K_MAJOR,
            staged_subtiles: C::STAGED_COLUMNS / C::EPI_N,
            writes_partials: writes_partials::<Epi>(),
            runs_fixup: runs_fixup::<C, Epi>(),
            streams_tiles: streams_tiles::<C, Epi>(),
            transposed: !C::MajorC::IS_K_MAJOR,
            boxes: [box_a::<C>(cluster), box_b::<C>(cluster), box_c::<C>()],
        }
    }

    /// Instances of a kernel with this configuration, in clusters of these rows and columns.
    pub(super) const fn in_clusters<C: Config<Element = T>, const N: usize>(
        kernel: &'static Kernel<Arguments<T, Epi>>,
        clusters: [[u32; 2]; N],
    ) -> [Self; N]
    where
        Epi: Epilogue<Acc = Acc<C>>,
    {
        let mut instances = [Self::in_cluster::<C>(kernel, clusters[0]); N];
        let mut nth = 1;
        while nth < N {
            instances[nth] = Self::in_cluster::<C>(kernel, clusters[nth]);
            nth += 1;
        }
        instances
    }
}

/// The cluster that kernels of this configuration are compiled for.
pub(super) const fn static_cluster<C: Config>() -> [u32; 2] {
    C::Cluster::STATIC.expect("the launch of this kernel chooses the cluster")
}

/// The number of instances in these lists.
pub(super) const fn count<T, Epi>(lists: &[&[Instance<T, Epi>]]) -> usize {
    let (mut count, mut nth) = (0, 0);
    while nth < lists.len() {
        count += lists[nth].len();
        nth += 1;
    }
    count
}

/// The `N` instances of these lists, numbered.
pub(super) const fn concat<T, Epi, const N: usize>(
    lists: &[&[Instance<T, Epi>]],
) -> [Instance<T, Epi>; N] {
    let mut all = [lists[0][0]; N];
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        let mut nth = 0;
        while nth < lists[list].len() {
            all[count] = lists[list][nth];
            all[count].nth = count;
            (count, nth) = (count + 1, nth + 1);
        }
        list += 1;
    }
    all
}

impl<T, Epi> Instance<T, Epi> {
    /// The kernel's name. If its launches choose the cluster, the cluster stands behind the tile:
    /// `bf16_128x112x64_2x1_coop` for the kernel `bf16_128x112x64_coop`.
    pub const fn name(&self) -> &str {
        self.name.as_str()
    }

    /// A pair for A and B, or for C's rows and columns, in the order in which the kernel has them: exchanged if it
    /// computes Cᵀ. The same call brings the kernel's order back to the problem's.
    pub fn oriented<What>(&self, [first, second]: [What; 2]) -> [What; 2] {
        if self.transposed {
            [second, first]
        } else {
            [first, second]
        }
    }

    /// Rows and columns of C that the tiles of a cluster have together.
    pub const fn cluster_tile(&self) -> [usize; 2] {
        let [rows, columns] = self.tile;
        let [cluster_rows, cluster_columns] = self.cluster;
        [
            (rows * cluster_rows) as usize,
            (columns * cluster_columns) as usize,
        ]
    }

    /// Blocks of a cluster, each of which has a tile.
    pub const fn blocks_of_cluster(&self) -> u32 {
        self.cluster[0] * self.cluster[1]
    }

    /// Whether a cluster's tiles are all in one row, or all in one column. Then its blocks have only one operand in
    /// common.
    pub const fn is_in_line(&self) -> bool {
        matches!(self.cluster, [1, _] | [_, 1])
    }

    /// Where the last tiles of a kernel's C with these extents begin, as [`SchedulerArgs::last`] counts.
    pub fn last(&self, extents: [usize; 2]) -> [u32; 2] {
        let [line, lines] = self.boxes[2].extent;
        let units = [WARP_ROWS as u32, if self.transposed { lines } else { line }];
        [0, 1].map(|direction| {
            let outside = (extents[direction] as u32).saturating_sub(self.tile[direction]);
            outside.div_ceil(units[direction])
        })
    }

    /// Consumer warpgroups at a tile.
    pub const fn consumers_at_a_tile(&self) -> u32 {
        if self.is_pingpong { 1 } else { self.consumers }
    }

    /// Bytes of a tile of A if its boxes have `lines` lines.
    pub const fn bytes_a(&self, lines: u32) -> u32 {
        let [line, most] = self.boxes[0].extent;
        let tile = self.tile[0] * self.tile_k * size_of::<T>() as u32;
        tile / (line * most) * (line * lines)
    }
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
                bytes_a: (C::Tile::M * C::Tile::K * size_of::<C::Element>()) as u32,
                read_once: read_once(extents, tile),
                stores_c: 0,
            },
            groups: GroupArgs::ONE,
            table: TableArgs::NONE,
        }
    }
}
