//! `stmatrix`: a warp stores 8×8 matrices of 16-bit elements from registers to shared memory, in rows of 16 bytes.

use core::marker::PhantomData;

use cutlet_layout_core::{
    Bound, Fixed, Fragment, Inner, L, Layout, StaticLayout, StaticSwizzle, TileIndex, each,
};

use super::WgmmaInstruction;
use crate::tile::SharedTile;
use crate::warpgroup::WarpgroupThread;
use crate::{DeviceData, Float16, Shared};

/// Stores two or four 8×8 matrices of 16-bit elements.
///
/// Register `i` of lane `l` holds elements `2·(l mod 4)` and `2·(l mod 4) + 1` of row `l / 4` of matrix `i`. The `row`
/// of lane `l` is the address for row `l mod 8` of matrix `l / 8`, if there is such a matrix. All lanes of the warp
/// call it.
///
/// # Safety
/// `row` must be 16-byte aligned in shared memory, with room for 8 elements that no other thread accesses.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn stmatrix<T: DeviceData, const MATRICES: usize>(
    row: Shared<T>,
    registers: [u32; MATRICES],
) {
    const { check(size_of::<T>(), MATRICES) };
    // SAFETY: as promised by the caller.
    unsafe { imp::stmatrix::<false>(row.address(), &registers) };
}

/// [`stmatrix`] of the transposed matrices: the `column` of lane `l` is the address for column `l mod 8` of matrix `l /
/// 8`.
///
/// # Safety
/// As [`stmatrix`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn stmatrix_transposed<T: DeviceData, const MATRICES: usize>(
    column: Shared<T>,
    registers: [u32; MATRICES],
) {
    const { check(size_of::<T>(), MATRICES) };
    // SAFETY: as promised by the caller.
    unsafe { imp::stmatrix::<true>(column.address(), &registers) };
}

const fn check(bytes: usize, matrices: usize) {
    assert!(bytes == 2, "stmatrix stores elements of 16 bits");
    assert!(matches!(matrices, 2 | 4), "stmatrix stores 2 or 4 matrices");
}

/// Writes subtile `subtile` of a warpgroup's accumulators, rounded to `T`, to M atom `m_atom` of the tile: the 64 rows
/// from `64 · m_atom`. A subtile has as many columns as the tile. `subtile` should be a constant once loops are
/// unrolled.
///
/// The tile's (mn, k) are the accumulators' rows and columns. Stores have 16 bytes, whichever of the two is
/// consecutive. Each warp writes its 16 rows.
///
/// All threads of the warpgroup call it, and then [`fence_async_shared`](crate::fence_async_shared) if a TMA store
/// follows.
///
/// # Safety
/// No other thread may access these rows of the tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_accumulator<I, T, L, W>(
    tile: SharedTile<T, L, W>,
    m_atom: impl TileIndex,
    subtile: usize,
    thread: WarpgroupThread,
    values: &Fragment<f32, I::Values>,
) where
    I: WgmmaInstruction,
    T: Float16,
    L: StaticLayout,
    W: StaticSwizzle,
{
    const {
        assert!(
            L::LAYOUT.mode(1).size() % 8 == 0 && I::N as i64 >= L::LAYOUT.mode(1).size(),
            "store_accumulator: the tile has a multiple of 8 columns, and no more columns than the accumulators"
        );
    }
    let first_row = m_atom.index() * const { L::LAYOUT.mode(0).at(64) as u32 };
    let inner = Fixed::<L, W>::new();
    let lane = inner.partition::<Lanes<L>, Matrices<L>>(first_row, thread.get());
    let bound = inner.bind::<Matrices<L>>(lane);
    let start = tile.start().offset(bound.base());
    each::<Matrices<L>>(|nth| {
        let pair = |n: usize| {
            let v = const { width(&L::LAYOUT) / 2 } * (subtile * Matrices::<L>::SIZE + nth) + 2 * n;
            T::pack(T::pair_from_f32([values.get(v), values.get(v + 1)]))
        };
        let to = start.offset(bound.index(nth));
        // SAFETY: the addresses are within the tile, and the caller promises that these rows are not in use.
        unsafe {
            match const { (stores_rows(&L::LAYOUT), width(&L::LAYOUT)) } {
                (true, 16) => stmatrix(to, [pair(0), pair(1), pair(2), pair(3)]),
                (true, _) => stmatrix(to, [pair(0), pair(1)]),
                (false, 16) => stmatrix_transposed(to, [pair(0), pair(1), pair(2), pair(3)]),
                (false, _) => stmatrix_transposed(to, [pair(0), pair(1)]),
            }
        }
    });
}

/// The coordinate of the row of an 8×8 matrix whose address each thread of a warpgroup passes, or of the column if the
/// tile `T` is stored by columns. A warp stores 2×2 matrices, column by column, which is the order of the accumulator
/// registers. If it stores the first two alone, the upper half of its lanes repeats the addresses of the lower half.
#[derive(Clone, Copy)]
struct Lanes<T>(PhantomData<T>);

impl<T: StaticLayout> StaticLayout for Lanes<T> {
    const LAYOUT: Layout = match (stores_rows(&T::LAYOUT), width(&T::LAYOUT)) {
        (true, 16) => <L!(((8, 2, 2), 4):((1@0, 8@0, 8@1), 16@0))>::LAYOUT,
        (true, _) => <L!(((8, 2, 2), 4):((1@0, 8@0, 0@1), 16@0))>::LAYOUT,
        (false, 16) => <L!(((8, 2, 2), 4):((1@1, 8@0, 8@1), 16@0))>::LAYOUT,
        (false, _) => <L!(((8, 2, 2), 4):((1@1, 8@0, 0@1), 16@0))>::LAYOUT,
    };
}

/// The first column of each [`stmatrix`] of a warp, which stores [`width`] columns of the tile `T`.
#[derive(Clone, Copy)]
struct Matrices<T>(PhantomData<T>);

impl<T: StaticLayout> StaticLayout for Matrices<T> {
    const LAYOUT: Layout = {
        let width = width(&T::LAYOUT);
        Layout::static_basis_mode(T::LAYOUT.mode(1).size() / width as i64, width as i64, 1)
    };
}

/// The columns that one `stmatrix` stores.
const fn width(layout: &Layout) -> usize {
    match layout.mode(1).size() % 16 {
        0 => 16,
        _ => 8,
    }
}

/// Whether 8 columns of a row are consecutive in the tile. If not, 8 rows of a column are.
const fn stores_rows(layout: &Layout) -> bool {
    assert!(
        layout.rank() == 2 && layout.mode(0).size() % 64 == 0,
        "store_accumulator: the tile has a multiple of 64 rows"
    );
    let (rows, columns) = (layout.mode(0), layout.mode(1));
    if columns.at(7) == 7 {
        return true;
    }
    assert!(
        rows.at(7) == 7,
        "store_accumulator: 8 neighbouring columns, or 8 neighbouring rows, must be consecutive in the tile"
    );
    false
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    macro_rules! stmatrix {
        ($matrices:literal $transposed:literal $row:ident: $($register:ident)*) => {
            asm!(
                concat!("stmatrix.sync.aligned.m8n8.", $matrices, $transposed, ".shared.b16 [{row}], {{",
                    stmatrix!(@list $($register)*), "}};"),
                row = in(reg32) $row, $($register = in(reg32) $register,)* options(nostack))
        };
        (@list $first:ident $($register:ident)*) => {
            concat!("{", stringify!($first), "}", $(", {", stringify!($register), "}",)*)
        };
    }

    #[inline(always)]
    pub unsafe fn stmatrix<const TRANSPOSED: bool>(row: u32, registers: &[u32]) {
        // SAFETY: as promised by the caller.
        unsafe {
            match (registers, TRANSPOSED) {
                (&[a, b], false) => stmatrix!("x2" "" row: a b),
                (&[a, b], true) => stmatrix!("x2" ".trans" row: a b),
                (&[a, b, c, d], false) => stmatrix!("x4" "" row: a b c d),
                (&[a, b, c, d], true) => stmatrix!("x4" ".trans" row: a b c d),
                _ => unreachable!("2 or 4 matrices"),
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    #[track_caller]
    pub unsafe fn stmatrix<const TRANSPOSED: bool>(row: u32, registers: &[u32]) {
        cutlet_simt::stmatrix(row, registers, TRANSPOSED);
    }
}
