//! Tiles that are streamed: which k-tiles each cluster has, and where the shares of a tile go.

use std::num::NonZeroU32;
use std::sync::Mutex;

use cutlet_device::collective::*;
use cutlet_device::thread_idx;
use cutlet_layout_core::Divisor;

use crate::fixture::launch;

/// A work tile as a block got it.
#[derive(Clone, Copy, Debug)]
struct Dealt {
    row: u32,
    column: u32,
    /// Its k-tiles: the first one, and how many.
    k_tiles: (u32, u32),
    share: Share,
    tile: u32,
}

/// Rows and columns of tiles, all of which have `k_tiles` k-tiles. The last `count` tiles of clusters are streamed.
fn deal(
    cluster: impl ClusterShape,
    tiles: [u32; 2],
    k_tiles: u32,
    count: u32,
    clusters: u32,
) -> Vec<Dealt> {
    let raster = cluster_raster(tiles, [cluster.rows(), cluster.columns()], 4);
    let number = |number| Divisor::new(NonZeroU32::new(number).unwrap());
    let streamed = StreamedTiles {
        first: raster.size() - count,
        count,
        k_tiles: number(k_tiles),
        quantum: number((count * k_tiles).div_ceil(clusters)),
    };
    let dealt = Mutex::new(Vec::new());
    launch(32, clusters * cluster.tiles(), cluster.tiles(), || {
        if !thread_idx().is(0) {
            return;
        }
        let splits = Splits::interleaved(1, k_tiles, 1);
        let whole = PersistentTileScheduler::new(cluster, raster, splits);
        for work in StreamKTileScheduler::new(whole, streamed) {
            let of_work: Vec<_> = work.k_tiles(k_tiles, false).collect();
            assert_eq!(of_work.len() as u32, work.k_tile_count(k_tiles, &splits));
            assert!(of_work.windows(2).all(|pair| pair[1] == pair[0] + 1));
            assert!(work.share.count == 1 || work.share.nth < work.share.count);
            dealt.lock().unwrap().push(Dealt {
                row: work.row,
                column: work.column,
                k_tiles: (of_work[0], of_work.len() as u32),
                share: work.share,
                tile: work.tile,
            });
        }
    })
    .unwrap();
    dealt.into_inner().unwrap()
}

/// Checks that every k-tile of every tile is dealt out once, that shares are in the order of their k-tiles, and that no
/// two of them have the same place.
fn check(cluster: impl ClusterShape, tiles: [u32; 2], k_tiles: u32, count: u32, clusters: u32) {
    let mut dealt = deal(cluster, tiles, k_tiles, count, clusters);
    dealt.sort_by_key(|it| (it.row, it.column, it.share.nth));
    let [rows, columns] = tiles;
    let all = rows.next_multiple_of(cluster.rows()) * columns.next_multiple_of(cluster.columns());
    let mut places = Vec::new();
    let mut counters = Vec::new();
    let mut seen = 0;
    for shares in dealt.chunk_by(|a, b| (a.row, a.column) == (b.row, b.column)) {
        assert_eq!(shares.len() as u32, shares[0].share.count, "{shares:?}");
        let mut next = 0;
        for (nth, it) in shares.iter().enumerate() {
            assert_eq!(
                (it.share.nth, it.k_tiles.0),
                (nth as u32, next),
                "{shares:?}"
            );
            next += it.k_tiles.1;
            if it.share.count > 1 {
                places.push(it.share.first + it.share.nth);
            }
        }
        if shares.len() > 1 {
            counters.push(shares[0].tile);
        }
        assert_eq!(next, k_tiles, "{shares:?}");
        seen += 1;
    }
    assert_eq!(seen, all);
    let most = (count + clusters) * cluster.tiles();
    assert!(places.iter().all(|place| *place < most), "{places:?}");
    for mut numbers in [places, counters] {
        let len = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), len, "each has a place of its own");
    }
}

#[test]
fn every_k_tile_is_dealt_out_once() {
    check(Cluster::<1, 1>, [3, 5], 7, 15, 4);
    check(Cluster::<1, 1>, [3, 5], 7, 3, 4);
    check(Cluster::<1, 1>, [1, 2], 40, 2, 9);
    check(Cluster::<2, 1>, [5, 3], 6, 4, 5);
    check(Cluster::<4, 1>, [9, 2], 5, 6, 4);
    check(Cluster::<2, 2>, [6, 3], 11, 2, 3);
    check(DynamicCluster::new([1, 1]), [1, 2], 40, 2, 9);
    check(DynamicCluster::new([2, 4]), [5, 6], 7, 3, 2);
}

/// Some clusters then have none.
#[test]
fn there_may_be_fewer_k_tiles_than_clusters() {
    check(Cluster::<1, 1>, [1, 1], 3, 1, 8);
    check(Cluster::<1, 1>, [1, 2], 1, 2, 5);
}

#[test]
fn without_streamed_tiles_all_are_whole() {
    let dealt = deal(Cluster::<1, 1>, [3, 3], 5, 1, 9);
    assert_eq!(dealt.iter().filter(|it| it.share.count == 1).count(), 8);
}
