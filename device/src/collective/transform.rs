//! Transform warps: they read a stage that is full, write what consumers need besides, and hand the stage over to the
//! consumers. `wgmma` reads shared memory alone, so that what threads compute for it must lie there.

use core::marker::PhantomData;

use super::{Cluster, ClusterShape, Consumer, Filled, Pipeline, StageCount};
use crate::mbarrier::{Mbarrier, fence_mbarrier_init};
use crate::{Shared, SharedStorage, fence_async_shared, lane_idx, sync_warp};

/// The barriers of the stages that transform warps hand over: one for each of the `S` stages of a [`Pipeline`].
#[derive(Clone, Copy, Debug)]
pub struct TransformBarriers<S> {
    first: Shared<u64>,
    stages: PhantomData<S>,
}

impl<S: StageCount> SharedStorage for TransformBarriers<S> {
    const BYTES: u32 = (S::STAGES * size_of::<u64>()) as u32;
    const ALIGN: u32 = 8;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            first: Shared::from_address(address),
            stages: PhantomData,
        }
    }
}

impl<S: StageCount> TransformBarriers<S> {
    /// Initialises the barriers. `warps` transform warps hand over each stage.
    ///
    /// One thread of the block calls it, as [`Pipeline::init`].
    ///
    /// # Safety
    /// The barriers' memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self, warps: u32) {
        for stage in 0..S::STAGES as u32 {
            // SAFETY: as promised by the caller.
            unsafe { self.barrier(stage).init(warps) };
        }
        fence_mbarrier_init();
    }

    #[inline(always)]
    fn barrier(self, stage: u32) -> Mbarrier {
        Mbarrier::from_shared(self.first.offset(i64::from(stage)))
    }
}

impl<S: StageCount, C: ClusterShape> Pipeline<S, C> {
    /// A consumer of the stages that transform warps hand over, at the first stage. Every consuming thread has its own.
    #[inline(always)]
    pub fn consumer_after(self, transformed: TransformBarriers<S>) -> Consumer<S, C> {
        self.with_full(transformed.first).consumer()
    }

    /// A transformer, at the first stage. Every thread of the transform warps has its own.
    #[inline(always)]
    pub fn transformer(self, transformed: TransformBarriers<S>) -> Transformer<S, C> {
        Transformer {
            full: self.consumer(),
            transformed,
        }
    }
}

/// Takes the full stages in order, for a thread of a transform warp.
///
/// ```
/// use cutlet_device::collective::{Pipeline, Stages, TileRing, TransformBarriers};
/// use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
/// use cutlet_device::tma::{LoadOptions, TensorMap};
/// use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
/// use cutlet_device::{elect_one, kernel, lane_idx, sync_threads, warp_idx_sync};
/// use cutlet_layout_core::{L, Tv};
///
/// type Layout = OperandLayout<f32, KMajor, 8, 32, 128>;
/// type Ring = TileRing<f32, Layout, SwizzleSpan<f32, 128>, Stages<2>>;
/// /// A lane's numbers of a tile: two vectors of four.
/// type Lanes = Tv<L!((8, 4):(4@1, 1@0)), L!((4, 2):(1@1, 4@0)), 4>;
///
/// /// TMA loads tiles of 8×32 numbers, a warp negates them, and a warpgroup gets them.
/// ///
/// /// # Safety
/// /// The map has the box of a tile, and at least `k_tiles` of them in a row.
/// #[kernel(threads = 256, arch = "sm_90a")]
/// unsafe fn negated(
///     #[grid_constant] map: &TensorMap,
///     k_tiles: u32,
///     #[shared] (ring, pipeline, transformed): (Ring, Pipeline<Stages<2>>, TransformBarriers<Stages<2>>),
/// ) {
///     let (warp, warpgroup) = (warp_idx_sync(), warpgroup_idx());
///     if warp.is_first() && elect_one() {
///         // SAFETY: no thread uses the barriers yet.
///         unsafe {
///             pipeline.init(1, 1);
///             transformed.init(1);
///         }
///     }
///     sync_threads();
///     if warp.is_first() && elect_one() {
///         let mut producer = pipeline.producer();
///         for k_tile in 0..k_tiles {
///             let filling = producer.acquire(1024);
///             let at = [0, 32 * k_tile as i32];
///             let tile = ring.stage(filling.stage());
///             // SAFETY: the map has the tile, and the stage is empty.
///             unsafe { tile.load(map, at, filling.barrier(), LoadOptions::DEFAULT) };
///         }
///     } else if warp.is(1) {
///         let mut stages = pipeline.transformer(transformed);
///         for _ in 0..k_tiles {
///             let filled = stages.wait();
///             // SAFETY: the stage is full, and no other warp accesses it before the hand-over.
///             let tile = unsafe { ring.stage(filled.stage()).tensor() };
///             tile.partition::<Lanes>(lane_idx()).update(|_, number| -number);
///             stages.hand_over(filled);
///         }
///     } else if warpgroup.is(1) {
///         let mut stages = pipeline.consumer_after(transformed);
///         for _ in 0..k_tiles {
///             let filled = stages.wait();
///             // … multiply …
///             stages.release(filled, warpgroup_thread_idx());
///         }
///     }
/// }
/// assert_eq!(negated.bounds().threads(), 256);
/// ```
#[derive(Debug)]
pub struct Transformer<S, C = Cluster<1, 1>> {
    full: Consumer<S, C>,
    transformed: TransformBarriers<S>,
}

impl<S: StageCount, C: ClusterShape> Transformer<S, C> {
    /// Waits until the next stage is full. All lanes of the warp call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&mut self) -> Filled {
        self.full.wait()
    }

    /// Hands a stage over to the consumers, with what the warp has written. They release the stage. All lanes of the
    /// warp call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn hand_over(&self, filled: Filled) {
        fence_async_shared();
        sync_warp();
        let barrier = self.transformed.barrier(filled.stage().get());
        barrier.arrive_if(lane_idx().is_first());
    }
}
