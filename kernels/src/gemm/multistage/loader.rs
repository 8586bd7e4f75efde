//! The loader: each thread copies its part of k-tiles, asynchronously or through registers.
//!
//! The k-tile at the end of k, of which only a part may be in the matrix, comes first. All others are whole along k, so
//! that a copy is of all or nothing, and whether it is does not change from one k-tile to the next.

use cutlet_device::{Shared, ThreadGroup, ThreadIdx};
use cutlet_layout_core::{Bound, Fixed, MatrixInner, StaticLayout, Tensor, TileShape};

use super::staging::{
    Accesses, CopyThreads, GlobalMajor, Matrix, Operand, StageTile, Staging, Start,
};
use super::storage::stage_elements;

/// Copies k-tiles of an operand, by a thread of the group `G`.
pub(super) struct OperandLoader<S: Staging, G> {
    matrix: Tensor<Operand<S>, Matrix<S>>,
    /// What the thread keeps of its accesses.
    start: Start<S>,
    /// The tile's index along mn.
    tile: u32,
    /// The k-tiles of the matrix.
    k_tiles: u32,
    ring: Shared<S::Element>,
    thread: ThreadIdx<G>,
}

impl<S: Staging, G: ThreadGroup> OperandLoader<S, G> {
    /// A loader of the operand's tile `tile` along mn, into the stages of `ring`.
    ///
    /// # Safety
    /// The operand must lie like this matrix of (mn, k), and be aligned for the copies. Shared memory must have room
    /// for the stages.
    #[inline(always)]
    pub unsafe fn new(
        operand: Operand<S>,
        matrix: Matrix<S>,
        tile: u32,
        ring: Shared<S::Element>,
        thread: ThreadIdx<G>,
    ) -> Self {
        let [_, k] = matrix.extent();
        // SAFETY: as promised by the caller.
        let matrix = unsafe { Tensor::new(operand, matrix) };
        Self {
            matrix,
            start: S::Source::start::<_, KTile<S>, S::Copy>(&matrix, tile, thread),
            tile,
            // A matrix without k has a k-tile of zeros.
            k_tiles: (k as u32)
                .max(1)
                .div_ceil(const { S::Layout::LAYOUT.mode(1).size() as u32 }),
            ring,
            thread,
        }
    }

    /// The tile of a stage.
    #[inline(always)]
    pub fn stage(&self, stage: u32) -> StageTile<S> {
        let first = i64::from(stage) * const { stage_elements::<S>() as i64 };
        // SAFETY: the ring has this stage, and barriers order its writes and reads.
        unsafe { Tensor::new(self.ring.offset(first), Fixed::new()) }
    }

    /// The thread's accesses to the k-tile that comes first: the last one along k.
    #[inline(always)]
    fn first_accesses(&self, thread: ThreadIdx<CopyThreads<S>>) -> Accesses<S> {
        self.accesses_at(self.k_tiles - 1, thread)
    }

    /// The thread's accesses to the `nth` k-tile, but not the first one.
    #[inline(always)]
    fn accesses(&self, nth: u32, thread: ThreadIdx<CopyThreads<S>>) -> Accesses<S> {
        self.accesses_at(nth - 1, thread)
    }

    /// The thread's accesses to the k-tile that is number `along_k` along k.
    #[inline(always)]
    fn accesses_at(&self, along_k: u32, thread: ThreadIdx<CopyThreads<S>>) -> Accesses<S> {
        let tile = (self.tile, along_k);
        S::Source::accesses::<_, KTile<S>, _>(&self.start, &self.matrix, tile, thread)
    }

    /// The thread's accesses to the k-tile at k = 0.
    #[inline(always)]
    pub fn start(&self) -> &Start<S> {
        &self.start
    }

    /// The thread among those that copy something, if it is one.
    #[inline(always)]
    fn copying(&self) -> Option<ThreadIdx<CopyThreads<S>>> {
        self.thread.among_first()
    }

    /// Reads the thread's part of the first k-tile into registers, if it goes through them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn fetch_first(&self) -> S::Held {
        if const { size_of::<S::Held>() == 0 } {
            return S::nothing();
        }
        let Some(thread) = self.copying() else {
            return S::nothing();
        };
        let from = self.first_accesses(thread);
        // SAFETY: the creator promised the operand.
        unsafe { S::fetch(&from, |v| from.bound().holds(v)) }
    }

    /// Writes what the thread holds of the first k-tile to a stage, or starts to copy it there.
    ///
    /// # Safety
    /// No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn put_first(&self, held: S::Held, stage: u32) {
        if let Some(thread) = self.copying() {
            let from = self.first_accesses(thread);
            // SAFETY: the creator promised the operand, and the caller that the stage is not in use.
            unsafe { S::put_part(held, &from, self.stage(stage), thread) };
        }
    }

    /// Reads the thread's part of the `nth` k-tile, but not the first one, into registers, if it goes through them.
    /// Unless it `exists`, its elements are zeros.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn fetch(&self, nth: u32, exists: bool) -> S::Held {
        if const { size_of::<S::Held>() == 0 } {
            return S::nothing();
        }
        let Some(thread) = self.copying() else {
            return S::nothing();
        };
        let from = self.accesses(nth, thread);
        // SAFETY: the creator promised the operand.
        unsafe { S::fetch(&from, |v| exists && from.bound().holds_along(v, MN)) }
    }

    /// Writes what the thread holds of the `nth` k-tile, but not the first one, to a stage, or starts to copy it there.
    /// Unless it `exists`, its elements are zeros.
    ///
    /// # Safety
    /// No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn put(&self, held: S::Held, nth: u32, exists: bool, stage: u32) {
        if let Some(thread) = self.copying() {
            let from = self.accesses(nth, thread);
            let holds = |v| exists && from.bound().holds_along(v, MN);
            // SAFETY: the creator promised the operand, and the caller that the stage is not in use.
            unsafe { S::put(held, &from, holds, self.stage(stage), thread) };
        }
    }
}

/// The direction of rows, or columns, in a k-tile.
const MN: usize = 0;

/// The coordinates of a k-tile: (mn, k).
type KTile<S> = <<S as Staging>::Layout as TileShape>::Extents;
