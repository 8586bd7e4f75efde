//! The shape of a cluster, as a type.

/// A cluster of `M × N` blocks with neighbouring tiles of C, or of `K` blocks that share one tile's k-tiles.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<const M: usize, const N: usize, const K: usize = 1>;

/// The shape of a cluster: a [`Cluster`].
pub trait ClusterShape: Copy + 'static {
    /// Rows of tiles.
    const M: usize;
    /// Columns of tiles.
    const N: usize;
    /// Blocks at the same tile.
    const K: usize;
    /// Tiles: blocks that share what they load.
    const TILES: usize = Self::M * Self::N;
    /// Blocks.
    const BLOCKS: usize = Self::TILES * Self::K;
}

impl<const M: usize, const N: usize, const K: usize> ClusterShape for Cluster<M, N, K> {
    const M: usize = M;
    const N: usize = N;
    const K: usize = {
        assert!(
            K == 1 || M * N == 1,
            "the blocks of a cluster have a tile each, or one together"
        );
        K
    };
}
