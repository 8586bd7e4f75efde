//! The shape of a cluster: known when a kernel is compiled, or chosen at each launch.

use crate::{ClusterRank, DeviceData, block_idx};

/// A cluster of `M × N` blocks with neighbouring tiles of C, or of `K` blocks that share the k-tiles of one tile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cluster<const M: usize, const N: usize, const K: usize = 1>;

/// A cluster of blocks with neighbouring tiles of C, whose rows and columns the launch chooses. So one kernel serves
/// all shapes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DynamicCluster {
    columns: u32,
    tiles: u32,
    columns_log2: u32,
    tiles_log2: u32,
}

// SAFETY: a `repr(C)` struct of `u32`, of which every bit pattern is a value.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for DynamicCluster {}

impl DynamicCluster {
    /// A cluster of one block.
    pub const ONE_BLOCK: Self = Self::new([1, 1]);

    /// The cluster of so many rows and columns of tiles.
    ///
    /// # Panics
    /// If these are no powers of two, or if there are more than 16 tiles.
    pub const fn new([rows, columns]: [u32; 2]) -> Self {
        assert!(
            rows.is_power_of_two() && columns.is_power_of_two() && rows * columns <= 16,
            "the rows and columns of a cluster are powers of two, and it has at most 16 tiles"
        );
        Self {
            columns,
            tiles: rows * columns,
            columns_log2: columns.ilog2(),
            tiles_log2: (rows * columns).ilog2(),
        }
    }
}

impl Default for DynamicCluster {
    #[inline(always)]
    fn default() -> Self {
        Self::ONE_BLOCK
    }
}

/// The shape of a cluster: a [`Cluster`], which has no size, or a [`DynamicCluster`].
pub trait ClusterShape: Copy + Default + Send + Sync + 'static {
    /// Rows and columns of tiles, if the shape is known when a kernel is compiled.
    const STATIC: Option<[u32; 2]>;
    /// Blocks that share the k-tiles of one tile.
    const K: usize;
    /// Whether a cluster may have several tiles. Their blocks multicast operands to each other.
    const MAY_HAVE_TILES: bool = match Self::STATIC {
        Some([rows, columns]) => rows * columns > 1,
        None => true,
    };
    /// Blocks of a cluster as `#[kernel(cluster = …)]` takes them: 0 if each launch says it.
    const LAUNCH_BOUND: u32 = match Self::STATIC {
        Some([rows, columns]) => rows * columns * Self::K as u32,
        None => 0,
    };

    /// The shape, in a launch in clusters of this shape.
    fn of_launch(launched: DynamicCluster) -> Self;

    /// Rows of tiles.
    fn rows(self) -> u32;

    /// Columns of tiles.
    fn columns(self) -> u32;

    /// Tiles of C.
    #[inline(always)]
    fn tiles(self) -> u32 {
        self.rows() * self.columns()
    }

    /// How many clusters this number of blocks makes, rounded down.
    fn clusters(self, blocks: u32) -> u32;

    /// The index of the running block's cluster, in a grid of one dimension.
    #[inline(always)]
    fn cluster_idx(self) -> u32 {
        self.clusters(block_idx().x.get())
    }

    /// The row of a block. Ranks run along rows.
    fn row(self, rank: ClusterRank) -> u32;

    /// The column of a block.
    fn column(self, rank: ClusterRank) -> u32;

    /// The index of a block's tile among the cluster's tiles.
    fn nth_tile(self, rank: ClusterRank) -> u32;

    /// The index of a block among those that share the k-tiles of its tile.
    #[inline(always)]
    fn nth_share(rank: ClusterRank) -> u32 {
        rank.part(Self::K)
    }
}

impl<const M: usize, const N: usize, const K: usize> ClusterShape for Cluster<M, N, K> {
    const STATIC: Option<[u32; 2]> = Some([M as u32, N as u32]);
    const K: usize = {
        assert!(
            K == 1 || M * N == 1,
            "the blocks of a cluster have a tile each, or share one tile"
        );
        K
    };

    #[inline(always)]
    fn of_launch(_: DynamicCluster) -> Self {
        Self
    }

    #[inline(always)]
    fn rows(self) -> u32 {
        M as u32
    }

    #[inline(always)]
    fn columns(self) -> u32 {
        N as u32
    }

    #[inline(always)]
    fn clusters(self, blocks: u32) -> u32 {
        blocks / (M * N * Self::K) as u32
    }

    #[inline(always)]
    fn row(self, rank: ClusterRank) -> u32 {
        rank.row(M, N)
    }

    #[inline(always)]
    fn column(self, rank: ClusterRank) -> u32 {
        rank.column(M, N)
    }

    #[inline(always)]
    fn nth_tile(self, rank: ClusterRank) -> u32 {
        rank.part(M * N)
    }
}

impl ClusterShape for DynamicCluster {
    const STATIC: Option<[u32; 2]> = None;
    const K: usize = 1;

    #[inline(always)]
    fn of_launch(launched: DynamicCluster) -> Self {
        launched
    }

    #[inline(always)]
    fn rows(self) -> u32 {
        self.tiles >> self.columns_log2
    }

    #[inline(always)]
    fn columns(self) -> u32 {
        self.columns
    }

    #[inline(always)]
    fn tiles(self) -> u32 {
        self.tiles
    }

    #[inline(always)]
    fn clusters(self, blocks: u32) -> u32 {
        blocks >> self.tiles_log2
    }

    #[inline(always)]
    fn row(self, rank: ClusterRank) -> u32 {
        rank.get() >> self.columns_log2
    }

    #[inline(always)]
    fn column(self, rank: ClusterRank) -> u32 {
        rank.get() & (self.columns - 1)
    }

    #[inline(always)]
    fn nth_tile(self, rank: ClusterRank) -> u32 {
        rank.get()
    }
}
