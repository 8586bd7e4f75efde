//! Step 9, clusters and persistent blocks: two blocks share their tiles of B, and a block stays for the whole launch,
//! so that the next tile is loaded while this one is stored.
//!
//! The roles are those of step 8. The producer runs ahead into the next tile of C. A consumer leaves its rows in shared
//! memory, from where TMA stores them while the next tile is multiplied.

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::collective::{Cluster, PersistentTileScheduler, Pipeline, Splits, Stages};
use cutlet_device::tile::KMajorTile;
use cutlet_device::tiled::{StMatrix, TmaLoad, TmaMatrix, TmaStore, TmaTile, copy_tile, store_c};
use cutlet_device::tma::{TensorMap, tma_store_commit, tma_store_wait, tma_store_wait_read};
use cutlet_device::warpgroup::{
    ThreadOfWarpgroups, WarpgroupIdx, WarpgroupThread, decrease_registers, increase_registers,
    warpgroup_idx, warpgroup_sync, warpgroup_thread_idx,
};
use cutlet_device::{
    SharedStorage, cluster_rank, elect_one, fence_async_shared, kernel, warp_idx_sync,
};
use cutlet_layout_core::{Divisor, Raster};
use half::bf16;

use crate::step8_wgmma::{
    ConsumerMma, Mma, RingA, RingB, StoredA, StoredB, Sums, TileA, TileB, TileC, multiply,
};

/// A block's tile of C in shared memory.
type StoredC = KMajorTile<bf16, 128, 256>;
/// Three stages of 48 KiB leave room for it.
type Three = Stages<3>;
/// Two blocks below one another. They need the same columns of C, and so the same tiles of B.
type Pair = Cluster<2, 1>;
/// The work tiles of a block.
type Tiles = PersistentTileScheduler<Pair>;

/// What a block keeps in shared memory.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage {
    a: RingA<Three>,
    b: RingB<Three>,
    c: StoredC,
    pipeline: Pipeline<Three, Pair>,
}

/// `C = A·B`. Any number of clusters computes all tiles of `raster`.
///
/// # Safety
/// The maps must describe A as (m, k), B as (n, k) and C as (m, n), with the boxes of [`StoredA`], a half of
/// [`StoredB`] and a half of [`StoredC`].
#[kernel(threads = 384, min_blocks = 1, cluster = 2, arch = "sm_90a")]
pub unsafe fn clusters(
    #[grid_constant] map_a: &TensorMap,
    #[grid_constant] map_b: &TensorMap,
    #[grid_constant] map_c: &TensorMap,
    raster: Raster<Divisor>,
    splits: Splits,
    k_tiles: u32,
    #[shared] storage: Storage,
) {
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    if warp.is_first() && elect_one() {
        // SAFETY: no thread of the cluster uses the barriers before the cluster has met.
        unsafe { storage.pipeline.init(1, 2) };
    }
    cluster_arrive_relaxed();
    cluster_wait();

    // Every role asks the scheduler itself: the same tiles in the same order.
    let tiles = Tiles::new(Cluster, raster, splits);
    if warpgroup.is_first() {
        decrease_registers::<40>();
        if warp.is_first() && elect_one() {
            // SAFETY: the launcher promises the maps.
            unsafe {
                let (a, b) = (TmaMatrix::new(map_a), TmaMatrix::new(map_b));
                produce(storage, a, b, tiles, k_tiles);
            }
        }
        return;
    }
    increase_registers::<232>();
    let consumer = warpgroup.after(1);
    let mma = Mma::thread_slice(ThreadOfWarpgroups::new(consumer, thread));
    let mut stages = storage.pipeline.consumer();
    // SAFETY: the launcher promises the map.
    let c = unsafe { TmaMatrix::new(map_c) };
    for tile in tiles {
        let sums = multiply((storage.a, storage.b), &mut stages, (mma, thread), k_tiles);
        let to = c.local_tile::<TileC>((tile.row, tile.column));
        // SAFETY: the launcher promises the map.
        unsafe { store(mma, &sums, storage.c, to, (consumer, thread)) };
    }
    if thread.is_first() {
        tma_store_wait::<0>();
    }
}

/// Loads the k-tiles of all tiles. Each block of the cluster loads its own A, and half of B for both.
///
/// # Safety
/// The matrices' maps must be of these tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn produce(
    storage: Storage,
    a: TmaMatrix<'_>,
    b: TmaMatrix<'_>,
    tiles: Tiles,
    k_tiles: u32,
) {
    let rank = cluster_rank().get();
    let mut producer = storage.pipeline.producer();
    for tile in tiles {
        for k_tile in 0..k_tiles {
            let filling = producer.acquire(StoredA::BYTES + StoredB::BYTES);
            let (stage, load) = (filling.stage(), TmaLoad::with(filling.barrier()));
            let a = a.local_tile::<TileA>((tile.row, k_tile));
            let b = b.local_tile::<TileB>((tile.column, k_tile));
            // SAFETY: the caller promises the maps, and the stage is empty in both blocks.
            unsafe {
                copy_tile(load, a, storage.a.stage(stage));
                copy_tile(load.part_of_cluster(2, rank), b, storage.b.stage(stage));
            }
        }
    }
    // The other block signals this one's barriers, so neither ends before the other one is done.
    producer.drain();
}

/// Rounds a warpgroup's accumulators to bf16, and lets TMA store them.
///
/// # Safety
/// The map must be of halves of the tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store(
    mma: ConsumerMma,
    sums: &Sums,
    stored: StoredC,
    to: TmaTile<'_, TileC>,
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
) {
    // The store of the tile before has read these rows.
    if thread.is_first() {
        tma_store_wait_read::<0>();
    }
    warpgroup_sync(consumer);
    // SAFETY: barriers order the stores, and what TMA reads.
    store_c(StMatrix, mma, unsafe { stored.tensor() }, sums);
    fence_async_shared();
    warpgroup_sync(consumer);
    if thread.is_first() {
        // SAFETY: the caller promises the map, and the rows are written.
        unsafe { copy_tile(TmaStore::part::<2>(consumer), stored, to) };
        tma_store_commit();
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, it: crate::Operands<'_>) -> crate::Result<()> {
    use cutlet_device::collective::cluster_raster;

    let device = stream.device();
    let function = device.load(&crate::PTX, &clusters)?;
    let map_a = it.map_of_a(StoredA::tile_box(1))?;
    let map_b = it.map_of_b(StoredB::multicast_box(2))?;
    let map_c = it.map_of_c(StoredC::tile_box(2))?;
    let (columns, rows) = it.grid([128, 256]);
    let k_tiles = it.k.div_ceil(64) as u32;
    // Clusters visit 8 rows of tiles together, so that their operands stay in the L2 cache.
    let raster = cluster_raster([rows, columns], [2, 1], 8);
    let at_a_time = device.clusters_at_a_time(2)?.min(raster.size());
    let splits = Splits::consecutive(1, k_tiles);
    let args = (map_a, map_b, map_c, raster, splits, k_tiles);
    // SAFETY: the maps have these extents. C is borrowed mutably, and no other launch uses it.
    unsafe { stream.launch(&function, 2 * at_a_time, args) }?;
    Ok(())
}
