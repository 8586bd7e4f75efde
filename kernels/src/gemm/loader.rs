//! The loader's seam: how the k-tiles of A and B reach shared memory.

use cutlet_device::collective::{ClusterShape, CopyProducer, Filling, Producer, StageCount};

use super::scheduler::GroupOrigin;

/// A loader, for the producing thread of a block, or for all threads of the producing warpgroup.
pub trait Loader {
    /// What all k-tiles of a work tile share: `()` for nothing.
    type OfTile;

    /// Bytes that a k-tile's loads by TMA bring to this block.
    fn bytes(&self) -> u32;

    /// Finds what all k-tiles of a work tile share. The tile of C begins at `begin`, as
    /// [`TileScheduler::begin`](super::scheduler::TileScheduler::begin) counts, in this group if there are groups.
    fn tile(&self, begin: (u32, u32), group: Option<GroupOrigin>) -> Self::OfTile;

    /// Starts to load a k-tile of A and of B into a stage, for the work tile of `tile`. `k_tile` has its coordinates
    /// along the inner and the outer mode of k, as [`TileScheduler::along_k`](super::scheduler::TileScheduler::along_k)
    /// says. Without groups there is no outer mode.
    ///
    /// # Safety
    /// The stage must be empty.
    unsafe fn load(
        &mut self,
        filling: Filling,
        tile: &Self::OfTile,
        begin: (u32, u32),
        k_tile: (u32, i32),
        group: Option<GroupOrigin>,
    );
}

/// Who fills the stages of a pipeline, and knows when a stage is full: a [`Producer`], which is one thread whose loads
/// count at the stage's barrier, or a [`CopyProducer`], which is a warpgroup.
pub trait StageFiller {
    /// Waits until the next stage is empty, and announces the bytes of TMA's loads.
    fn acquire(&mut self, bytes: u32) -> Filling;

    /// Called after the loads to the acquired stage were started.
    fn commit(&mut self);

    /// Waits until consumers have released every stage.
    fn drain(self);
}

impl<S: StageCount, C: ClusterShape> StageFiller for Producer<S, C> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn acquire(&mut self, bytes: u32) -> Filling {
        // A short ring has no stage to spare for pairs.
        match S::STAGES < 8 {
            true => self.acquire(bytes),
            false => self.acquire_in_pairs(bytes),
        }
    }

    #[inline(always)]
    fn commit(&mut self) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn drain(self) {
        self.drain();
    }
}

impl<S: StageCount, C: ClusterShape> StageFiller for CopyProducer<S, C> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn acquire(&mut self, bytes: u32) -> Filling {
        self.acquire(bytes)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn commit(&mut self) {
        self.commit();
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn drain(self) {
        self.drain();
    }
}
