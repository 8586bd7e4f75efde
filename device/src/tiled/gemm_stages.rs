//! The main loop of a product by warpgroups: the k-tiles of a pipeline's stages, multiplied as they arrive.

use cutlet_layout_core::{
    Arrangement, FragmentLayout, InOrder, Mma, OperandC, PartitionValues, StaticSwizzle, ThreadMma,
    TileShape, TiledMma,
};

use super::{FragmentC, gemm_shared, wait_c};
use crate::MmaInstruction;
use crate::collective::{ClusterShape, Consumer, StageCount, TileRing};
use crate::sm90::{Accumulator, WgmmaInstruction, warpgroup_arrive, warpgroup_wait};
use crate::warpgroup::ThreadOfWarpgroups;

/// Multiplies the k-tiles of the next `k_tiles` stages, releases the stages, and returns the sums: a thread's
/// accumulators of an M×N tile of C. The warpgroups of the tiled MMA call it. `accumulators` are new ones, which is how
/// the caller says how many instructions' rows a warpgroup has, as [`gemm_shared`] takes them.
///
/// A k-tile is multiplied while the next one is awaited. The pipeline's producer announces the bytes of a tile of A and
/// of B for each stage, and loads both.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn gemm_stages<I, W, A, B, ZA, ZB, S, C, Tile, const ATOMS: usize, const WARPGROUPS: u32>(
    mma: ThreadMma<TiledMma<I, W>, ThreadOfWarpgroups<WARPGROUPS>>,
    accumulators: [Accumulator<I>; ATOMS],
    ring_a: TileRing<<I as MmaInstruction>::A, A, ZA, S>,
    ring_b: TileRing<<I as MmaInstruction>::B, B, ZB, S>,
    stages: &mut Consumer<S, C>,
    k_tiles: u32,
) -> FragmentC<I, W, InOrder, Tile>
where
    I: WgmmaInstruction + Mma,
    W: Arrangement,
    A: TileShape,
    B: TileShape,
    ZA: StaticSwizzle,
    ZB: StaticSwizzle,
    S: StageCount,
    C: ClusterShape,
    PartitionValues<TiledMma<I, W>, OperandC, Tile>: FragmentLayout,
{
    let thread = mma.thread().in_warpgroup();
    let mut sums = accumulators;
    let mut under_way = None;
    for k_tile in 0..k_tiles {
        let filled = stages.wait();
        let (a, b) = (
            ring_a.operand_a::<I>(filled.stage()),
            ring_b.operand_b::<I>(filled.stage()),
        );
        let group = warpgroup_arrive();
        // SAFETY: the stage is full until it is released. The first k-tile replaces what the accumulators hold.
        unsafe { gemm_shared(&group, mma, a, b, &mut sums, k_tile > 0) };
        group.commit();
        // All but this k-tile's group have been multiplied.
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
