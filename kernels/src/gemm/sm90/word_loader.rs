//! The loader of an A and a B whose rows begin where TMA cannot read them: the threads of the producer warpgroup copy words
//! of both.

use cutlet_device::SharedStorage;
use cutlet_device::collective::{
    Filling, LastWords, OnArrival, StageIdx, UnalignedMatrix, WordCopy,
};
use cutlet_device::sm90::{WarpgroupThread, grid_dependency_wait};
use cutlet_layout_core::tile_origin;

use super::config::{Config, RingA, RingB, Storage};
use crate::gemm::loader::Loader;
use crate::gemm::scheduler::GroupOrigin;

/// What a block keeps in shared memory if its producer copies words.
#[derive(Clone, Copy, SharedStorage)]
pub struct UnalignedStorage<C: Config> {
    pub(super) block: Storage<C>,
    pub(super) last_words: LastWordsOf<C>,
}

/// The words beside the stages' tiles of A and of B.
pub(super) type LastWordsOf<C> = (
    LastWords<<C as Config>::LayoutA, <C as Config>::Stages>,
    LastWords<<C as Config>::LayoutB, <C as Config>::Stages>,
);

/// Loads k-tiles of A and B by the copies of a warpgroup's threads.
#[derive(Clone, Copy)]
pub(super) struct WordLoader<C: Config> {
    rings: (RingA<C>, RingB<C>),
    of_a: WordCopy<C::Element, C::LayoutA, C::Stages>,
    of_b: WordCopy<C::Element, C::LayoutB, C::Stages>,
}

impl<C: Config> WordLoader<C> {
    /// The running thread's loader of A and B into these stages.
    ///
    /// # Safety
    /// A and B must exist, and have a row and a column each. Nothing may write them once the kernels before have ended.
    #[inline(always)]
    pub unsafe fn new(
        rings: (RingA<C>, RingB<C>),
        [a, b]: [UnalignedMatrix<C::Element>; 2],
        (of_a, of_b): LastWordsOf<C>,
        thread: WarpgroupThread,
    ) -> Self {
        // SAFETY: as promised by the caller.
        unsafe {
            Self {
                rings,
                of_a: WordCopy::new(a, of_a, thread),
                of_b: WordCopy::new(b, of_b, thread),
            }
        }
    }
}

impl<C: Config> Loader for WordLoader<C> {
    type OfTile = ();

    #[inline(always)]
    fn bytes(&self) -> u32 {
        0
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn tile(&self, _: (u32, u32), _: Option<GroupOrigin>) {
        // The kernel before this one may write A and B.
        grid_dependency_wait();
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(
        &mut self,
        filling: Filling,
        (): &(),
        (row, column): (u32, u32),
        k_tile: u32,
        _: Option<GroupOrigin>,
    ) {
        let stage = filling.stage();
        let (tile_a, tile_b) = (self.rings.0.stage(stage), self.rings.1.stage(stage));
        // SAFETY: the caller promises that the stage is empty.
        unsafe {
            self.of_a
                .start(tile_a, stage, tile_origin::<C::UnitA>((row, k_tile)));
            self.of_b
                .start(tile_b, stage, tile_origin::<C::UnitB>((column, k_tile)));
        }
    }
}

impl<C: Config> OnArrival for WordLoader<C> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn finish(&self, stage: StageIdx) {
        // SAFETY: the warp waited for its copies to the stage, which is handed over afterwards.
        unsafe {
            self.of_a.finish(self.rings.0.stage(stage), stage);
            self.of_b.finish(self.rings.1.stage(stage), stage);
        }
    }
}
