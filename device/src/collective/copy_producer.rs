//! A producer of many threads: a warpgroup fills the stages of a pipeline by `cp.async`, while one of its threads adds
//! loads of TMA.
//!
//! `cp.async` writes in the generic proxy, and `wgmma` reads in the async proxy. A thread waits for its copies, orders
//! the proxies by a fence, and then its warp arrives at the stage's full barrier. So the consumers' loop is the one for
//! TMA loads: the fence, which is a memory barrier, would cost them a third of their speed. The thread waits some
//! stages later than it copies, so that copies to several stages are in flight.

use super::pipeline::Cursor;
use super::{Cluster, ClusterShape, Filling, Pipeline, StageCount};
use crate::cp_async::{cp_async_commit, cp_async_wait};
use crate::warpgroup::{WARPGROUP_WARPS, WarpgroupThread};
use crate::{fence_async_shared, lane_idx, sync_warp};

/// Fills the stages in order, together with the other threads of its warpgroup. All threads call each method.
#[derive(Debug)]
pub struct CopyProducer<S, C = Cluster<1, 1>> {
    pipeline: Pipeline<S, C>,
    thread: WarpgroupThread,
    /// The next stage to fill.
    at: Cursor<S>,
    /// The next stage to hand over, and how many are filled and not handed over.
    handing_over: Cursor<S>,
    filled: u32,
}

impl<S: StageCount, C: ClusterShape> CopyProducer<S, C> {
    /// Arrivals at a stage's full barrier: the thread that announces bytes, and each warp.
    pub const ARRIVALS: u32 = 1 + WARPGROUP_WARPS;

    /// Stages whose copies may be in flight when another stage is handed over. Consumers then have a stage that they
    /// multiply, and the next one, before they release the stage that is awaited here.
    const IN_FLIGHT: u32 = {
        assert!(
            S::STAGES >= 3 && S::STAGES <= 8,
            "a ring that threads copy to has 3 to 8 stages: two for the consumers, and one that is filled"
        );
        (S::STAGES / 2 - 1) as u32
    };

    /// The producer at the first stage, for the running thread.
    #[inline(always)]
    pub fn new(pipeline: Pipeline<S, C>, thread: WarpgroupThread) -> Self {
        Self {
            pipeline,
            thread,
            // A new ring is empty: the phase before the first one counts as ended.
            at: Cursor::first(1),
            handing_over: Cursor::first(1),
            filled: 0,
        }
    }

    /// Whether the running thread announces the bytes of TMA's loads, and starts them.
    #[inline(always)]
    pub fn loads_by_tma(thread: WarpgroupThread) -> bool {
        thread.is_first()
    }

    /// Waits until the next stage is empty, and hands over the oldest filled stage if its copies had time to arrive.
    /// One thread announces that TMA will load `bytes` bytes. All threads then start their copies, and call
    /// [`commit`](Self::commit).
    ///
    /// The fence of a hand-over may wait for copies in flight. Here they are older than one stage's multiplication.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire(&mut self, bytes: u32) -> Filling {
        let Cursor { stage, parity, .. } = self.at;
        self.pipeline.empty(stage).wait(parity);
        let full = self.pipeline.full(stage);
        if Self::loads_by_tma(self.thread) {
            full.arrive_expect_tx(bytes);
        }
        self.at.advance();
        if self.filled > Self::IN_FLIGHT {
            match Self::IN_FLIGHT {
                0 => cp_async_wait::<0>(),
                1 => cp_async_wait::<1>(),
                2 => cp_async_wait::<2>(),
                _ => cp_async_wait::<3>(),
            }
            self.hand_over();
        }
        Filling::new(stage, full)
    }

    /// Closes the group of the copies to the stage that was acquired last.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn commit(&mut self) {
        cp_async_commit();
        self.filled += 1;
    }

    /// Hands the oldest filled stage over to the consumers. The thread has waited for its copies.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn hand_over(&mut self) {
        fence_async_shared();
        sync_warp();
        let full = self.pipeline.full(self.handing_over.stage);
        full.arrive_if(lane_idx().is_first());
        self.handing_over.advance();
        self.filled -= 1;
    }

    /// Hands over all stages, and waits until consumers have released them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(mut self) {
        cp_async_wait::<0>();
        while self.filled > 0 {
            self.hand_over();
        }
        for _ in 0..S::STAGES {
            self.pipeline.empty(self.at.stage).wait(self.at.parity);
            self.at.advance();
        }
    }
}
