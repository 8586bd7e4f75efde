//! Sums that are left as they are, in f32: parts that another kernel adds, or a C of f32, where they may be added to what
//! is there.

use cutlet_device::hopper::{
    AccumulatorLayout, Major, StoreOrAdd, WarpgroupThread, WgmmaInstruction,
};
use cutlet_device::{DeviceData, GlobalMut};
use cutlet_layout_core::{ColMajor, Fragment, RowMajor, Tensor};

use super::ahead::Ahead;
use super::{Epilogue, Problem, RowsC, TileC, epilogue};

/// Whether sums can be left. Not where the epilogue reads rows or columns ahead.
pub const fn leaves_sums<Epi: Epilogue>() -> bool {
    Ahead::<Epi>::IS_EMPTY
}

/// How sums are left, if they are.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Leave(i64);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Leave {}

impl Leave {
    /// They are not.
    pub const NOTHING: Self = Self(0);

    /// In rows that are `ld` elements apart, an even number, and start at a multiple of 8 bytes; in place of what is there,
    /// or, if it `adds`, added to it.
    pub const fn rows(ld: usize, adds: bool) -> Self {
        Self(2 * ld as i64 + adds as i64)
    }

    #[inline(always)]
    pub(super) fn is_asked(self) -> bool {
        self.0 > 0
    }

    #[inline(always)]
    fn ld(self) -> i64 {
        self.0 >> 1
    }

    #[inline(always)]
    fn adds(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Where sums are left: where C would be.
#[inline(always)]
pub(super) fn sums_of<T: DeviceData>(c: GlobalMut<T>) -> GlobalMut<f32> {
    GlobalMut::from_ptr(c.as_ptr().cast())
}

/// Leaves what the epilogue makes of a consumer's sums of 64 rows, without old elements: rows `rows` of the tile `tile`
/// of what is left.
///
/// # Safety
/// They must be at `to`, and nobody else may use them.
#[inline(always)]
pub(super) unsafe fn leave_sums<
    I: WgmmaInstruction,
    JC: Major,
    Epi: Epilogue,
    const M: usize,
    const N: usize,
>(
    sums: &mut Fragment<f32, I::Values>,
    epilogue: Epi,
    to: GlobalMut<f32>,
    problem: &Problem,
    tile: (u32, u32),
    rows: (u32, u32),
    thread: WarpgroupThread,
) {
    let Problem { left, leave, .. } = *problem;
    let to = StoreOrAdd::new(to, leave.adds());
    let ld = leave.ld();
    let applies = !epilogue.is_identity();
    // SAFETY: as promised by the caller.
    unsafe {
        if JC::K_IS_CONSECUTIVE {
            // A thread has pairs of neighbours of a row.
            let to = Tensor::new(to, RowMajor::new(left, ld))
                .local_tile::<TileC<M, N>>(tile)
                .local_tile::<RowsC<N>>(rows)
                .partition::<AccumulatorLayout<I, 2>>(thread);
            if applies {
                epilogue::apply(epilogue, sums, |v| to.bound().coordinate(v));
            }
            to.store(sums);
        } else {
            let to = Tensor::new(to, ColMajor::new(left, ld))
                .local_tile::<TileC<M, N>>(tile)
                .local_tile::<RowsC<N>>(rows)
                .partition::<AccumulatorLayout<I>>(thread);
            if applies {
                epilogue::apply(epilogue, sums, |v| to.bound().coordinate(v));
            }
            to.store(sums);
        }
    }
}
