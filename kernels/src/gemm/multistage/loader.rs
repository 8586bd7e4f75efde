//! The loader: each thread copies its part of k-tiles, asynchronously or through registers.

use core::marker::PhantomData;

use cutlet_device::{Global, Shared, ThreadIdx};
use cutlet_layout_core::{Coord, Fixed, Layout, StaticLayout, Tensor, ThreadValue};

use super::config::{StageTile, stage_elements};
use super::staging::{Accesses, Staging};

/// Copies k-tiles of an operand.
pub(super) struct OperandLoader<S: Staging> {
    matrix: Tensor<Global<S::Element>, S::Matrix>,
    /// The tile's index along mn.
    tile: u32,
    ring: Shared<S::Element>,
    thread: ThreadIdx,
}

impl<S: Staging> OperandLoader<S> {
    /// A loader of the operand's tile `tile` along mn, into the stages of `ring`.
    ///
    /// # Safety
    /// The operand must have these extents (mn, k) and strides, and be aligned for the copies. Shared memory must have
    /// room for the stages.
    #[inline(always)]
    pub unsafe fn new(
        operand: Global<S::Element>,
        extent: Coord,
        strides: [i64; 2],
        tile: u32,
        ring: Shared<S::Element>,
        thread: ThreadIdx,
    ) -> Self {
        Self {
            // SAFETY: as promised by the caller.
            matrix: unsafe { Tensor::new(operand, S::matrix(extent, strides)) },
            tile,
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

    /// The thread's accesses to a k-tile.
    #[inline(always)]
    fn accesses(&self, k_tile: u32) -> Accesses<S> {
        self.matrix
            .local_tile::<KTile<S>>((self.tile, k_tile))
            .partition::<S::Copy>(self.thread)
    }

    /// Whether the thread copies anything.
    #[inline(always)]
    fn takes_part(&self) -> bool {
        self.thread
            .is_below(const { <S::Copy as ThreadValue>::Thr::SIZE as u32 })
    }

    /// Reads the thread's part of a k-tile into registers, if it goes through them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn fetch(&self, k_tile: u32) -> S::Held {
        if const { size_of::<S::Held>() == 0 } || !self.takes_part() {
            return S::nothing();
        }
        // SAFETY: the creator promised the operand.
        unsafe { S::fetch(&self.accesses(k_tile)) }
    }

    /// Writes what the thread holds of a k-tile to a stage, or starts to copy it there.
    ///
    /// # Safety
    /// No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn put(&self, held: S::Held, k_tile: u32, stage: u32) {
        if self.takes_part() {
            // SAFETY: the creator promised the operand, and the caller that the stage is not in use.
            unsafe {
                S::put(
                    held,
                    || self.accesses(k_tile),
                    self.stage(stage),
                    self.thread,
                )
            };
        }
    }
}

/// The coordinates of a k-tile: (mn, k).
#[derive(Clone, Copy)]
struct KTile<S>(PhantomData<S>);

impl<S: Staging> StaticLayout for KTile<S> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(S::Layout::LAYOUT.mode(0).size(), 1, 0),
        Layout::static_basis_mode(S::Layout::LAYOUT.mode(1).size(), 1, 1),
    ]);
    type Storage<T: Copy> = [T; 256];
}
