//! Rows of a work tile: queries of a head, where they lie, and the logarithms that are stored of them.

use cutlet_layout_core::each;

use super::args::OutputArgs;
use super::mask::{RowsOfThread, ScorePlaces};
use super::scheduler::{Sequence, WorkTile};
use super::softmax::PerRow;

/// Rows of a work tile, which a warp or a warpgroup has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Their sequence.
    pub sequence: Sequence,
    /// Their tile.
    pub tile: WorkTile,
    /// The first row's query.
    pub first_query: i32,
}

impl Rows {
    /// Elements of the queries, or of what has their rows, before those of the sequence and the head, by these strides.
    #[inline(always)]
    pub fn offset(&self, strides: [i64; 3]) -> i64 {
        self.sequence
            .offset(self.sequence.first_query, self.tile.head, strides)
    }

    /// Stores the logarithms of the rows' sums, if they are asked for.
    ///
    /// # Safety
    /// They must have these rows.
    #[inline(always)]
    pub unsafe fn store_log_sum_exp(
        &self,
        args: &OutputArgs,
        logarithms: PerRow,
        places: ScorePlaces,
    ) {
        if args.writes_log_sum_exp == 0 || places.column != 0 {
            return;
        }
        let to = args
            .log_sum_exp
            .offset(self.offset(args.log_sum_exp_strides));
        each::<RowsOfThread>(|nth| {
            let query = self.first_query + places.row_below(nth);
            if query < self.sequence.queries {
                let index = i64::from(query) * args.log_sum_exp_strides[1];
                // SAFETY: as promised by the caller.
                unsafe { to.store(index, logarithms[nth]) };
            }
        });
    }
}
