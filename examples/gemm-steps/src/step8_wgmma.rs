//! Step 8, `wgmma` and warp specialisation: four warps together issue products of 64×256×16, whose operands the tensor
//! cores read from shared memory themselves.
//!
//! A block has three warpgroups. One thread of the first one loads, and the other two multiply 64 rows each. A pipeline
//! connects them: its stages have a barrier for full and one for empty.

use cutlet_device::collective::{ClusterShape, Consumer, Pipeline, StageCount, Stages, TileRing};
use cutlet_device::sm90::{
    Accumulator, AccumulatorLayout, Wgmma, warpgroup_arrive, warpgroup_wait,
};
use cutlet_device::tile::{KMajor, KMajorTile, OperandLayout, SwizzleSpan};
use cutlet_device::tma::{LoadOptions, TensorMap};
use cutlet_device::warpgroup::{
    WarpgroupIdx, WarpgroupThread, decrease_registers, increase_registers, warpgroup_idx,
    warpgroup_thread_idx,
};
use cutlet_device::{
    BlockCoord, Float, GlobalMut, MmaInstruction, block_idx, elect_one, kernel, sync_threads,
    warp_idx_sync,
};
use cutlet_layout_core::{Fragment, L, tile_origin};
use half::bf16;

use crate::matrices::{Output, output};

/// The instruction of a warpgroup.
pub type Mma = Wgmma<256, bf16>;
/// A block's tile of C, and the half of a warpgroup.
pub type TileC = L!((128, 256):(1@0, 1@1));
type HalfOfC = L!((64, 256):(1@0, 1@1));
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
/// A thread's accumulators.
pub type Sums = Fragment<f32, <Mma as MmaInstruction>::Values>;
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
                produce(
                    (ring_a, map_a),
                    (ring_b, map_b),
                    pipeline,
                    (row, column),
                    k_tiles,
                )
            };
        }
        return;
    }
    increase_registers::<232>();
    let who = (warpgroup.after(1), thread);
    let sums = multiply((ring_a, ring_b), &mut pipeline.consumer(), who, k_tiles);
    store(&sums, c, (row, column), who);
}

/// Loads all k-tiles, as soon as their stages are empty.
///
/// # Safety
/// The maps must be of these tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn produce(
    (ring_a, map_a): (RingA<Four>, &TensorMap),
    (ring_b, map_b): (RingB<Four>, &TensorMap),
    pipeline: Pipeline<Four>,
    (row, column): (BlockCoord, BlockCoord),
    k_tiles: u32,
) {
    let mut producer = pipeline.producer();
    for k_tile in 0..k_tiles {
        let filling = producer.acquire(StoredA::BYTES + StoredB::BYTES);
        let (stage, full) = (filling.stage(), filling.barrier());
        let (from_a, from_b) = (
            tile_origin::<TileA>((row, k_tile)),
            tile_origin::<TileB>((column, k_tile)),
        );
        let options = LoadOptions::DEFAULT;
        // SAFETY: the caller promises the maps, and the stage is empty.
        unsafe {
            ring_a.stage(stage).load(map_a, from_a, full, options);
            ring_b.stage(stage).load(map_b, from_b, full, options);
        }
    }
}

/// Multiplies a warpgroup's 64 rows of the next `k_tiles` k-tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn multiply<S: StageCount, C: ClusterShape>(
    (ring_a, ring_b): (RingA<S>, RingB<S>),
    stages: &mut Consumer<S, C>,
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    k_tiles: u32,
) -> Sums {
    let mut sums = Accumulator::<Mma>::new();
    let mut under_way = None;
    for k_tile in 0..k_tiles {
        let filled = stages.wait();
        let a = ring_a.operand_a::<Mma>(filled.stage()).rows(consumer);
        let b = ring_b.operand_b::<Mma>(filled.stage());
        let group = warpgroup_arrive();
        let steps_a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
        let steps_b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
        // SAFETY: the stage is full until it is released. The first k-tile replaces what the accumulators hold.
        unsafe { group.mma_x4(&mut sums, steps_a, steps_b, k_tile > 0) };
        group.commit();
        // This k-tile is multiplied while the next one is awaited. The one before is done.
        warpgroup_wait::<1>();
        if let Some(done) = under_way.replace(filled) {
            stages.release(done, thread);
        }
    }
    let sums = sums.wait();
    if let Some(done) = under_way {
        stages.release(done, thread);
    }
    sums
}

/// Rounds a warpgroup's accumulators to bf16, and stores them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn store(
    sums: &Sums,
    c: Output,
    (row, column): (BlockCoord, BlockCoord),
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
) {
    c.local_tile::<TileC>((row, column))
        .local_tile::<HalfOfC>((consumer, 0u32))
        .partition::<AccumulatorLayout<Mma, 2>>(thread)
        .store_with(|v| Float::from_f32(sums.get(v)));
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
