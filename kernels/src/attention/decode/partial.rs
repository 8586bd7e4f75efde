//! Partial outputs: what attention to some of the keys makes of a row, and how they become the output of all keys.

use cutlet_device::{exp_approx, ln_approx, rcp_approx};
use cutlet_layout_core::{Fragment, FragmentLayout};

/// A thread's part of a row, in blocks of features: the sum of partial outputs, weighted relative to the largest
/// logarithm.
#[derive(Clone, Copy)]
pub(super) struct RowSum<V: FragmentLayout, const BLOCKS: usize> {
    values: [Fragment<f32, V>; BLOCKS],
    sum: f32,
    largest: f32,
}

impl<V: FragmentLayout, const BLOCKS: usize> RowSum<V, BLOCKS> {
    /// Of no keys.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            values: [Fragment::filled(0.0); BLOCKS],
            sum: 0.0,
            largest: f32::NEG_INFINITY,
        }
    }

    /// Adds the output of some keys, whose sum of `e^score` has this logarithm.
    #[inline(always)]
    pub fn add(&mut self, logarithm: f32, part: impl Fn(usize) -> Fragment<f32, V>) {
        let [before, of_part] = self.add_weight(logarithm);
        for (block, values) in self.values.iter_mut().enumerate() {
            *values = values.zip(&part(block), |_, sum, part| sum * before + part * of_part);
        }
    }

    /// Adds a key without a value, which has this score.
    #[inline(always)]
    pub fn add_sink(&mut self, score: f32) {
        let [before, _] = self.add_weight(score);
        for values in &mut self.values {
            *values = values.map(|_, sum| sum * before);
        }
    }

    /// Adds to the sum of weights. Returns what the values before and those of the part are to be multiplied by.
    #[inline(always)]
    fn add_weight(&mut self, logarithm: f32) -> [f32; 2] {
        let largest = self.largest.max(logarithm);
        // Without keys, −∞ is not subtracted from −∞.
        let shift = largest.max(f32::MIN);
        let weights = [self.largest, logarithm].map(|of| exp_approx(of - shift));
        self.sum = self.sum * weights[0] + weights[1];
        self.largest = largest;
        weights
    }

    /// The logarithm of the sum of `e^score`.
    #[inline(always)]
    pub fn logarithm(&self) -> f32 {
        self.largest + ln_approx(self.sum)
    }

    /// The output, in blocks of features. It is 0 without keys.
    #[inline(always)]
    pub fn output(&self) -> [Fragment<f32, V>; BLOCKS] {
        let factor = match self.sum == 0.0 {
            true => 0.0,
            false => rcp_approx(self.sum),
        };
        self.values.map(|values| values.map(|_, sum| sum * factor))
    }
}
