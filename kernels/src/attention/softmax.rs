//! The softmax of rows of which one block of scores arrives after the other.

use core::f32::consts::{LN_2, LOG2_E};

use cutlet_device::{LogicalWarp, exp2_approx, fma, log2_approx, rcp_approx};
use cutlet_layout_core::{Fragment, FragmentLayout, each};

use super::mask::ScorePlaces;

/// A number for each of a thread's rows. Four lanes share a row.
pub type PerRow = [f32; ScorePlaces::ROWS];

/// What a thread's rows have so far.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    /// The largest score.
    largest: PerRow,
    /// The sum of this thread's weights.
    sums: PerRow,
    /// What scores are multiplied by, for powers of 2.
    scale: f32,
}

impl Softmax {
    /// Of scores that are to be multiplied by `scale`, which is positive.
    #[inline(always)]
    pub fn new(scale: f32) -> Self {
        Self {
            largest: [f32::NEG_INFINITY; 2],
            sums: [0.0; 2],
            scale: scale * LOG2_E,
        }
    }

    /// The weights of more scores, and what those of earlier scores are to be multiplied by: they were for a smaller
    /// largest score.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn add<V: FragmentLayout>(
        &mut self,
        scores: &Fragment<f32, V>,
    ) -> (Fragment<f32, V>, PerRow) {
        let before = self.largest.map(|largest| largest * self.scale);
        let mut largest = self.largest;
        each::<V>(|v| {
            let of_row = &mut largest[ScorePlaces::row_of(v)];
            *of_row = of_row.max(scores.get(v));
        });
        self.largest = largest.map(LogicalWarp::<4>::max);
        let after = self.shifts();
        let weights = scores
            .map(|v, score| exp2_approx(fma(score, self.scale, -after[ScorePlaces::row_of(v)])));
        let rescale = [0, 1].map(|row: usize| exp2_approx(before[row] - after[row]));
        let mut sums = [0, 1].map(|row: usize| self.sums[row] * rescale[row]);
        each::<V>(|v| sums[ScorePlaces::row_of(v)] += weights.get(v));
        self.sums = sums;
        (weights, rescale)
    }

    /// The exponents of the largest weights. That of a row without keys is 0, so that −∞ is not subtracted from −∞.
    #[inline(always)]
    fn shifts(&self) -> PerRow {
        self.largest
            .map(|largest| match largest == f32::NEG_INFINITY {
                true => 0.0,
                false => largest * self.scale,
            })
    }

    /// What the outputs of the rows are to be multiplied by, and the natural logarithms of the sums of `e^score`.
    /// `sink` is the score of a key more, which has no value, or −∞. Rows without keys have the factor 0.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn finish(&self, sink: f32) -> (PerRow, PerRow) {
        let (sums, shifts) = (self.sums.map(LogicalWarp::<4>::sum), self.shifts());
        let sink = sink * LOG2_E;
        let largest = [0, 1].map(|row: usize| match self.largest[row] == f32::NEG_INFINITY {
            true => sink,
            false => shifts[row].max(sink),
        });
        let weight = |exponent: f32, largest: f32| match exponent == f32::NEG_INFINITY {
            true => 0.0,
            false => exp2_approx(exponent - largest),
        };
        let rescale = [0, 1].map(|row: usize| match sums[row] == 0.0 {
            true => 0.0,
            false => exp2_approx(shifts[row] - largest[row]),
        });
        let all = [0, 1].map(|row: usize| sums[row] * rescale[row] + weight(sink, largest[row]));
        let factors = [0, 1].map(|row: usize| match sums[row] == 0.0 {
            true => 0.0,
            false => rescale[row] * rcp_approx(all[row]),
        });
        let logarithms = [0, 1].map(|row: usize| match all[row] == 0.0 {
            true => f32::NEG_INFINITY,
            false => (largest[row] + log2_approx(all[row])) * LN_2,
        });
        (factors, logarithms)
    }
}

/// The output of rows whose sums gave these factors. Those with the factor 0 become 0, whatever the values are.
#[inline(always)]
pub(super) fn normalised<V: FragmentLayout>(
    values: &Fragment<f32, V>,
    factors: PerRow,
) -> Fragment<f32, V> {
    values.map(|v, value| match factors[ScorePlaces::row_of(v)] {
        0.0 => 0.0,
        factor => value * factor,
    })
}
