//! Sums that are left as they are, in f32: parts that another kernel adds, or a C of f32, where they may be added to what
//! is there.

use cutlet_device::hopper::{Adding, Major, WarpgroupThread, WarpgroupThreads, WgmmaInstruction};
use cutlet_device::{DeviceData, GlobalMut, uniform};
use cutlet_layout_core::{
    ColMajor, Fragment, Layout, RowMajor, StaticLayout, Strided, Tensor, Tv, each, tiles,
};

use super::ahead::Ahead;
use super::{Epilogue, Problem, RowsC, TileC, WARP_ROWS};

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
    let (to, ld) = (Adding::to_if(leave.adds(), to), leave.ld());
    // SAFETY: as promised by the caller.
    unsafe {
        if JC::K_IS_CONSECUTIVE {
            // A thread has pairs of neighbours of a row.
            let to = Tensor::new(to, RowMajor::new(left, ld));
            leave_in::<I, 1, 2, PIECE, N>(sums, epilogue, to, place);
        } else {
            let to = Tensor::new(to, ColMajor::new(left, ld));
            leave_in::<I, 0, 1, PIECE, N>(sums, epilogue, to, place);
        }
    }
}

/// Leaves them in a matrix, `WIDTH` of them at a time.
///
/// A loop at run time over pieces of columns, as it is used less than what surrounds it, and would be up to a third of a
/// kernel's code. Registers have no index at run time, so each turn leaves the first ones and then moves the rest up.
#[inline(always)]
fn leave_in<
    I: WgmmaInstruction,
    const ORDER: usize,
    const WIDTH: usize,
    const PIECE: usize,
    const N: usize,
>(
    sums: &mut Fragment<f32, I::Values>,
    epilogue: impl Epilogue,
    to: Tensor<Adding, Strided<ORDER>>,
    place: Place,
) {
    let rows = to
        .local_tile::<TileC<WARP_ROWS, PIECE>>(place.tile)
        .local_tile::<RowsC<N>>(place.rows);
    let [_, inside] = tiles::<TileC<64, PIECE>>([64, rows.extent()[1] - rows.origin()[1]]);
    // Asked of one lane, so that the compiler does not know how often at most, and unrolls nothing.
    for piece in 0..uniform(inside.min(const { (N / PIECE) as u32 })) {
        let places = rows
            .local_tile::<TileC<64, PIECE>>((0u32, piece))
            .partition::<Sums<PIECE, WIDTH>>(place.thread);
        let at = |v| places.bound().coordinate(v);
        each::<Values<PIECE>>(|v| sums.set(v, epilogue.apply(sums.get(v), None, at(v))));
        places.store_with(|v| sums.get(v));
        *sums = sums.moved_up(Values::<PIECE>::SIZE);
    }
}

/// Which sums of a piece are whose: the first of those that a thread has of all columns.
type Sums<const PIECE: usize, const WIDTH: usize> = Tv<WarpgroupThreads, Values<PIECE>, WIDTH>;

/// The values of [`Sums`]: pairs of two rows, in turns. They are never in a fragment of their own.
#[derive(Clone, Copy)]
struct Values<const PIECE: usize>;

impl<const PIECE: usize> StaticLayout for Values<PIECE> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(2, 1, 1),
        Layout::static_basis_mode(2, 8, 0),
        Layout::static_basis_mode((PIECE / 8) as i64, 8, 1),
    ]);
    type Storage<V: Copy> = [V; PIECE];
}
