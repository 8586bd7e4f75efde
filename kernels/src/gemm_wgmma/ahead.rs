//! What an epilogue reads once of a thread's rows and columns, before their sums need it.

use core::array;

use cutlet_layout_core::{Coord, Fragment, StaticLayout};

use super::{Epilogue, Pair};

/// Groups of 8 columns that a piece of 32 has. A thread has a pair of neighbours in each, in both of
/// its rows.
const GROUPS: usize = 4;
/// A thread's values of a piece.
const VALUES: usize = 4 * GROUPS;

/// What the epilogue `Epi` reads of a thread's two rows, and of its columns in a piece.
#[derive(Clone, Copy)]
pub(super) struct Ahead<Epi: Epilogue> {
    rows: [Epi::Row; 2],
    columns: [Epi::Columns; GROUPS],
}

impl<Epi: Epilogue> Ahead<Epi> {
    /// Whether there is nothing to read.
    pub const IS_EMPTY: bool = size_of::<Self>() == 0;

    /// Reads it for the first piece, where value `v` of the thread's is at `at(v)`.
    #[inline(always)]
    pub fn read(epilogue: &Epi, at: impl Fn(usize) -> Coord) -> Self {
        if Self::IS_EMPTY {
            return Self {
                rows: Default::default(),
                columns: Default::default(),
            };
        }
        Self {
            rows: array::from_fn(|row| epilogue.row(at(2 * row)[0])),
            columns: array::from_fn(|group| epilogue.columns(at(4 * group)[1])),
        }
    }

    /// The same rows, and what is read of the columns of another piece.
    #[inline(always)]
    pub fn read_piece(&self, epilogue: &Epi, piece: usize, at: impl Fn(usize) -> Coord) -> Self {
        let columns = array::from_fn(|group| epilogue.columns(at(piece * VALUES + 4 * group)[1]));
        Self { columns, ..*self }
    }

    /// Applies the epilogue to the values of a piece, which is a constant once loops are unrolled.
    #[inline(always)]
    pub fn apply<L: StaticLayout>(
        &self,
        epilogue: &Epi,
        values: &mut Fragment<f32, L>,
        piece: usize,
        at: impl Fn(usize) -> Coord,
    ) {
        let first = |pair: usize| piece * VALUES + 2 * pair;
        let pairs: [_; 2 * GROUPS] = array::from_fn(|pair| Pair {
            sums: [values.get(first(pair)), values.get(first(pair) + 1)],
            at: at(first(pair)),
            row: self.rows[pair % 2],
            columns: self.columns[pair / 2],
        });
        for (pair, new) in epilogue.apply_pairs(pairs).into_iter().enumerate() {
            values.set(first(pair), new[0]);
            values.set(first(pair) + 1, new[1]);
        }
    }
}
