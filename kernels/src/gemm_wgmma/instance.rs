//! What the host knows of an instance of gemm_wgmma: how to choose it, and how to launch it.

use cutlet_device::hopper::{TensorMap, TileBox};
use cutlet_device::{GlobalMut, Kernel};

use super::{K, Problem, Scale, WARP_ROWS};

/// The arguments of an instance: maps of A, B and C, C, the workspace, the problem and the epilogue.
pub type Arguments<T, Epi> = (
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<T>,
    GlobalMut<f32>,
    Problem,
    Epi,
);

/// What the host needs to know of an instance to choose and launch it.
#[derive(Debug)]
pub struct Instance<T: 'static, Epi: 'static = Scale> {
    /// Its place among those of its epilogue: the same for either element type.
    pub nth: usize,
    /// The kernel.
    pub kernel: &'static Kernel<Arguments<T, Epi>>,
    /// Whether k is consecutive in A and in B.
    pub k_major: [bool; 2],
    /// Rows and columns of a block's tile of C.
    pub tile: [u32; 2],
    /// Rows and columns of tiles that a cluster has.
    pub cluster: [u32; 2],
    /// Blocks of a cluster that share the steps of a tile.
    pub depth: u32,
    /// Consumers, …
    pub consumers: u32,
    /// … and whether they take turns, each with a tile of its own.
    pub alternate: bool,
    /// Whether all that it can do with a C of its type is to overwrite it, by TMA: one whose consumers have more
    /// than 64 rows each has no registers for anything else, and a C that lies by columns is not read.
    pub overwrites_only: bool,
    /// Pieces of C that a consumer may have on their way.
    pub pieces_under_way: usize,
    /// Whether it can leave sums where C would be.
    pub leaves_sums: bool,
    /// Whether its blocks can add the parts of a tile's sums.
    pub fixes_up: bool,
    /// Whether C's columns are consecutive, so that a row-major C is computed as `Cᵀ = Bᵀ·Aᵀ`: what is said
    /// here of A, B and C is said of Bᵀ, Aᵀ and Cᵀ then.
    pub transposed: bool,
    /// The boxes of the tensor maps of A, B and C.
    pub boxes: [TileBox; 3],
}

impl<T, Epi> Instance<T, Epi> {
    /// What is said of A and B, or of C's rows and columns, in the order in which the kernel has them: the
    /// other way around if it computes Cᵀ. What the kernel has, in the problem's order, is the same.
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
        let [blocks_below, blocks_beside] = self.cluster;
        [
            (rows * blocks_below) as usize,
            (columns * blocks_beside) as usize,
        ]
    }

    /// Tiles of a cluster.
    pub const fn tiles_of_cluster(&self) -> u32 {
        self.cluster[0] * self.cluster[1]
    }

    /// Whether a cluster's tiles are all of one row, or all of one column: then each of its blocks reads something for
    /// itself.
    pub const fn is_in_line(&self) -> bool {
        matches!(self.cluster, [1, _] | [_, 1])
    }

    /// Blocks of a cluster.
    pub const fn blocks_of_cluster(&self) -> u32 {
        self.tiles_of_cluster() * self.depth
    }

    /// Where the last tiles of such an extent of the kernel's C begin, as [`Problem::last`] counts it.
    pub fn last(&self, extents: [usize; 2]) -> [u32; 2] {
        let [line, lines] = self.boxes[2].extent;
        let units = [WARP_ROWS as u32, if self.transposed { lines } else { line }];
        [0, 1].map(|direction| {
            let outside = (extents[direction] as u32).saturating_sub(self.tile[direction]);
            outside.div_ceil(units[direction])
        })
    }

    /// How many consumers are together at a tile.
    pub const fn consumers_of_a_tile(&self) -> u32 {
        if self.alternate { 1 } else { self.consumers }
    }

    /// Bytes of a tile of A if its boxes have `lines` lines.
    pub const fn bytes_a(&self, lines: u32) -> u32 {
        let [line, most] = self.boxes[0].extent;
        let tile = self.tile[0] * K as u32 * size_of::<T>() as u32;
        tile / (line * most) * (line * lines)
    }
}
