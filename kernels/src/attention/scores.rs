//! A thread's scores: what becomes of them before the softmax.

use cutlet_layout_core::{Fragment, FragmentLayout};

use super::args::Args;
use super::mask::{ScorePlaces, VisibleKeys, mask};
use super::rows::Rows;
use super::score_mod::{ScoreMod, ScorePlace};

/// What a thread knows of the rows whose scores it has.
pub(super) struct ScoresOfRows<'a, M> {
    score_mod: &'a M,
    /// The query of each row.
    queries: [i32; ScorePlaces::ROWS],
    /// The keys that each sees.
    visible: [VisibleKeys; ScorePlaces::ROWS],
    places: ScorePlaces,
    rows: Rows,
    scale: f32,
}

impl<'a, M: ScoreMod> ScoresOfRows<'a, M> {
    /// Of these rows.
    #[inline(always)]
    pub fn new(args: &Args, score_mod: &'a M, rows: Rows, places: ScorePlaces) -> Self {
        let queries = [0, 1].map(|nth| rows.first_query + places.row_below(nth));
        Self {
            score_mod,
            queries,
            visible: queries.map(|query| VisibleKeys::of(query, rows.sequence, args.window)),
            places,
            rows,
            scale: args.scale,
        }
    }

    /// What the softmax multiplies scores by.
    #[inline(always)]
    pub fn scale(&self) -> f32 {
        match M::IS_IDENTITY {
            true => self.scale,
            false => 1.0,
        }
    }

    /// The scores of keys from `first_key` on for the softmax: modified, and masked if they `are_masked`.
    #[inline(always)]
    pub fn of_keys<V: FragmentLayout>(
        &self,
        scores: &Fragment<f32, V>,
        first_key: i32,
        are_masked: bool,
    ) -> Fragment<f32, V> {
        let scores = match M::IS_IDENTITY {
            true => *scores,
            false => self.modified(scores, first_key),
        };
        match are_masked {
            true => mask(&scores, self.places, self.visible, first_key),
            false => scores,
        }
    }

    /// The scores after the function of scores.
    #[inline(always)]
    fn modified<V: FragmentLayout>(
        &self,
        scores: &Fragment<f32, V>,
        first_key: i32,
    ) -> Fragment<f32, V> {
        let Rows { sequence, tile, .. } = self.rows;
        let first_key = first_key + self.places.column;
        scores.map(|v, score| {
            let query = self.queries[ScorePlaces::row_of(v)];
            let place = ScorePlace {
                sequence: tile.sequence,
                head: tile.head,
                query,
                key: first_key + ScorePlaces::columns_to(v),
                own_key: query + sequence.keys - sequence.queries,
            };
            self.score_mod.apply(score * self.scale, place)
        })
    }
}
