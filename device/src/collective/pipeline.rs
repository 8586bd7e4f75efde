//! The pipeline: a ring of shared-memory stages that producers fill and consumers empty.
//!
//! Each stage has two barriers: *full*, on which consumers wait for the bytes of a copy, and
//! *empty*, on which producers wait for the stage's release. [`Producer`] and [`Consumer`] each
//! know the stage they are at and its phase, and hand out a stage only in exchange for the wait:
//! there is no phase to get wrong.

use core::marker::PhantomData;

use super::{Cluster, ClusterShape};
use crate::sm90::{Mbarrier, WarpgroupThread, fence_mbarrier_init};
use crate::{Shared, SharedMemory, uniform};

/// The number of stages of a ring, as a type.
#[derive(Clone, Copy, Debug)]
pub struct Stages<const STAGES: usize>;

/// A number of stages: [`Stages`].
pub trait StageCount: Copy + 'static {
    /// How many.
    const STAGES: usize;
}

impl<const STAGES: usize> StageCount for Stages<STAGES> {
    const STAGES: usize = {
        assert!(STAGES > 0, "a pipeline has at least one stage");
        STAGES
    };
}

/// The barriers of a ring of stages `S`, which the blocks of a cluster of shape `C` fill together.
///
/// Where a cluster has several tiles, its other blocks fill a stage, too, by multicast loads: all of them, or those of the
/// block's row and column. A consumer's release goes to every one of them.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<S, C = Cluster<1, 1>> {
    full: Shared<u64>,
    empty: Shared<u64>,
    shape: PhantomData<(S, C)>,
}

impl<S: StageCount, C: ClusterShape> Pipeline<S, C> {
    /// Takes the barriers' memory; the same for every thread.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        const {
            assert!(
                C::TILES > 0 && C::TILES <= 16,
                "a pipeline is shared by a cluster of 1 to 16 blocks"
            );
        }
        Self {
            full: shared.take(S::STAGES),
            empty: shared.take(S::STAGES),
            shape: PhantomData,
        }
    }

    /// Prepares the barriers for `producers` arrivals that fill a stage (those that announce bytes:
    /// usually one thread) and `consumers` groups of threads in each block, each of which
    /// releases it by one call.
    ///
    /// One thread of the block calls it; then all threads meet at a barrier of the block, or of the
    /// cluster if it is more than one block, before any uses the pipeline.
    ///
    /// # Safety
    /// The barriers' memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self, producers: u32, consumers: u32) {
        let mut stage = 0;
        while stage < S::STAGES as u32 {
            // SAFETY: as promised by the caller.
            unsafe {
                self.full(stage).init(producers);
                self.empty(stage).init(consumers * C::TILES as u32);
            }
            stage += 1;
        }
        fence_mbarrier_init();
    }

    /// The producers' side, at the first stage. Every producing thread has one of its own.
    #[inline(always)]
    pub fn producer(self) -> Producer<S, C> {
        Producer {
            pipeline: self,
            // A new ring is empty: the phase before the first counts as ended.
            at: Cursor::first(1),
        }
    }

    /// The consumers' side, at the first stage. Every consuming thread has one of its own.
    #[inline(always)]
    pub fn consumer(self) -> Consumer<S, C> {
        Consumer {
            pipeline: self,
            at: Cursor::first(0),
        }
    }

    #[inline(always)]
    fn full(self, stage: u32) -> Mbarrier {
        Mbarrier::from_shared(self.full.offset(stage as i64))
    }

    #[inline(always)]
    fn empty(self, stage: u32) -> Mbarrier {
        Mbarrier::from_shared(self.empty.offset(stage as i64))
    }
}

/// A stage and the parity of its barriers' phase that is waited for next.
#[derive(Clone, Copy, Debug)]
struct Cursor<S> {
    stage: u32,
    parity: u32,
    stages: PhantomData<S>,
}

impl<S: StageCount> Cursor<S> {
    /// The first stage.
    #[inline(always)]
    const fn first(parity: u32) -> Self {
        Self {
            stage: 0,
            parity,
            stages: PhantomData,
        }
    }

    #[inline(always)]
    fn skip(&mut self, stages: u32) {
        let all = self.stage + stages;
        self.parity ^= (all / S::STAGES as u32) & 1;
        self.stage = all % S::STAGES as u32;
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.stage += 1;
        if self.stage == S::STAGES as u32 {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The number of a stage; tiles of a ring take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageIdx(u32);

impl StageIdx {
    /// The number, for code that is below tiles.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Fills stages, in order.
#[derive(Debug)]
pub struct Producer<S, C = Cluster<1, 1>> {
    pipeline: Pipeline<S, C>,
    at: Cursor<S>,
}

impl<S: StageCount, C: ClusterShape> Producer<S, C> {
    /// Waits until the next stage is empty and announces that `bytes` bytes will be copied to it in
    /// this block.
    ///
    /// The bytes of all loads that complete on the stage's barrier count, those that other blocks
    /// multicast too.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire(&mut self, bytes: u32) -> Filling {
        let Cursor { stage, parity, .. } = self.at;
        self.pipeline.empty(stage).wait(parity);
        self.announce(stage, bytes)
    }

    /// As [`acquire`](Self::acquire), but every other time it waits until two stages are empty, and then not at
    /// all: loads of two go out together. What is next to each other in memory arrives faster then.
    ///
    /// It takes a ring of an even number of stages; with another one it is `acquire`. A producer that fills
    /// one stage so fills all so, and a consumer may not keep more stages than all but two while it waits.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire_in_pairs(&mut self, bytes: u32) -> Filling {
        let Cursor { stage, parity, .. } = self.at;
        if !S::STAGES.is_multiple_of(2) {
            self.pipeline.empty(stage).wait(parity);
        } else if stage.is_multiple_of(2) {
            // Consumers release stages in order.
            self.pipeline.empty(stage + 1).wait(parity);
        }
        self.announce(stage, bytes)
    }

    /// Announces the bytes for the next stage, `stage`, which is empty.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn announce(&mut self, stage: u32, bytes: u32) -> Filling {
        let full = self.pipeline.full(stage);
        full.arrive_expect_tx(bytes);
        self.at.advance();
        Filling {
            stage: StageIdx(stage),
            full,
        }
    }

    /// Waits until consumers have released every stage that this producer has filled.
    ///
    /// A block of a cluster calls it before it ends: until then other blocks may still signal its
    /// barriers.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(mut self) {
        let mut n = 0;
        while n < S::STAGES {
            self.pipeline.empty(self.at.stage).wait(self.at.parity);
            self.at.advance();
            n += 1;
        }
    }
}

/// A stage that is being filled.
#[derive(Clone, Copy, Debug)]
#[must_use = "bytes were announced for this stage: load them, or consumers wait for ever"]
pub struct Filling {
    stage: StageIdx,
    full: Mbarrier,
}

impl Filling {
    /// Which stage.
    #[inline(always)]
    pub const fn stage(&self) -> StageIdx {
        self.stage
    }

    /// The barrier that loads into this stage complete on.
    #[inline(always)]
    pub const fn barrier(&self) -> Mbarrier {
        self.full
    }
}

/// Empties stages, in order.
#[derive(Debug)]
pub struct Consumer<S, C = Cluster<1, 1>> {
    pipeline: Pipeline<S, C>,
    at: Cursor<S>,
}

impl<S: StageCount, C: ClusterShape> Consumer<S, C> {
    /// Waits until the next stage is full. All lanes of the warp call it: which stage it is, and what follows
    /// from that, the compiler knows to be the same for all of them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&mut self) -> Filled {
        let Cursor { stage, parity, .. } = self.at;
        let of_all_lanes = uniform(stage);
        self.pipeline.full(stage).wait(parity);
        self.at.advance();
        Filled {
            stage: StageIdx(of_all_lanes),
        }
    }

    /// Passes over `stages` stages, which another group of threads empties.
    #[inline(always)]
    pub fn skip(&mut self, stages: u32) {
        self.at.skip(stages);
    }

    /// Gives a stage back to the producers, once the group of threads that `thread` belongs to is
    /// done reading it.
    ///
    /// All threads of the group call it, a warpgroup as one; the first few of them send the
    /// release, one to each block of the cluster.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn release(&self, filled: Filled, thread: WarpgroupThread) {
        let empty = self.pipeline.empty(filled.stage.0);
        if C::TILES == 1 {
            empty.arrive_if(thread.get() == 0);
        } else {
            empty.arrive_remote_if(thread.get(), thread.get() < C::TILES as u32);
        }
    }
}

/// A stage that is full, until it is released.
#[derive(Debug)]
#[must_use = "a stage that is not released is never filled again"]
pub struct Filled {
    stage: StageIdx,
}

impl Filled {
    /// Which stage.
    #[inline(always)]
    pub const fn stage(&self) -> StageIdx {
        self.stage
    }
}
