//! What an epilogue reads of a thread's rows and columns while their sums are being multiplied.

use core::array;

use cutlet_layout_core::{Coord, Fragment, StaticLayout};

use super::{Epilogue, Pair};

/// Columns whose sums go through the epilogue at a time.
pub(super) const COLUMNS: usize = 32;
/// Groups of 8 columns that they are. A thread has a pair of neighbours in each, in both of its rows.
const GROUPS: usize = COLUMNS / 8;
/// Groups of a tile of 256 columns: the most.
const MOST: usize = 32;

/// What the epilogue `Epi` reads of a thread's two rows, and of its pair of columns in each group.
///
/// All of it is under way during the multiplication. Read piece by piece instead, each time one
/// ahead, it would come late: a piece takes less time than memory.
#[derive(Clone, Copy)]
pub(super) struct Ahead<Epi: Epilogue> {
    rows: [Epi::Row; 2],
    columns: [Epi::Columns; MOST],
}

impl<Epi: Epilogue> Ahead<Epi> {
    /// Whether there is nothing to read.
    pub const IS_EMPTY: bool = size_of::<Self>() == 0;

    /// Nothing, where it is empty.
    #[inline(always)]
    pub fn nothing() -> Self {
        Self {
            rows: Default::default(),
            columns: [Epi::Columns::default(); MOST],
        }
    }

    /// Reads it for a tile of `groups` groups, where value `v` of the thread's is at `at(v)`.
    #[inline(always)]
    pub fn read(epilogue: Epi, groups: usize, at: impl Fn(usize) -> Coord) -> Self {
        Self {
            rows: array::from_fn(|row| epilogue.row(at(2 * row)[0])),
            columns: array::from_fn(|group| match group < groups {
                true => epilogue.columns(at(4 * group)[1]),
                false => Epi::Columns::default(),
            }),
        }
    }

    /// Applies the epilogue to the sums of the `nth` 32 columns, a constant once loops are unrolled.
    #[inline(always)]
    pub fn apply<L: StaticLayout>(
        &self,
        epilogue: Epi,
        sums: &mut Fragment<f32, L>,
        nth: usize,
        at: impl Fn(usize) -> Coord,
    ) {
        let group = |pair: usize| GROUPS * nth + pair / 2;
        let first = |pair: usize| 4 * group(pair) + 2 * (pair % 2);
        let mut pairs = [[0.0; 2]; 2 * GROUPS];
        for (pair, values) in pairs.iter_mut().enumerate() {
            *values = [sums.get(first(pair)), sums.get(first(pair) + 1)];
        }
        epilogue.apply_pairs(&mut pairs, |pair| Pair {
            at: at(first(pair)),
            row: self.rows[pair % 2],
            columns: self.columns[group(pair)],
        });
        for (pair, values) in pairs.iter().enumerate() {
            sums.set(first(pair), values[0]);
            sums.set(first(pair) + 1, values[1]);
        }
    }
}
