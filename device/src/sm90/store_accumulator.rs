//! Stores a warpgroup's accumulators to a tile in shared memory: as 16-bit floats by `stmatrix`, or as they are.

use core::marker::PhantomData;

use cutlet_layout_core::{
    AccessWidth, Bound, EngineMut, Fixed, Fragment, Inner, L, Layout, StaticLayout, StaticSwizzle,
    TileIndex, Width, each,
};
use half::{bf16, f16};

use super::{WarpgroupThreads, WgmmaInstruction};
use crate::tile::SharedTile;
use crate::warpgroup::WarpgroupThread;
use crate::{DeviceData, Float16, PartialSum, stmatrix, stmatrix_transposed};

/// Writes subtile `subtile` of a warpgroup's accumulators, rounded to `T`, to M atom `m_atom` of the tile: the 64 rows
/// from `64 · m_atom`. A subtile has as many columns as the tile. `subtile` should be a constant once loops are
/// unrolled.
///
/// The tile's (mn, k) are the accumulators' rows and columns. Each warp writes its 16 rows: 16-bit floats in stores of
/// 16 bytes, whichever of the two is consecutive, and f32 and i32 in pairs if
/// columns are.
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
    values: &Fragment<T::Acc, I::Values>,
) where
    I: WgmmaInstruction,
    T: StoredAccumulator,
    L: StaticLayout,
    W: StaticSwizzle,
{
    const {
        assert!(
            L::LAYOUT.mode(1).size() % 8 == 0 && I::N as i64 >= L::LAYOUT.mode(1).size(),
            "store_accumulator: the tile has a multiple of 8 columns, and no more columns than the accumulators"
        );
    }
    // SAFETY: as promised by the caller.
    unsafe { T::store::<I, L, W>(tile, m_atom, subtile, thread, values) };
}

/// A type that a warpgroup's accumulators can be stored as.
///
/// | type | accumulators |
/// |---|---|
/// | `bf16`, `f16`, `f32` | `f32` |
/// | `i32` | `i32` |
pub trait StoredAccumulator: DeviceData + Default {
    /// The type of the accumulators.
    type Acc: PartialSum;
    /// An access of 16 bytes.
    type Vector: AccessWidth;

    /// Stores them, as [`store_accumulator`] does.
    ///
    /// # Safety
    /// As [`store_accumulator`].
    unsafe fn store<I: WgmmaInstruction, L: StaticLayout, W: StaticSwizzle>(
        tile: SharedTile<Self, L, W>,
        m_atom: impl TileIndex,
        subtile: usize,
        thread: WarpgroupThread,
        values: &Fragment<Self::Acc, I::Values>,
    );
}

macro_rules! stored_by_stmatrix {
    ($($element:ty),+) => {$(
        impl StoredAccumulator for $element {
            type Acc = f32;
            type Vector = Width<8>;

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn store<I: WgmmaInstruction, L: StaticLayout, W: StaticSwizzle>(
                tile: SharedTile<Self, L, W>,
                m_atom: impl TileIndex,
                subtile: usize,
                thread: WarpgroupThread,
                values: &Fragment<f32, I::Values>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { store_16_bits::<I, _, L, W>(tile, m_atom, subtile, thread, values) };
            }
        }
    )+};
}
stored_by_stmatrix!(bf16, f16);

macro_rules! stored_as_they_are {
    ($($element:ty),+) => {$(
        impl StoredAccumulator for $element {
            type Acc = $element;
            type Vector = Width<4>;

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn store<I: WgmmaInstruction, L: StaticLayout, W: StaticSwizzle>(
                tile: SharedTile<Self, L, W>,
                m_atom: impl TileIndex,
                subtile: usize,
                thread: WarpgroupThread,
                values: &Fragment<$element, I::Values>,
            ) {
                let inner = Fixed::<L, W>::new();
                let of_thread = inner
                    .partition::<WarpgroupThreads, SubtileValues<L>>(first_row::<L>(m_atom), thread.get());
                let bound = inner.bind::<SubtileValues<L>>(of_thread);
                let start = tile.start().offset(bound.base());
                let first = subtile * SubtileValues::<L>::SIZE;
                each::<SubtileValues<L>>(|v| {
                    // SAFETY: the addresses are within the tile, and the caller promises that these rows are not in use. Pairs
                    // of a row begin at multiples of 8 bytes.
                    unsafe {
                        match const { stores_rows(&L::LAYOUT) } {
                            true if v % 2 == 0 => {
                                let pair = [values.get(first + v), values.get(first + v + 1)];
                                start.store_vector::<2>(bound.index(v), pair);
                            }
                            true => {}
                            false => start.store(bound.index(v), values.get(first + v)),
                        }
                    }
                });
            }
        }
    )+};
}
stored_as_they_are!(f32, i32);

/// Which accumulators of a subtile are a thread's, counted from its first: pairs of two rows, in turns. A subtile has
/// the columns of the tile `T`.
#[derive(Clone, Copy)]
struct SubtileValues<T>(PhantomData<T>);

impl<T: StaticLayout> StaticLayout for SubtileValues<T> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(2, 1, 1),
        Layout::static_basis_mode(2, 8, 0),
        Layout::static_basis_mode(T::LAYOUT.mode(1).size() / 8, 8, 1),
    ]);
}

/// [`store_accumulator`] by `stmatrix`.
///
/// # Safety
/// As [`store_accumulator`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store_16_bits<I, T, L, W>(
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
    let inner = Fixed::<L, W>::new();
    let lane = inner.partition::<Lanes<L>, Matrices<L>>(first_row::<L>(m_atom), thread.get());
    let bound = inner.bind::<Matrices<L>>(lane);
    let start = tile.start().offset(bound.base());
    each::<Matrices<L>>(|nth| {
        let pair = |n: usize| {
            let v = const { width(&L::LAYOUT) / 2 } * (subtile * Matrices::<L>::SIZE + nth) + 2 * n;
            T::pack_f32([values.get(v), values.get(v + 1)])
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

/// Elements from the first one of a tile of layout `T` to the first one of an M atom.
#[inline(always)]
fn first_row<T: StaticLayout>(m_atom: impl TileIndex) -> u32 {
    m_atom.index() * const { T::LAYOUT.mode(0).at(64) as u32 }
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
