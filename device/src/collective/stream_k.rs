//! The stream-K tile scheduler: tiles that do not fill a wave are dealt out k-tile by k-tile, so that all blocks have
//! as many.

use core::num::NonZeroU32;

use cutlet_layout_core::{Divide, Divisor};

use super::scheduler::{KTilesOf, PersistentTileScheduler, Share, WorkTile};
use super::{ClusterShape, Group};
use crate::{DeviceData, cluster_rank, grid_dim};

/// Which tiles are streamed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StreamedTiles {
    /// The first of them. The tiles before are whole.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// K-tiles of a tile.
    pub k_tiles: Divisor,
    /// The k-tiles that each cluster has of them: as many as it takes for the clusters to have all.
    pub quantum: Divisor,
}

// SAFETY: a `repr(C)` struct of `u32` and of structs of them, of which every bit pattern is a value.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for StreamedTiles {}

impl StreamedTiles {
    /// No tile is streamed.
    pub const NONE: Self = Self {
        first: u32::MAX,
        count: 0,
        k_tiles: Divisor::new(NonZeroU32::MIN),
        quantum: Divisor::new(NonZeroU32::MIN),
    };

    /// The places that shares need in a launch of `clusters` clusters: each tile and each cluster begins at most one.
    pub const fn shares(&self, clusters: u32) -> u32 {
        self.count + clusters
    }
}

/// The work tiles of a persistent block, of which the last tiles are streamed.
///
/// A cluster first has whole tiles, as a [`PersistentTileScheduler`] deals them out. Then it has a run of k-tiles of
/// the streamed tiles: the end of one tile, whole tiles, the beginning of another one. The [`Fixup`](super::Fixup) adds
/// the shares of a tile.
#[derive(Clone, Copy, Debug)]
pub struct StreamKTileScheduler<C> {
    whole: PersistentTileScheduler<C>,
    streamed: StreamedTiles,
    /// The next of the cluster's k-tiles of streamed tiles, and the one after the last.
    next: u32,
    end: u32,
}

impl<C: ClusterShape> StreamKTileScheduler<C> {
    /// The running block's work tiles. `whole` deals out all tiles. Those that are `streamed` have fewer than 2³¹
    /// k-tiles together.
    #[inline(always)]
    pub fn new(whole: PersistentTileScheduler<C>, streamed: StreamedTiles) -> Self {
        let all = streamed.count * streamed.k_tiles.divisor();
        let begin = whole.cluster.cluster_idx() * streamed.quantum.divisor();
        Self {
            whole,
            streamed,
            next: begin.min(all),
            end: (begin + streamed.quantum.divisor()).min(all),
        }
    }
}

impl<C: ClusterShape> Iterator for StreamKTileScheduler<C> {
    type Item = WorkTile;

    #[inline(always)]
    fn next(&mut self) -> Option<WorkTile> {
        if self.whole.next < self.streamed.first {
            return self.whole.next();
        }
        if self.next >= self.end {
            return None;
        }
        let StreamedTiles {
            k_tiles, quantum, ..
        } = self.streamed;
        let (tile, first) = k_tiles.div_rem(self.next);
        let begin = self.next - first;
        let end = k_tiles.divisor().min(self.end - begin);
        self.next = begin + end;
        // The clusters that have the tile's first and its last k-tile.
        let (from, _) = quantum.div_rem(begin);
        let (to, _) = quantum.div_rem(begin + k_tiles.divisor() - 1);
        let rank = cluster_rank();
        let cluster = self.whole.cluster;
        let nth_of_cluster = cluster.nth_tile(rank);
        let places = self.streamed.shares(cluster.clusters(grid_dim().x));
        let (row, column) = self.whole.tile(self.streamed.first + tile);
        Some(WorkTile {
            row,
            column,
            k_tiles: KTilesOf {
                first,
                stride: 1,
                end,
            },
            split_row: 0,
            tile: tile * cluster.tiles() + nth_of_cluster,
            share: Share {
                nth: cluster.cluster_idx() - from,
                count: to - from + 1,
                first: nth_of_cluster * places + tile + from,
            },
            group: Group::default(),
        })
    }
}
