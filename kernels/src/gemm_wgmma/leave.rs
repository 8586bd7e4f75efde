//! Sums that are left as they are, in f32: parts that another kernel adds, or a C of f32, where they may be added to what
//! is there.

use cutlet_device::hopper::{
    AccumulatorLayout, Adding, HalfAccumulatorLayout, Major, WarpgroupThread, WgmmaInstruction,
};
use cutlet_device::{DeviceData, GlobalMut, uniform};
use cutlet_layout_core::{ColMajor, Engine, Fragment, MatrixInner, RowMajor, Tensor};

use super::ahead::Ahead;
use super::{Epilogue, Problem, RowsC, TileC, WARP_ROWS, epilogue};

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

    /// Asked of one lane: for lanes that might answer differently, ptxas has all lanes yield to each other, and that in
    /// the loop of products.
    #[inline(always)]
    fn adds(self) -> bool {
        uniform(self.0 as u32 & 1) != 0
    }
}

/// Where sums are left: where C would be.
#[inline(always)]
pub(super) fn sums_of<T: DeviceData>(c: GlobalMut<T>) -> GlobalMut<f32> {
    GlobalMut::from_ptr(c.as_ptr().cast())
}

/// Which sums are left: those of the rows `rows` of a tile of what is left, for a consumer's thread. `tile` is where it
/// begins, in [`WARP_ROWS`] of rows and pieces of columns.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub tile: (u32, u32),
    pub rows: (u32, u32),
    pub thread: WarpgroupThread,
}

/// Leaves what the epilogue makes of a consumer's sums of 64 rows, without old elements.
///
/// # Safety
/// Their place must be at `to`, and nobody else may use it but to leave the same sums.
#[inline(always)]
pub(super) unsafe fn leave_sums<
    I: WgmmaInstruction,
    JC: Major,
    const PIECE: usize,
    const N: usize,
>(
    sums: &mut Fragment<f32, I::Values>,
    epilogue: impl Epilogue,
    to: GlobalMut<f32>,
    problem: &Problem,
    place: Place,
) {
    let Problem { left, leave, .. } = *problem;
    // SAFETY: as promised by the caller.
    unsafe {
        if !epilogue.is_identity() {
            let rows = rows::<_, _, PIECE, N>(to, RowMajor::new(left, leave.ld()), place);
            let rows = rows.partition::<AccumulatorLayout<I>>(place.thread);
            epilogue::apply(epilogue, sums, |v| rows.bound().coordinate(v));
        }
        let to = Adding::to_if(leave.adds(), to);
        if JC::K_IS_CONSECUTIVE {
            // Row by row, so that where a row begins is computed once: the compiler finds that out, but takes long.
            let rows = rows::<_, _, PIECE, N>(to, RowMajor::new(left, leave.ld()), place);
            for half in 0..2 {
                rows.local_tile::<TileC<8, N>>((half, 0u32))
                    .partition::<HalfAccumulatorLayout<I, 2>>(place.thread)
                    .store(&values_of_row::<I>(sums, half as usize));
            }
        } else {
            rows::<_, _, PIECE, N>(to, ColMajor::new(left, leave.ld()), place)
                .partition::<AccumulatorLayout<I>>(place.thread)
                .store(sums);
        }
    }
}

/// Those of a thread's values that are in the first of its rows, or in the second.
#[inline(always)]
fn values_of_row<I: WgmmaInstruction>(
    sums: &Fragment<f32, I::Values>,
    half: usize,
) -> Fragment<f32, I::RowValues> {
    Fragment::from_fn(|v| sums.get(v / 2 * 4 + half * 2 + v % 2))
}

/// The rows of a place.
///
/// # Safety
/// As for [`leave_sums`].
#[inline(always)]
unsafe fn rows<E: Engine, Order: MatrixInner, const PIECE: usize, const N: usize>(
    to: E,
    order: Order,
    place: Place,
) -> Tensor<E, Order> {
    // SAFETY: as promised by the caller.
    unsafe { Tensor::new(to, order) }
        .local_tile::<TileC<WARP_ROWS, PIECE>>(place.tile)
        .local_tile::<RowsC<N>>(place.rows)
}
