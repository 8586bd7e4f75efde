//! Splits: which k-tiles of a tile each work tile has.

use std::sync::Mutex;

use cutlet_device::collective::*;
use cutlet_device::thread_idx;

use crate::fixture::launch;

/// The k-tiles of each split of the only tile, by a block for each work tile.
fn deal<C: ClusterShape>(cluster: C, splits: Splits, k_tiles: u32) -> Vec<(Share, Vec<u32>)> {
    let raster = cluster_raster([1, 1], [1, 1], 1);
    let dealt = Mutex::new(Vec::new());
    let blocks = C::K as u32;
    launch(32, splits.count * blocks, blocks, || {
        if !thread_idx().is(0) {
            return;
        }
        for work in PersistentTileScheduler::new(cluster, raster, splits) {
            let of_work: Vec<_> = work.k_tiles(k_tiles, false).collect();
            assert_eq!(of_work.len() as u32, work.k_tile_count(k_tiles, &splits));
            dealt.lock().unwrap().push((work.share, of_work));
        }
    })
    .unwrap();
    let mut dealt = dealt.into_inner().unwrap();
    dealt.sort_by_key(|(share, of_work)| (share.nth, of_work[0]));
    dealt
}

/// Checks that each of the tile's k-tiles is in one split. K-tiles beyond the last one are zeros.
fn check(cluster: impl ClusterShape, splits: Splits, k_tiles: u32) -> Vec<Vec<u32>> {
    let dealt = deal(cluster, splits, k_tiles);
    assert!(dealt.iter().all(|(share, _)| share.count == splits.count));
    let of_splits: Vec<_> = dealt.into_iter().map(|(_, of_split)| of_split).collect();
    let mut all: Vec<_> = of_splits.concat();
    all.retain(|&k_tile| k_tile < k_tiles);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..k_tiles), "{splits:?}: {of_splits:?}");
    of_splits
}

#[test]
fn interleaved_splits_take_turns() {
    let of_splits = check(Cluster::<1, 1>, Splits::interleaved(3, 7, 1), 7);
    assert_eq!(of_splits, [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
}

#[test]
fn consecutive_splits_have_neighbouring_k_tiles() {
    let of_splits = check(Cluster::<1, 1>, Splits::consecutive(3, 7), 7);
    assert_eq!(of_splits, [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
}

#[test]
fn every_k_tile_is_in_one_split() {
    for k_tiles in 1..20 {
        for count in 1..=k_tiles {
            check(
                Cluster::<1, 1>,
                Splits::interleaved(count, k_tiles, 1),
                k_tiles,
            );
            check(
                Cluster::<1, 1>,
                Splits::consecutive(count, k_tiles),
                k_tiles,
            );
            let shared = Splits::interleaved(count, k_tiles, 2);
            check(Cluster::<1, 1, 2>, shared, k_tiles);
        }
    }
}
