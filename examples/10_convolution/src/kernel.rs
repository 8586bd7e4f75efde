//! The kernel: a matrix product by clusters of two blocks. What makes it a convolution is the layout of A.

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::collective::TileRing;
use cutlet_device::collective::{Cluster, PersistentTileScheduler, Pipeline, Splits, Stages};
use cutlet_device::sm90::{Accumulator, Wgmma};
use cutlet_device::tile::{KMajor, KMajorTile, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{TmaLoad, TmaStore, TmaTensor, copy_tile, gemm_stages, store_c_tile};
use cutlet_device::tma::tma_store_wait;
use cutlet_device::warpgroup::{ThreadOfWarpgroups, warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::warpgroup::{decrease_registers, increase_registers};
use cutlet_device::{cluster_rank, elect_one, kernel, warp_idx_sync};
use cutlet_layout_core::{Divisor, L, Raster, TiledMma};
use half::bf16;

/// Two warpgroups below one another multiply.
type Mma = TiledMma<Wgmma<256, bf16>, L!((2, 1):(1, 0))>;
/// Three stages of tiles of A, and of B.
type Ring<const ROWS: usize> =
    TileRing<bf16, OperandLayout<bf16, KMajor, ROWS, 64, 128>, SwizzleSpan<bf16, 128>, Stages<3>>;
type Barriers = Pipeline<Stages<3>, Cluster<2, 1>>;
/// Tiles in shared memory: of A, of B and of C.
pub type TileA = KMajorTile<bf16, 128, 64>;
pub type TileB = KMajorTile<bf16, 256, 64>;
pub type TileC = KMajorTile<bf16, 128, 256>;

/// C = A·B, by any number of clusters. A is ((q, p, n), (c, s, r)), B is (k, (c, tap)), and C is ((q, p, n), k). Each
/// of q, p and n has two leaves: the pixels of a tile, and the tiles.
///
/// # Safety
/// The tensors exist. Their boxes are those of [`TileA`], a half of [`TileB`] and a half of [`TileC`].
#[kernel(threads = 384, min_blocks = 1, cluster = 2, arch = "sm_90a")]
pub unsafe fn convolution(
    #[grid_constant] a: &TmaTensor<4, 6, 3>,
    #[grid_constant] b: &TmaTensor<3, 1, 2>,
    #[grid_constant] c: &TmaTensor<4, 6, 1>,
    raster: Raster<Divisor>,
    k_tiles: u32,
    #[shared] (ring_a, ring_b, tile_c, pipeline): (Ring<128>, Ring<256>, TileC, Barriers),
) {
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    if warp.is_first() && elect_one() {
        // SAFETY: no thread of the cluster uses the barriers before the cluster has met.
        unsafe { pipeline.init(1, 2) };
    }
    cluster_arrive_relaxed();
    cluster_wait();

    let splits = Splits::consecutive(1, k_tiles);
    let tiles = PersistentTileScheduler::new(Cluster::<2, 1>, raster, splits);
    if warpgroup.is_first() {
        decrease_registers::<40>();
        if warp.is_first() && elect_one() {
            let (mut producer, rank) = (pipeline.producer(), cluster_rank().get());
            for tile in tiles {
                for k_tile in 0..k_tiles {
                    let a = a.local_tile::<L!((128, 64):(1@0, 1@1))>((tile.row, k_tile));
                    let b = b.local_tile::<L!((256, 64):(1@0, 1@1))>((tile.column, k_tile));
                    let filling = producer.acquire(TileA::BYTES + TileB::BYTES);
                    let (stage, load) = (filling.stage(), TmaLoad::with(filling.barrier()));
                    // SAFETY: the launcher promises the tensors, and the stage is empty in both blocks.
                    unsafe {
                        copy_tile(load, a, ring_a.stage(stage));
                        copy_tile(load.part_of_cluster(2, rank), b, ring_b.stage(stage));
                    }
                }
            }
            // The other block signals this one's barriers, so neither ends before the other one is done.
            producer.drain();
        }
        return;
    }
    increase_registers::<232>();
    let consumer = warpgroup.after(1);
    let mma = Mma::thread_slice(ThreadOfWarpgroups::<2>::new(consumer, thread));
    let mut stages = pipeline.consumer();
    for tile in tiles {
        let new = Accumulator::new_array::<1>();
        let sums = gemm_stages(mma, new, ring_a, ring_b, &mut stages, k_tiles);
        let store = TmaStore::part::<2>(consumer);
        let c = c.local_tile::<L!((128, 256):(1@0, 1@1))>((tile.row, tile.column));
        // SAFETY: the launcher promises the tensor, and each consumer stores its own rows.
        unsafe { store_c_tile(store, mma, &sums, tile_c, c) };
    }
    if thread.is_first() {
        tma_store_wait::<0>();
    }
}
