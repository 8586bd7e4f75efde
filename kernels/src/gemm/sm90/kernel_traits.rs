//! What a kernel's configuration says, as values: the kernel's traits, by which the host chooses it.

// A build without the family makes no instances.
#![cfg_attr(not(feature = "hopper"), allow(dead_code))]

use cutlet_device::tile::Major;
use cutlet_device::tma::TmaBox;

use super::config::{Acc, Config, box_a, box_b, box_c, runs_fixup, streams_tiles, writes_partials};
use super::instance_name::InstanceName;
use super::scaling::Scaling;
use crate::gemm::config::{ClusterShape, Consumers, TileShape};
use crate::gemm::epilogue::Epilogue;
use crate::gemm::scheduler::WARP_ROWS;

/// The traits of a kernel in a cluster.
#[derive(Clone, Copy, Debug)]
pub struct KernelTraits {
    /// Its place among the instances with its epilogue: the same for bf16 and f16.
    pub nth: usize,
    pub(super) name: InstanceName,
    /// Bytes of an element of A and B.
    pub bytes_in: u32,
    /// Products of the tensor cores for each product of two elements.
    pub products: u32,
    /// Whether consumers add each k-tile's products to sums.
    pub promotes: bool,
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

impl KernelTraits {
    /// The traits of a kernel of this name, configuration and epilogue, in clusters of so many rows and columns.
    ///
    /// # Panics
    /// If the kernel is compiled for another cluster.
    pub(super) const fn of<C: Config, Epi: Epilogue<Acc = Acc<C>>>(
        kernel: &str,
        cluster: [u32; 2],
    ) -> Self {
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
                InstanceName::of_kernel(kernel)
            }
            None => InstanceName::in_cluster(kernel, cluster),
        };
        Self {
            nth: 0,
            name,
            bytes_in: size_of::<C::In>() as u32,
            products: C::Scaling::PRODUCTS,
            promotes: C::Scaling::IS_PROMOTED,
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

    /// Where the last tiles of a kernel's C with these extents begin, as
    /// [`SchedulerArgs::last`](crate::gemm::args::SchedulerArgs::last) counts.
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
        let tile = self.tile[0] * self.tile_k * self.bytes_in;
        tile / (line * most) * (line * lines)
    }
}
