//! Epilogue operands: what an epilogue reads for a thread's rows and columns while their accumulators are computed.

use core::array;

use cutlet_layout_core::{Coord, Fragment, FragmentLayout};

use super::{Epilogue, Pair};

/// Columns whose accumulators the epilogue is applied to at a time.
pub(in crate::gemm) const COLUMNS: usize = 32;
/// Groups of 8 columns in [`COLUMNS`]. A thread has a pair of neighbours in each group, in both of its rows.
const GROUPS: usize = COLUMNS / 8;
/// Groups of the widest tile, which has 256 columns.
const MOST_GROUPS: usize = 32;

/// What the epilogue `Epi` reads for a thread's two rows, and for its pair of columns in each group.
///
/// All reads overlap the mainloop. Reads for the next subtile, started in the epilogue of this one, would come late: a
/// subtile takes less time than memory.
#[derive(Clone, Copy)]
pub struct EpilogueOperands<Epi: Epilogue> {
    rows: [Epi::Row; 2],
    columns: [Epi::Columns; MOST_GROUPS],
}

impl<Epi: Epilogue> EpilogueOperands<Epi> {
    /// Whether the epilogue reads nothing.
    pub const ARE_NONE: bool = size_of::<Self>() == 0;

    /// The operands of an epilogue that reads nothing.
    #[inline(always)]
    pub(in crate::gemm) fn none() -> Self {
        Self {
            rows: Default::default(),
            columns: [Epi::Columns::default(); MOST_GROUPS],
        }
    }

    /// Reads the operands for a tile of `groups` groups. The thread's value `v` is at `at(v)`.
    #[inline(always)]
    pub(in crate::gemm) fn read(epilogue: Epi, groups: usize, at: impl Fn(usize) -> Coord) -> Self {
        let of_group = |group: usize| match group < groups {
            true => epilogue.columns(at(4 * group)[1]),
            false => Epi::Columns::default(),
        };
        Self {
            rows: array::from_fn(|row| epilogue.row(at(2 * row)[0])),
            columns: match const { size_of::<Epi::Columns>() <= 4 } {
                true => array::from_fn(of_group),
                // Of larger operands, the compiler leaves `array::from_fn` as a call.
                false => {
                    let mut columns = [Epi::Columns::default(); MOST_GROUPS];
                    for (group, columns) in columns.iter_mut().enumerate() {
                        *columns = of_group(group);
                    }
                    columns
                }
            },
        }
    }

    /// Applies the epilogue to the accumulators of the `nth` [`COLUMNS`] columns. `nth` is a constant once loops are
    /// unrolled.
    #[inline(always)]
    pub(in crate::gemm) fn apply<L: FragmentLayout>(
        &self,
        epilogue: Epi,
        accumulators: &mut Fragment<Epi::Acc, L>,
        nth: usize,
        at: impl Fn(usize) -> Coord,
    ) {
        let group = |pair: usize| GROUPS * nth + pair / 2;
        let first = |pair: usize| 4 * group(pair) + 2 * (pair % 2);
        let mut pairs = [[Epi::Acc::default(); 2]; 2 * GROUPS];
        for (pair, values) in pairs.iter_mut().enumerate() {
            *values = [
                accumulators.get(first(pair)),
                accumulators.get(first(pair) + 1),
            ];
        }
        epilogue.apply_pairs(&mut pairs, |pair| Pair {
            at: at(first(pair)),
            row: self.rows[pair % 2],
            columns: self.columns[group(pair)],
        });
        for (pair, values) in pairs.iter().enumerate() {
            accumulators.set(first(pair), values[0]);
            accumulators.set(first(pair) + 1, values[1]);
        }
    }
}
