//! Rows in global memory that begin at any element: a warp stores them from a tile in shared memory, in aligned words
//! of 4 bytes, which are two elements of 16 bits or one of 32.
//!
//! A row of 16-bit elements that begins at the second element of a word has, in each word, the second half of one word in shared memory
//! and the first half of the next one. Its first and last element may share a word with an element that is not the
//! row's. Such an element is stored alone.

use core::marker::PhantomData;

use cutlet_layout_core::{Coord, StaticSwizzle};

use crate::tile::{SharedTile, TmaLayout};
use crate::{DeviceData, GlobalMut, Shared, WARP_SIZE, funnel_shift_right, lane_idx};

/// The most rows that a warp stores: those of its accumulators.
const ROWS: u32 = 16;
/// Words that a lane reads before it stores them.
const IN_FLIGHT: u32 = 8;

/// Rows in global memory, of elements of 16 or 32 bits. They may begin at any element.
#[derive(Clone, Copy, Debug)]
pub struct UnalignedRows<T> {
    /// The first element of the first row.
    pub first: GlobalMut<T>,
    /// Elements from one row to the next.
    pub ld: i64,
    /// Rows, and elements of a row. There are none if a number is negative.
    pub extent: Coord,
}

impl<T: DeviceData> UnalignedRows<T> {
    /// Stores the first of the 16 rows of a tile that begin at `first_row`, as many as there are, and of each row as
    /// many elements as a row has. All lanes of the warp call it.
    ///
    /// # Safety
    /// The rows must exist, have at most as many elements as those of the tile, and no other thread may access them.
    /// The tile must have the 16 rows, which the warp has written before it met.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store<L: TmaLayout>(&self, tile: SharedTile<T, L, L::Swizzle>, first_row: u32) {
        const {
            assert!(
                matches!(size_of::<T>(), 2 | 4)
                    && L::IS_K_MAJOR
                    && L::K.is_power_of_two()
                    && L::K >= 16,
                "the tile has rows of elements of 16 or 32 bits: 16, or twice as many, and so on"
            );
        }
        let [_, columns] = self.extent;
        if columns <= 0 {
            return;
        }
        let tile = Rows::<T, L>::new(tile, first_row);
        // SAFETY: as promised by the caller.
        unsafe {
            self.store_words(&tile);
            if Rows::<T, L>::IN_A_WORD > 1 {
                self.store_ends(&tile);
            }
        }
    }

    /// Stores all words whose elements are a row's.
    ///
    /// # Safety
    /// As [`store`](Self::store).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store_words<L: TmaLayout>(&self, tile: &Rows<T, L>) {
        let in_a_word = Rows::<T, L>::IN_A_WORD;
        let (word, down) = Rows::<T, L>::place();
        let [rows, columns] = self.extent;
        // The row and the word of the lane's `nth` one of a turn.
        let place = |first: u32, nth: u32| {
            let (rows, words) = (nth / Rows::<T, L>::GROUPS, nth % Rows::<T, L>::GROUPS);
            let row = first + rows * Rows::<T, L>::ROWS_AT_ONCE + down;
            (row, words * Rows::<T, L>::LANES + word)
        };
        let end = rows.clamp(0, ROWS as i32) as u32;
        let mut first = 0;
        while first < end {
            let mut pairs = [[0; 2]; IN_FLIGHT as usize];
            for nth in 0..Rows::<T, L>::WORDS_OF_TURN {
                let (row, word) = place(first, nth);
                let words = [word.saturating_sub(1), word];
                let word = |word| tile.at(row, in_a_word * word).cast::<u32>();
                // SAFETY: the tile has these words. Those beyond the rows or columns are not used.
                pairs[nth as usize] = words.map(|at| unsafe { word(at).load_unwritten(0) });
            }
            for nth in 0..Rows::<T, L>::WORDS_OF_TURN {
                let (row, word) = place(first, nth);
                let (to, is_odd) = self.row(row);
                let column = (in_a_word * word) as i32 - is_odd as i32;
                let [low, high] = pairs[nth as usize];
                let word = funnel_shift_right(low, high, 32 - 16 * is_odd);
                // Without a sign, a column of −1 is large.
                if row < end && (column as u32) < (columns + 1) as u32 - in_a_word {
                    let to = to.offset(i64::from(column)).checked_ptr();
                    // SAFETY: the word's elements are the row's, and the first one begins it.
                    unsafe { GlobalMut::<u32>::from_ptr(to.cast()).store(0, word) };
                }
            }
            first += Rows::<T, L>::ROWS_OF_TURN;
        }
    }

    /// Stores the first and the last element of each row if the row has only half of their word. Each lane has one of
    /// these elements.
    ///
    /// # Safety
    /// As [`store`](Self::store).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store_ends<L: TmaLayout>(&self, tile: &Rows<T, L>) {
        let lane = lane_idx().get();
        let (row, end) = (lane % ROWS, lane / ROWS);
        let [rows, columns] = self.extent;
        let (to, is_odd) = self.row(row);
        let column = end * (columns - 1) as u32;
        let is_alone = (is_odd + column) % 2 != end;
        if (row as i32) < rows && is_alone {
            // SAFETY: the element is the row's, and the tile has it.
            unsafe { to.store(i64::from(column), tile.at(row, column).load(0)) };
        }
    }

    /// The first element of a row, and 1 if it is the second one of its word, else 0.
    #[inline(always)]
    fn row(&self, row: u32) -> (GlobalMut<T>, u32) {
        let first = self.first.offset(i64::from(row) * self.ld);
        let bytes = size_of::<T>() as u32;
        let is_odd = first.checked_ptr().addr() as u32 / bytes % (4 / bytes);
        (first, is_odd)
    }
}

/// 16 rows of a tile in shared memory.
struct Rows<T, L> {
    /// The first element of the first row.
    start: Shared<T>,
    first_row: u32,
    layout: PhantomData<L>,
}

impl<T: DeviceData, L: TmaLayout> Rows<T, L> {
    /// Elements of a word.
    const IN_A_WORD: u32 = 4 / size_of::<T>() as u32;
    /// Words of a row.
    const WORDS: u32 = L::K as u32 / Self::IN_A_WORD;
    /// Words of a row that the lanes read at a time. If these are not all lanes, others read the next rows.
    const LANES: u32 = match Self::WORDS {
        words if words < WARP_SIZE => words,
        _ => WARP_SIZE,
    };
    /// Rows that the lanes read at a time.
    const ROWS_AT_ONCE: u32 = WARP_SIZE / Self::LANES;
    /// How many times the lanes read words of the same rows.
    const GROUPS: u32 = Self::WORDS / Self::LANES;
    /// Rows that the lanes read before they store them.
    const ROWS_OF_TURN: u32 = match IN_FLIGHT / Self::GROUPS * Self::ROWS_AT_ONCE {
        rows if rows < ROWS => rows,
        _ => ROWS,
    };
    /// Words that each lane reads before it stores them.
    const WORDS_OF_TURN: u32 = Self::ROWS_OF_TURN / Self::ROWS_AT_ONCE * Self::GROUPS;
    /// Elements of a line.
    const LINE: u32 = (L::SWIZZLE_BYTES / size_of::<T>()) as u32;

    #[inline(always)]
    fn new(tile: SharedTile<T, L, L::Swizzle>, first_row: u32) -> Self {
        Self {
            start: tile.start(),
            first_row,
            layout: PhantomData,
        }
    }

    /// The running lane's word among those that the lanes read at a time, and its row among theirs.
    #[inline(always)]
    fn place() -> (u32, u32) {
        let lane = lane_idx().get();
        (lane % Self::LANES, lane / Self::LANES)
    }

    /// The element at a row and a column.
    #[inline(always)]
    fn at(&self, row: u32, column: u32) -> Shared<T> {
        let line = (self.first_row + row) * Self::LINE;
        // The lines of a box come before the next columns. The swizzle depends on the line alone.
        let in_line = column / Self::LINE * (L::MN as u32 * Self::LINE) + column % Self::LINE;
        let swizzle = L::Swizzle::apply(line) ^ line;
        self.start.offset(i64::from(line + (in_line ^ swizzle)))
    }
}
