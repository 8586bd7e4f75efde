//! Copies of operands whose rows begin at any element of 16 bits: the warps of a warpgroup copy tiles of them to shared
//! memory, in aligned words of two elements.
//!
//! `cp.async` brings each word to its place in the tile, so that words of many stages are in flight without registers. If a
//! row begins at the second element of a word, what arrives is one element too far on. Once it has arrived, the warp
//! shifts the row back by one element. A row of the tile needs one more word then, which has a place beside the tile.
//!
//! Nothing outside of the matrix is read. Zeros replace what is beyond the end of a row.

use core::marker::PhantomData;
use core::ops::Range;

use cutlet_layout_core::{Coord, StaticSwizzle};

use super::{StageCount, StageIdx};
use crate::sm80::cp_async;
use crate::sm90::{SharedTile, TmaLayout, WARPGROUP_WARPS, WarpgroupThread};
use crate::{
    DeviceData, Global, Shared, SharedStorage, WARP_SIZE, funnel_shift_right, lane_idx, shfl_down,
    sync_warp,
};

/// Rows whose copies are written out. The swizzle of every eighth line is the same.
const AT_ONCE: u32 = 8;
/// The most rows that a warp shifts at a time.
const MOST_SHIFTED: u32 = 8;

/// A matrix in global memory whose rows begin at any element.
#[derive(Clone, Copy, Debug)]
pub struct UnalignedMatrix<T> {
    /// The first element of the first row.
    pub first: Global<T>,
    /// Elements from one row to the next.
    pub ld: i64,
    /// Rows and columns.
    pub extent: Coord,
}

/// The words beside the tiles of layout `L` of the stages `S`: one for each row.
#[derive(Clone, Copy, Debug)]
pub struct LastWords<L, S>(Shared<u32>, PhantomData<(L, S)>);

impl<L: TmaLayout, S: StageCount> SharedStorage for LastWords<L, S> {
    const BYTES: u32 = (S::STAGES * L::MN * size_of::<u32>()) as u32;
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(Shared::from_address(address), PhantomData)
    }
}

/// Copies tiles of a matrix to the stages of a ring, row by row. The tiles have lines of 128 bytes, each of which a warp
/// copies at once. Each warp of a warpgroup has a part of the rows.
#[derive(Clone, Copy, Debug)]
pub struct WordCopy<T, L, S> {
    matrix: UnalignedMatrix<T>,
    last_words: LastWords<L, S>,
    warp: u32,
}

impl<T: DeviceData, L: TmaLayout, S: StageCount> WordCopy<T, L, S> {
    /// Rows that a warp copies.
    const ROWS: u32 = {
        assert!(
            size_of::<T>() == 2 && L::IS_K_MAJOR && L::K == 64 && L::SWIZZLE_BYTES == 128,
            "a row of the tile is a line of 64 elements of 16 bits"
        );
        let rows = L::MN as u32 / WARPGROUP_WARPS;
        assert!(
            matches!(rows, 8 | 16 | 32),
            "a warp copies and shifts 8 rows at once, or 16, and each lane copies the last word of one"
        );
        rows
    };
    /// Rows that a warp shifts at a time: every other one.
    const SHIFTED: u32 = match Self::ROWS / 2 {
        rows if rows < MOST_SHIFTED => rows,
        _ => MOST_SHIFTED,
    };

    /// The copies of the running thread's warp.
    ///
    /// # Safety
    /// The matrix must exist, begin at a multiple of 2 bytes, and have a row and a column. Nothing may write it.
    #[inline(always)]
    pub unsafe fn new(
        matrix: UnalignedMatrix<T>,
        last_words: LastWords<L, S>,
        thread: WarpgroupThread,
    ) -> Self {
        Self {
            matrix,
            last_words,
            warp: thread.warp(),
        }
    }

    /// Starts the copies of the warp's rows of the tile that begins at `begin`, an even row and a multiple of 64 columns.
    /// All lanes of the warp call it.
    ///
    /// # Safety
    /// The tile must be that of the stage, and nothing may access it before [`finish`](Self::finish).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn start(
        &self,
        tile: SharedTile<T, L, L::Swizzle>,
        stage: StageIdx,
        [row, column]: Coord,
    ) {
        let [rows, columns] = self.matrix.extent;
        let first = row + (self.warp * Self::ROWS) as i32;
        let (rows, left) = ((rows - first).clamp(0, Self::ROWS as i32), columns - column);
        let from = self.row(first).offset(i64::from(column));
        // Rows two apart begin alike.
        let to_word = [
            self.own_word(from),
            self.own_word(from.offset(self.matrix.ld)),
        ];
        // SAFETY: as promised by the caller.
        unsafe {
            let begins_outside = first == 0 && column == 0 && is_odd(from);
            if begins_outside {
                self.start_first(tile, from, left);
            }
            let copied = i32::from(begins_outside)..rows;
            // Where all words are whole, the copies need no arithmetic for the end of the row.
            if left >= L::K as i32 {
                self.start_rows(tile, from, copied, to_word, [2; 2]);
            } else {
                let [even, odd] = to_word;
                let counts = [elements(left - even), elements(left - odd)];
                self.start_rows(tile, from, copied, to_word, counts);
            }
            self.start_last_words(stage, from, rows, left);
        }
    }

    /// Starts the copies of rows. The lane's word begins `to_word` elements after the beginning of its row and has `counts`
    /// elements, in rows with an even and with an odd number.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn start_rows(
        &self,
        tile: SharedTile<T, L, L::Swizzle>,
        from: Global<T>,
        rows: Range<i32>,
        to_word: [i32; 2],
        counts: [u32; 2],
    ) {
        let ld = self.matrix.ld;
        let [even, odd] = to_word;
        let mut words = [
            from.offset(i64::from(even)),
            from.offset(ld + i64::from(odd)),
        ];
        let mut first = 0;
        while first < rows.end {
            for nth in 0..AT_ONCE {
                let (row, parity) = (first + nth as i32, nth as usize % 2);
                if rows.contains(&row) {
                    // SAFETY: the elements of a word before the row are those of the row before, or between the two. The rest
                    // as promised by the caller.
                    unsafe {
                        let to = self.at(tile, row as u32, 2 * lane_idx().get());
                        cp_async::<T, 2>(to, words[parity], counts[parity]);
                    }
                }
                words[parity] = words[parity].offset(2 * ld);
            }
            first += AT_ONCE as i32;
        }
    }

    /// Starts the copies of the first row of a matrix that begins at the second element of a word. The first element is
    /// not the matrix's, and is not read.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn start_first(&self, tile: SharedTile<T, L, L::Swizzle>, from: Global<T>, left: i32) {
        let to_word = self.own_word(from);
        // SAFETY: the matrix has an element; the rest as promised by the caller.
        unsafe {
            let to = self.at(tile, 0, 2 * lane_idx().get());
            if lane_idx().is_first() {
                to.store(1, from.load(0));
            } else {
                let word = from.offset(i64::from(to_word));
                cp_async::<T, 2>(to, word, elements(left - to_word));
            }
        }
    }

    /// Starts the copies of the words beside the tile. Each lane has a row.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn start_last_words(&self, stage: StageIdx, from: Global<T>, rows: i32, left: i32) {
        let lane = lane_idx().get();
        let from = from.offset(i64::from(lane) * self.matrix.ld);
        let to_word = L::K as i32 - 1;
        if (lane as i32) < rows && is_odd(from) {
            // SAFETY: as promised by the caller.
            unsafe {
                let to = self.last_word(stage, lane).cast();
                let from = from.offset(i64::from(to_word));
                cp_async::<T, 2>(to, from, elements(left - to_word));
            }
        }
    }

    /// Shifts the rows that begin at the second element of a word, after the lanes have waited for their copies. Then the
    /// tile is complete. All lanes of the warp call it.
    ///
    /// # Safety
    /// The tile must be that of the stage, whose copies each lane has waited for. Nothing else may access it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn finish(&self, tile: SharedTile<T, L, L::Swizzle>, stage: StageIdx) {
        let [rows, _] = self.matrix.extent;
        let rows = (rows - (self.warp * Self::ROWS) as i32).clamp(0, Self::ROWS as i32) as u32;
        // Another lane has copied a row's word beside the tile.
        sync_warp();
        // Tiles and the rows of a warp begin at even rows, so every tile has the same rows to shift.
        for parity in 0..2 {
            if is_odd(self.row(parity)) {
                // SAFETY: as promised by the caller.
                unsafe { self.shift_rows(tile, stage, parity as u32, rows) };
            }
        }
    }

    /// Shifts every other one of the warp's rows, from row `first` on. A row that the matrix does not have may be shifted,
    /// too: nothing reads it. A lane reads and writes its own words of the tile.
    ///
    /// # Safety
    /// As [`finish`](Self::finish).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn shift_rows(
        &self,
        tile: SharedTile<T, L, L::Swizzle>,
        stage: StageIdx,
        first: u32,
        rows: u32,
    ) {
        let lane = lane_idx().get();
        let is_last = lane == WARP_SIZE - 1;
        let mut first = first;
        while first < rows {
            let mut words = [[0; 2]; MOST_SHIFTED as usize];
            for nth in 0..Self::SHIFTED {
                let row = first + 2 * nth;
                // SAFETY: the words are the tile's, and the one beside it.
                unsafe {
                    words[nth as usize][0] = self.at(tile, row, 2 * lane).cast::<u32>().load(0);
                    if is_last {
                        words[nth as usize][1] = self.last_word(stage, row).load(0);
                    }
                }
            }
            for nth in 0..Self::SHIFTED {
                let [word, last] = words[nth as usize];
                let next = shfl_down(word, 1);
                let shifted = funnel_shift_right(word, if is_last { last } else { next }, 16);
                let to = self.at(tile, first + 2 * nth, 2 * lane).cast();
                // SAFETY: the word is the tile's.
                unsafe { to.store(0, shifted) };
            }
            first += 2 * Self::SHIFTED;
        }
    }

    /// Elements from the beginning of a row to the lane's word of it: one less if the row begins at the second element of a
    /// word.
    #[inline(always)]
    fn own_word(&self, row: Global<T>) -> i32 {
        2 * lane_idx().get() as i32 - i32::from(is_odd(row))
    }

    /// The first element of a row of the matrix.
    #[inline(always)]
    fn row(&self, row: i32) -> Global<T> {
        self.matrix.first.offset(i64::from(row) * self.matrix.ld)
    }

    /// The element at a row of the warp and a column of the tile.
    #[inline(always)]
    fn at(&self, tile: SharedTile<T, L, L::Swizzle>, row: u32, column: u32) -> Shared<T> {
        let line = (self.warp * Self::ROWS + row) * const { L::K as u32 };
        // The swizzle depends on the line alone.
        let swizzle = L::Swizzle::apply(line) ^ line;
        tile.start().offset(i64::from(line + (column ^ swizzle)))
    }

    /// The word beside the tile for a row of the warp.
    #[inline(always)]
    fn last_word(&self, stage: StageIdx, row: u32) -> Shared<u32> {
        let row_of_ring = stage.get() * const { L::MN as u32 } + self.warp * Self::ROWS + row;
        self.last_words.0.offset(i64::from(row_of_ring))
    }
}

/// Whether the element is the second one of its word.
#[inline(always)]
fn is_odd<T: DeviceData>(element: Global<T>) -> bool {
    element.checked_ptr().addr() / 2 % 2 == 1
}

/// Elements of a word if the row has `left` elements from its beginning on.
#[inline(always)]
fn elements(left: i32) -> u32 {
    left.clamp(0, 2) as u32
}
