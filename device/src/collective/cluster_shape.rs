//! The shape of a cluster, as a type.

/// A cluster of `M × N` blocks with neighbouring tiles of C, or of `K` blocks that share the k-tiles of one tile.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<const M: usize, const N: usize, const K: usize = 1>;

/// The shape of a cluster: a [`Cluster`].
pub trait ClusterShape: Copy + 'static {
    /// Rows of tiles.
    const M: usize;
    /// Columns of tiles.
    const N: usize;
    /// Blocks that share the k-tiles of one tile.
    const K: usize;
    /// Tiles of C. Their blocks multicast operands to each other.
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
            "the blocks of a cluster have a tile each, or share one tile"
        );
        K
    };
}
