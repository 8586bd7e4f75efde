//! A consumer's scores: what becomes of them before the softmax.

use cutlet_device::MmaInstruction;
use cutlet_device::sm90::Accumulator;
use cutlet_layout_core::Fragment;

use super::config::Config;
use super::store::Rows;
use crate::attention::args::Args;
use crate::attention::mask::{ScorePlaces, VisibleKeys, mask};
use crate::attention::score_mod::{ScoreMod, ScorePlace};

/// Scores under way.
pub(super) type Scores<C> = Accumulator<<C as Config>::Scores>;
/// A thread's scores of a block of keys.
type Block<C> = Fragment<f32, <<C as Config>::Scores as MmaInstruction>::Values>;

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
    /// Of these rows of a consumer.
    #[inline(always)]
    pub fn new(args: &Args, score_mod: &'a M, rows: Rows, places: ScorePlaces) -> Self {
        let queries = [0, 1].map(|nth| rows.first_query() + places.row_below(nth));
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

    /// The scores of a block of keys for the softmax: modified, and masked if `MASKED`.
    #[inline(always)]
    pub fn finish<C: Config, const MASKED: bool>(&self, scores: &Block<C>, block: u32) -> Block<C> {
        let first_key = (block * C::KEYS as u32) as i32;
        let scores = match M::IS_IDENTITY {
            true => *scores,
            false => self.modified::<C>(scores, first_key),
        };
        match MASKED {
            true => mask(&scores, self.places, self.visible, first_key),
            false => scores,
        }
    }

    /// The scores after the function of scores.
    #[inline(always)]
    fn modified<C: Config>(&self, scores: &Block<C>, first_key: i32) -> Block<C> {
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
