//! The pipeline: a ring of shared-memory stages that producers fill and consumers empty.
//!
//! Each stage has two mbarriers. Consumers wait on *full* for the bytes of a copy, and producers wait on *empty* for
//! the release of the stage. [`Producer`] and [`Consumer`] keep count of the stage and its phase, and hand out a stage
//! only after the wait. So a kernel cannot get a phase wrong.

use core::marker::PhantomData;

use super::{Cluster, ClusterShape};
use crate::mbarrier::{Mbarrier, fence_mbarrier_init};
use crate::warpgroup::WarpgroupThread;
use crate::{Shared, SharedMemory, SharedStorage, uniform};

/// The number of stages of a ring, as a type.
#[derive(Clone, Copy, Debug)]
pub struct Stages<const STAGES: usize>;

/// A number of stages: a [`Stages`].
pub trait StageCount: Copy + 'static {
    /// The number.
    const STAGES: usize;
}

impl<const STAGES: usize> StageCount for Stages<STAGES> {
    const STAGES: usize = {
        assert!(STAGES > 0, "a pipeline has at least one stage");
        STAGES
    };
}

/// The barriers of a ring of `S` stages, which the blocks of a cluster of shape `C` fill together.
///
/// If the cluster has several tiles, other blocks fill this block's stages too, by multicast loads. These are all
/// blocks of the cluster, or those of the block's row and column. A consumer releases a stage to all blocks of the
/// cluster.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<S, C = Cluster<1, 1>> {
    full: Shared<u64>,
    empty: Shared<u64>,
    cluster: C,
    stages: PhantomData<S>,
}

impl<S: StageCount, C: ClusterShape> Pipeline<S, C> {
    /// Bytes of the barriers of one kind.
    const WORDS: u32 = (S::STAGES * size_of::<u64>()) as u32;
    /// Bytes from the first full barrier to the first empty one.
    const TO_EMPTY: u32 = Self::WORDS.next_multiple_of(16);
}

impl<S: StageCount, C: ClusterShape> SharedStorage for Pipeline<S, C> {
    const BYTES: u32 = {
        assert!(
            match C::STATIC {
                Some([rows, columns]) => rows * columns > 0 && rows * columns <= 16,
                None => true,
            },
            "the cluster of a pipeline has 1 to 16 tiles"
        );
        Self::TO_EMPTY + Self::WORDS
    };
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            full: Shared::from_address(address),
            empty: Shared::from_address(address + Self::TO_EMPTY),
            cluster: C::default(),
            stages: PhantomData,
        }
    }
}

impl<S: StageCount, C: ClusterShape> Pipeline<S, C> {
    /// Takes the barriers' memory, which must have the same address for every thread of every block of the cluster.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// The pipeline of a launch in clusters of this shape. A [`DynamicCluster`](super::DynamicCluster) must be told, and
    /// has one block otherwise.
    #[inline(always)]
    pub fn in_cluster(self, cluster: C) -> Self {
        Self { cluster, ..self }
    }

    /// Initialises the barriers. `producers` threads of a block arrive for each stage: usually one thread, which
    /// announces bytes, or [`CopyProducer::ARRIVALS`](super::CopyProducer::ARRIVALS). `consumers` warpgroups of each
    /// block release each stage.
    ///
    /// One thread of the block calls it. Then all threads of the block meet at a barrier, or all threads of the cluster
    /// if it has more than one block, before any thread uses the pipeline.
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
                self.empty(stage).init(consumers * self.cluster.tiles());
            }
            stage += 1;
        }
        fence_mbarrier_init();
    }

    /// A producer, at the first stage. Every producing thread has its own.
    #[inline(always)]
    pub fn producer(self) -> Producer<S, C> {
        Producer {
            pipeline: self,
            // A new ring is empty: the phase before the first one counts as ended.
            at: Cursor::first(1),
        }
    }

    /// A consumer, at the first stage. Every consuming thread has its own.
    #[inline(always)]
    pub fn consumer(self) -> Consumer<S, C> {
        Consumer {
            pipeline: self,
            at: Cursor::first(0),
        }
    }

    /// The pipeline with other full barriers.
    #[inline(always)]
    pub(super) fn with_full(self, full: Shared<u64>) -> Self {
        Self { full, ..self }
    }

    #[inline(always)]
    pub(super) fn full(self, stage: u32) -> Mbarrier {
        Mbarrier::from_shared(self.full.offset(stage as i64))
    }

    #[inline(always)]
    pub(super) fn empty(self, stage: u32) -> Mbarrier {
        Mbarrier::from_shared(self.empty.offset(stage as i64))
    }
}

/// A stage, and the parity of the phase to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<S> {
    pub(super) stage: u32,
    pub(super) parity: u32,
    stages: PhantomData<S>,
}

impl<S: StageCount> Cursor<S> {
    /// The first stage.
    #[inline(always)]
    pub(super) const fn first(parity: u32) -> Self {
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
    pub(super) fn advance(&mut self) {
        self.stage += 1;
        if self.stage == S::STAGES as u32 {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The index of a stage, which selects a tile of a [`TileRing`](super::TileRing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageIdx(u32);

impl StageIdx {
    #[inline(always)]
    pub(super) const fn new(stage: u32) -> Self {
        Self(stage)
    }

    /// The index as a number, for code below tiles.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Fills the stages in order.
#[derive(Debug)]
pub struct Producer<S, C = Cluster<1, 1>> {
    pipeline: Pipeline<S, C>,
    at: Cursor<S>,
}

impl<S: StageCount, C: ClusterShape> Producer<S, C> {
    /// Waits until the next stage is empty, and announces that `bytes` bytes will be copied to it in this block.
    ///
    /// `bytes` includes the bytes that other blocks multicast to the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire(&mut self, bytes: u32) -> Filling {
        let Cursor { stage, parity, .. } = self.at;
        self.pipeline.empty(stage).wait(parity);
        self.announce(stage, bytes)
    }

    /// As [`acquire`](Self::acquire), but in pairs: the first call of a pair waits until both stages are empty, and the
    /// second call does not wait. So the loads of two stages are issued together, and neighbouring memory arrives
    /// faster.
    ///
    /// If the number of stages is odd, it is `acquire`. A producer fills either all stages in pairs or none. A consumer
    /// may hold at most `STAGES − 2` stages while it waits.
    ///
    /// `compute-sanitizer --tool synccheck` reports a missing wait for the first stage of a pair: it does not know that
    /// the second one is released later.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire_in_pairs(&mut self, bytes: u32) -> Filling {
        let Cursor { stage, parity, .. } = self.at;
        if !S::STAGES.is_multiple_of(2) {
            self.pipeline.empty(stage).wait(parity);
        } else if stage.is_multiple_of(2) {
            // Consumers release stages in order, so the first stage of the pair is empty too.
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
        Filling::new(stage, full)
    }

    /// Waits until consumers have released every stage that this producer has filled.
    ///
    /// A block of a cluster calls it before it ends, because other blocks signal its barriers.
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
#[must_use = "consumers wait for the bytes that were announced for this stage"]
pub struct Filling {
    stage: StageIdx,
    full: Mbarrier,
}

impl Filling {
    /// The filling of a stage whose full barrier is `full`.
    #[inline(always)]
    pub(super) const fn new(stage: u32, full: Mbarrier) -> Self {
        Self {
            stage: StageIdx(stage),
            full,
        }
    }

    /// The index of the stage.
    #[inline(always)]
    pub const fn stage(&self) -> StageIdx {
        self.stage
    }

    /// The barrier on which loads to this stage complete.
    #[inline(always)]
    pub const fn barrier(&self) -> Mbarrier {
        self.full
    }
}

/// Empties the stages in order.
#[derive(Debug)]
pub struct Consumer<S, C = Cluster<1, 1>> {
    pipeline: Pipeline<S, C>,
    at: Cursor<S>,
}

impl<S: StageCount, C: ClusterShape> Consumer<S, C> {
    /// Waits until the next stage is full. All lanes of the warp call it. The compiler knows the stage to be uniform.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&mut self) -> Filled {
        let Cursor { stage, parity, .. } = self.at;
        let uniform_stage = uniform(stage);
        self.pipeline.full(stage).wait(parity);
        self.at.advance();
        Filled {
            stage: StageIdx(uniform_stage),
        }
    }

    /// Skips `stages` stages, which another warpgroup empties.
    #[inline(always)]
    pub fn skip(&mut self, stages: u32) {
        self.at.skip(stages);
    }

    /// Releases a stage to the producers after the warpgroup of `thread` has read it. A wait for `wgmma` that read it
    /// is enough. Threads that read it by loads of their own must first meet at a barrier.
    ///
    /// All threads of the warpgroup call it together. The first threads send the release, one to each block of the
    /// cluster.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn release(&self, filled: Filled, thread: WarpgroupThread) {
        let empty = self.pipeline.empty(filled.stage.0);
        if C::MAY_HAVE_TILES {
            let blocks = self.pipeline.cluster.tiles();
            empty.arrive_remote_if(thread.get(), thread.get() < blocks);
        } else {
            empty.arrive_if(thread.get() == 0);
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
    /// The index of the stage.
    #[inline(always)]
    pub const fn stage(&self) -> StageIdx {
        self.stage
    }
}
