//! The store's seam: how accumulators go through the epilogue and leave for C.

use cutlet_device::collective::WorkTile;
use cutlet_device::{DeviceData, uniform};

/// A store, for a consumer warpgroup of a block.
pub trait Store {
    /// The accumulators that a thread holds.
    type Accumulators;
    /// What is known of a work tile before it is multiplied.
    type Prepared;

    /// Finds the work tile's place in C, and starts to read what the epilogue needs: it arrives while the tile is
    /// multiplied.
    fn prepare(&self, work: WorkTile) -> Self::Prepared;

    /// Applies the epilogue and writes the result, or writes partial output.
    ///
    /// # Safety
    /// No other warpgroup may write these rows of the work tile, unless it writes the same values.
    unsafe fn store(
        &self,
        work: WorkTile,
        accumulators: Self::Accumulators,
        prepared: Self::Prepared,
    );

    /// Waits until the block's memory may be given up.
    fn drain(self);
}

/// How accumulators are written in f32 where C would be, if they are.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct PartialOutput(i64);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for PartialOutput {}

impl PartialOutput {
    /// They are not: C is written.
    pub const NONE: Self = Self(0);

    /// In rows that are `ld` elements apart, an even number, and start at a multiple of 8 bytes. They replace what is
    /// there, or are added to it if `adds` is true.
    pub const fn rows(ld: usize, adds: bool) -> Self {
        Self(2 * ld as i64 + adds as i64)
    }

    /// Whether accumulators are written.
    #[inline(always)]
    pub(super) fn is_some(self) -> bool {
        self.0 > 0
    }

    /// Elements from one row to the next.
    #[inline(always)]
    pub(super) fn ld(self) -> i64 {
        self.0 >> 1
    }

    /// Whether they are added to what is there.
    ///
    /// One lane answers for all: if lanes might differ, ptxas would have them yield to each other within the mainloop.
    #[inline(always)]
    pub(super) fn adds(self) -> bool {
        uniform(self.0 as u32 & 1) != 0
    }
}
