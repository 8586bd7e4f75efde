//! `stmatrix`: a warp stores 8×8 matrices of 16-bit elements, each lane a row of 16 bytes.

use core::marker::PhantomData;

use cutlet_layout_core::{
    Bound, Fixed, Fragment, Inner, L, Layout, StaticLayout, StaticSwizzle, TileIndex, each,
};
use half::{bf16, f16};

use super::{SharedTile, WarpgroupThread, WgmmaInstruction};
use crate::{DeviceData, Float, Shared};

/// A float type of which `stmatrix` can store pairs.
pub trait Float16: Float {
    /// Two values in one register, the first in the lower half.
    fn pack(values: [Self; 2]) -> u32;
}

macro_rules! float16 {
    ($($type:ident),*) => {$(
        impl Float16 for $type {
            #[inline(always)]
            fn pack([low, high]: [Self; 2]) -> u32 {
                u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
            }
        }
    )*};
}
float16!(bf16, f16);

/// Stores two or four 8×8 matrices of 16-bit elements.
///
/// Register `i` of lane `l` holds elements `2·(l mod 4)` and the one after it, of row `l / 4` of
/// matrix `i`; lane `l` says where row `l mod 8` of matrix `l / 8` goes, if there is that matrix. All lanes
/// of the warp call it.
///
/// # Safety
/// `row` must be 16-byte aligned in shared memory, with room for 8 elements that nobody else is
/// accessing.
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

/// [`stmatrix`] of the transposed matrices: lane `l` says where *column* `l mod 8` of matrix `l /
/// 8` goes.
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
    assert!(
        matches!(matrices, 2 | 4),
        "stmatrix stores 2 or 4 matrices here"
    );
}

/// Writes as many columns of a warpgroup's sums as the tile has, rounded to `T`, to 64 rows of the
/// tile: rows `64 · block` and on. `piece` counts such columns from the left; it is a constant once
/// loops are unrolled. The tile's (mn, k) are the sums' rows and columns; whichever of the two is
/// consecutive in it, stores are of 16 bytes. Each warp writes the 16 rows that it has.
///
/// All threads of the warpgroup call it, then [`fence_async_shared`](super::fence_async_shared) if
/// a TMA store follows.
///
/// # Safety
/// Nobody else may be accessing those rows of the tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_accumulator<I, T, L, W>(
    tile: SharedTile<T, L, W>,
    block: impl TileIndex,
    piece: usize,
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
            "store_accumulator: the tile has a multiple of 8 columns (two 8×8 matrices), and no more than the sums"
        );
    }
    let first_row = block.index() * const { L::LAYOUT.mode(0).at(64) as u32 };
    let inner = Fixed::<L, W>::new();
    let lane = inner.partition::<Lanes<L>, Matrices<L>>(first_row, thread.get());
    let bound = inner.bind::<Matrices<L>>(lane);
    let start = tile.start().offset(bound.base());
    each::<Matrices<L>>(|turn| {
        let pair = |n: usize| {
            let v = const { width(&L::LAYOUT) / 2 } * (piece * Matrices::<L>::SIZE + turn) + 2 * n;
            T::pack(T::pair_from_f32([values.get(v), values.get(v + 1)]))
        };
        let place = start.offset(bound.index(turn));
        // SAFETY: the places are within the tile, and the caller promises that it is not in use.
        unsafe {
            match const { (stores_rows(&L::LAYOUT), width(&L::LAYOUT)) } {
                (true, 16) => stmatrix(place, [pair(0), pair(1), pair(2), pair(3)]),
                (true, _) => stmatrix(place, [pair(0), pair(1)]),
                (false, 16) => stmatrix_transposed(place, [pair(0), pair(1), pair(2), pair(3)]),
                (false, _) => stmatrix_transposed(place, [pair(0), pair(1)]),
            }
        }
    });
}

/// Where each thread of a warpgroup stores its row of one of the 8×8 matrices, or its column where
/// columns are what is consecutive in the tile `T`. The matrices are 2×2, the first two below each
/// other, as an accumulator's registers are; or these two alone, and half of the threads say nothing new.
#[derive(Clone, Copy)]
struct Lanes<T>(PhantomData<T>);

impl<T: StaticLayout> StaticLayout for Lanes<T> {
    const LAYOUT: Layout = match (stores_rows(&T::LAYOUT), width(&T::LAYOUT)) {
        (true, 16) => <L!(((8, 2, 2), 4):((1@0, 8@0, 8@1), 16@0))>::LAYOUT,
        (true, _) => <L!(((8, 2, 2), 4):((1@0, 8@0, 0@1), 16@0))>::LAYOUT,
        (false, 16) => <L!(((8, 2, 2), 4):((1@1, 8@0, 8@1), 16@0))>::LAYOUT,
        (false, _) => <L!(((8, 2, 2), 4):((1@1, 8@0, 0@1), 16@0))>::LAYOUT,
    };
    type Storage<V: Copy> = [V; 128];
}

/// Where each [`width`] columns of the tile `T` begin: what one [`stmatrix`] of a warp stores.
#[derive(Clone, Copy)]
struct Matrices<T>(PhantomData<T>);

impl<T: StaticLayout> StaticLayout for Matrices<T> {
    const LAYOUT: Layout = {
        let width = width(&T::LAYOUT);
        Layout::static_basis_mode(T::LAYOUT.mode(1).size() / width as i64, width as i64, 1)
    };
    type Storage<V: Copy> = T::Storage<V>;
}

/// The columns of a tile that are stored at once.
const fn width(layout: &Layout) -> usize {
    match layout.mode(1).size() % 16 {
        0 => 16,
        _ => 8,
    }
}

/// Whether 8 columns of a row are consecutive in the tile; if not, 8 rows of a column are.
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
