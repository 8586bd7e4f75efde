//! A consumer's scores of a block of keys.

use cutlet_device::MmaInstruction;
use cutlet_device::sm90::Accumulator;
use cutlet_layout_core::Fragment;

use super::config::Config;
use crate::attention::score_mod::ScoreMod;

pub(super) use crate::attention::scores::ScoresOfRows;

/// Scores under way.
pub(super) type Scores<C> = Accumulator<<C as Config>::Scores>;
/// A thread's scores of a block of keys.
type Block<C> = Fragment<f32, <<C as Config>::Scores as MmaInstruction>::Values>;

impl<M: ScoreMod> ScoresOfRows<'_, M> {
    /// The scores of a block of keys for the softmax: modified, and masked if `MASKED`.
    #[inline(always)]
    pub(super) fn finish<C: Config, const MASKED: bool>(
        &self,
        scores: &Block<C>,
        block: u32,
    ) -> Block<C> {
        self.of_keys(scores, (block * C::KEYS as u32) as i32, MASKED)
    }
}
