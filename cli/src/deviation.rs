//! How far a result is from its f64 reference.

use serde::Serialize;

/// The distance of a result from its reference over the entries that were compared.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Deviation {
    /// ‖found − reference‖ / ‖reference‖.
    pub relative: f64,
    /// The largest |found − reference|.
    pub max: f64,
    /// Entries compared.
    pub entries: usize,
    /// Entries that are no numbers.
    pub not_numbers: usize,
}

impl Deviation {
    /// The distance over pairs of a found entry and its reference.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (mut error, mut norm) = (0.0, 0.0);
        let mut deviation = Deviation {
            relative: 0.0,
            max: 0.0,
            entries: 0,
            not_numbers: 0,
        };
        for (found, reference) in pairs {
            deviation.entries += 1;
            if !found.is_finite() {
                deviation.not_numbers += 1;
                continue;
            }
            let difference = (found - reference).abs();
            error += difference * difference;
            norm += reference * reference;
            deviation.max = deviation.max.max(difference);
        }
        // Against a reference of zeros, the error is absolute.
        deviation.relative = if norm > 0.0 {
            (error / norm).sqrt()
        } else {
            error.sqrt()
        };
        deviation
    }

    /// A message about entries that are no numbers; `None` if all are numbers.
    pub fn no_numbers(&self) -> Option<String> {
        let Deviation {
            entries,
            not_numbers,
            ..
        } = self;
        (*not_numbers > 0).then(|| format!("{not_numbers} of {entries} entries are no numbers"))
    }

    /// Whether every entry is a number and the relative distance is at most `tolerance`.
    pub fn within(&self, tolerance: f64) -> bool {
        self.not_numbers == 0 && self.relative <= tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::Deviation;

    #[test]
    fn distance_is_relative_to_the_reference() {
        let deviation = Deviation::of([(3.0, 3.0), (4.5, 4.0)]);
        assert_eq!(deviation.relative, 0.1);
        assert_eq!(deviation.max, 0.5);
        assert!(deviation.within(0.1) && !deviation.within(0.09));
    }

    #[test]
    fn a_nan_is_never_within() {
        let deviation = Deviation::of([(f64::NAN, 1.0), (1.0, 1.0)]);
        assert_eq!(deviation.not_numbers, 1);
        let in_words = "1 of 2 entries are no numbers";
        assert_eq!(deviation.no_numbers().as_deref(), Some(in_words));
        assert!(!deviation.within(f64::INFINITY));
        assert_eq!(Deviation::of([(1.0, 1.0)]).no_numbers(), None);
    }
}
