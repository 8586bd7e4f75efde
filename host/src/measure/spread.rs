//! Medians, spreads and verdicts over the rounds of a measurement.

/// A figure over the rounds of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// The spread of at least one figure.
    pub fn of(figures: &[f64]) -> Spread {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        Spread {
            median: median(&sorted),
            min: sorted.first().copied().unwrap_or(f64::NAN),
            max: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }

    /// The spread of figures that are each a number of times smaller.
    pub fn over(self, times: f64) -> Spread {
        Spread {
            median: self.median / times,
            min: self.min / times,
            max: self.max / times,
        }
    }

    /// Half the distance of the extremes, as a fraction of the median.
    pub fn relative(&self) -> f64 {
        (self.max - self.min) / (2.0 * self.median)
    }

    /// Whether `figure` lies between the extremes.
    pub fn contains(&self, figure: f64) -> bool {
        (self.min..=self.max).contains(&figure)
    }

    /// Whether a ratio of speeds, taken round by round, is a gain: faster in every round, and by more than 1 % in the
    /// median.
    pub fn is_gain(&self) -> bool {
        Verdict::of(self) == Verdict::Faster && self.median > LEAST_GAIN
    }

    /// The ratio of two contestants' times, round by round.
    pub fn of_ratio(over: &[f64], under: &[f64]) -> Spread {
        let pairs = over.iter().zip(under);
        let ratios: Vec<f64> = pairs.map(|(over, under)| over / under).collect();
        Spread::of(&ratios)
    }

    /// Whether the two ranges do not overlap.
    pub fn apart_from(&self, other: &Spread) -> bool {
        self.max < other.min || other.max < self.min
    }
}

/// The median of sorted figures; NaN if there is none.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}

/// A contestant must be faster than the one that is taken without it by this factor. The fastest of many seems a little
/// faster than it is.
const LEAST_GAIN: f64 = 1.01;

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Faster in every round.
    Faster,
    /// 1 lies within the spread of the rounds.
    Tie,
    /// Slower in every round.
    Slower,
}

impl Verdict {
    /// The verdict of a ratio of speeds, taken round by round.
    pub fn of(ratio: &Spread) -> Verdict {
        if ratio.contains(1.0) {
            Verdict::Tie
        } else if ratio.median > 1.0 {
            Verdict::Faster
        } else {
            Verdict::Slower
        }
    }

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Tie => "tie",
            Verdict::Slower => "slower",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_odd_and_even_counts() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn a_ratio_whose_rounds_lie_on_both_sides_of_one_is_a_tie() {
        assert_eq!(Verdict::of(&Spread::of(&[0.99, 1.02, 1.03])), Verdict::Tie);
        assert_eq!(
            Verdict::of(&Spread::of(&[1.01, 1.02, 1.03])),
            Verdict::Faster
        );
        assert_eq!(
            Verdict::of(&Spread::of(&[0.91, 0.92, 0.93])),
            Verdict::Slower
        );
    }

    #[test]
    fn a_gain_is_beyond_the_noise_and_above_one_per_cent() {
        for (over, is_gain) in [
            ([1.02, 1.03, 1.04], true),
            ([1.02, 1.03, 0.99], false),
            ([1.004, 1.005, 1.006], false),
            ([0.98, 0.97, 0.96], false),
        ] {
            let ratio = Spread::of_ratio(&over, &[1.0; 3]);
            assert_eq!(ratio.is_gain(), is_gain, "{over:?}");
        }
    }

    #[test]
    fn spreads_are_apart_when_no_round_of_one_is_within_the_other() {
        let (low, high) = (Spread::of(&[1.0, 1.1]), Spread::of(&[1.2, 1.3]));
        assert!(low.apart_from(&high) && high.apart_from(&low));
        assert!(!low.apart_from(&Spread::of(&[1.05, 1.3])));
    }
}
