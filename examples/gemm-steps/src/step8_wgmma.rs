//! Step 8, `wgmma` and warp specialisation: four warps together issue products of 64×256×16, whose operands the tensor
//! cores read from shared memory themselves.
//!
//! A block has three warpgroups. One thread of the first one loads, and the other two multiply 64 rows each. A pipeline
//! connects them: its stages have a barrier for full and one for empty.

use cutlet_device::collective::{ClusterShape, Consumer, Pipeline, StageCount, Stages, TileRing};
use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive, warpgroup_wait};
use cutlet_device::tile::{KMajor, KMajorTile, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{
    FragmentC, TmaLoad, TmaMatrix, copy_tile, gemm_shared, store_c, wait_c,
};
use cutlet_device::tma::TensorMap;
use cutlet_device::warpgroup::{
    ThreadOfWarpgroups, WarpgroupThread, decrease_registers, increase_registers, warpgroup_idx,
    warpgroup_thread_idx,
};
use cutlet_device::{
    BlockCoord, GlobalMut, block_idx, elect_one, kernel, sync_threads, warp_idx_sync,
};
use cutlet_layout_core::{InOrder, L, ThreadMma, TiledMma, Width};
use half::bf16;

use crate::matrices::output;

/// Two warpgroups below one another.
type Below = L!((2, 1):(1, 0));
/// The instruction of a warpgroup, by both consumers.
type Instruction = Wgmma<256, bf16>;
/// See [`Instruction`].
pub type Mma = TiledMma<Instruction, Below>;
/// A consumer's part of the product.
pub type ConsumerMma = ThreadMma<Mma, ThreadOfWarpgroups<2>>;
/// A block's tile of C.
pub type TileC = L!((128, 256):(1@0, 1@1));
/// Tiles of A and of B for 64 k.
pub type TileA = L!((128, 64):(1@0, 1@1));
/// See [`TileA`].
pub type TileB = L!((256, 64):(1@0, 1@1));
/// The same in shared memory: rows of 128 bytes, swizzled.
pub type StoredA = KMajorTile<bf16, 128, 64>;
/// See [`StoredA`].
pub type StoredB = KMajorTile<bf16, 256, 64>;
/// A tile of A, and of B, for each of `S` stages.
pub type RingA<S> =
    TileRing<bf16, OperandLayout<bf16, KMajor, 128, 64, 128>, SwizzleSpan<bf16, 128>, S>;
/// See [`RingA`].
pub type RingB<S> =
    TileRing<bf16, OperandLayout<bf16, KMajor, 256, 64, 128>, SwizzleSpan<bf16, 128>, S>;
/// A thread's accumulators of the tile.
pub type Sums = FragmentC<Instruction, Below, InOrder, TileC>;
/// Four stages of 48 KiB, which is most of shared memory.
type Four = Stages<4>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The maps must describe A as (m, k) and B as (n, k), with the boxes of [`StoredA`] and [`StoredB`]. C must have these
/// extents, m and n, and n is even.
#[kernel(threads = 384, min_blocks = 1, arch = "sm_90a")]
pub unsafe fn wgmma(
    #[grid_constant] map_a: &TensorMap,
    #[grid_constant] map_b: &TensorMap,
    extents: [i32; 2],
    k_tiles: u32,
    c: GlobalMut<bf16>,
    #[shared] storage: (RingA<Four>, RingB<Four>, Pipeline<Four>),
) {
    // SAFETY: the launcher promises the extents.
    let c = unsafe { output(extents, c) };
    let (row, column) = (block_idx().y, block_idx().x);
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    let (ring_a, ring_b, pipeline) = storage;
    if warp.is_first() && elect_one() {
        // One thread fills a stage, and two warpgroups release it.
        // SAFETY: no thread uses the barriers before the block's barrier.
        unsafe { pipeline.init(1, 2) };
    }
    sync_threads();

    if warpgroup.is_first() {
        // Registers that the producer does not need go to the consumers.
        decrease_registers::<40>();
        if warp.is_first() && elect_one() {
            // SAFETY: the launcher promises the maps.
            unsafe {
                let (a, b) = (TmaMatrix::new(map_a), TmaMatrix::new(map_b));
                produce((ring_a, a), (ring_b, b), pipeline, (row, column), k_tiles);
            }
        }
        return;
    }
    increase_registers::<232>();
    let mma = Mma::thread_slice(ThreadOfWarpgroups::new(warpgroup.after(1), thread));
    let mut stages = pipeline.consumer();
    let sums = multiply((ring_a, ring_b), &mut stages, (mma, thread), k_tiles);
    store_c(Width::<2>, mma, c.local_tile::<TileC>((row, column)), &sums);
}

/// Loads all k-tiles, as soon as their stages are empty.
///
/// # Safety
/// The matrices' maps must be of these tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn produce(
    (ring_a, a): (RingA<Four>, TmaMatrix<'_>),
    (ring_b, b): (RingB<Four>, TmaMatrix<'_>),
    pipeline: Pipeline<Four>,
    (row, column): (BlockCoord, BlockCoord),
    k_tiles: u32,
) {
    let mut producer = pipeline.producer();
    for k_tile in 0..k_tiles {
        let filling = producer.acquire(StoredA::BYTES + StoredB::BYTES);
        let (stage, load) = (filling.stage(), TmaLoad::with(filling.barrier()));
        let (a, b) = (
            a.local_tile::<TileA>((row, k_tile)),
            b.local_tile::<TileB>((column, k_tile)),
        );
        // SAFETY: the caller promises the maps, and the stage is empty.
        unsafe {
            copy_tile(load, a, ring_a.stage(stage));
            copy_tile(load, b, ring_b.stage(stage));
        }
    }
}

/// Multiplies the next `k_tiles` k-tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn multiply<S: StageCount, C: ClusterShape>(
    (ring_a, ring_b): (RingA<S>, RingB<S>),
    stages: &mut Consumer<S, C>,
    (mma, thread): (ConsumerMma, WarpgroupThread),
    k_tiles: u32,
) -> Sums {
    let mut sums = Accumulator::new_array::<1>();
    let mut under_way = None;
    for k_tile in 0..k_tiles {
        let filled = stages.wait();
        let (a, b) = (
            ring_a.operand_a::<Instruction>(filled.stage()),
            ring_b.operand_b::<Instruction>(filled.stage()),
        );
        let group = warpgroup_arrive();
        // SAFETY: the stage is full until it is released. The first k-tile replaces what the accumulators hold.
        unsafe { gemm_shared(&group, mma, a, b, &mut sums, k_tile > 0) };
        group.commit();
        // This k-tile is multiplied while the next one is awaited. The one before is done.
        warpgroup_wait::<1>();
        if let Some(done) = under_way.replace(filled) {
            stages.release(done, thread);
        }
    }
    let sums = wait_c(mma, sums);
    if let Some(done) = under_way {
        stages.release(done, thread);
    }
    sums
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &wgmma)?;
    let map_a = it.map_of_a(StoredA::tile_box(1))?;
    let map_b = it.map_of_b(StoredB::tile_box(1))?;
    let [m, n, _] = it.extents();
    let (grid, k_tiles) = (it.grid([128, 256]), it.k.div_ceil(64) as u32);
    // SAFETY: the maps and C have these extents. `Step::gemm` has checked n.
    unsafe {
        stream.launch(
            &function,
            grid,
            (map_a, map_b, [m, n], k_tiles, it.c.reborrow()),
        )
    }?;
    Ok(())
}
