//! How far a result is from its f64 reference.

use serde::Serialize;

/// The distance of a result from its reference over the entries that were compared.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Deviation {
    /// ‖found − reference‖ / ‖scale‖, where the scale is mostly the reference.
    pub relative: f64,
    /// The largest |found − reference|.
    pub max: f64,
    /// Entries compared.
    pub entries: usize,
    /// Entries that are no numbers where the reference is one.
    pub not_numbers: usize,
    /// Entries that are infinite or NaN, as their references are.
    pub rightly_none: usize,
}

/// A found entry, its reference, and what the error of the entry is relative to.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub found: f64,
    pub reference: f64,
    pub scale: f64,
}

impl Deviation {
    /// The distance over pairs of a found entry and its reference.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let entries = pairs.into_iter().map(|(found, reference)| Entry {
            found,
            reference,
            scale: reference.abs(),
        });
        Self::of_entries(entries)
    }

    /// The distance over entries that say themselves what their errors are relative to.
    pub fn of_entries(entries: impl IntoIterator<Item = Entry>) -> Self {
        let (mut error, mut norm) = (0.0, 0.0);
        let mut deviation = Deviation {
            relative: 0.0,
            max: 0.0,
            entries: 0,
            not_numbers: 0,
            rightly_none: 0,
        };
        for entry in entries {
            let Entry {
                found,
                reference,
                scale,
            } = entry;
            deviation.entries += 1;
            if found == reference || (found.is_nan() && reference.is_nan()) {
                if scale.is_finite() {
                    norm += scale * scale;
                }
                deviation.rightly_none += usize::from(!found.is_finite());
                continue;
            }
            if !found.is_finite() {
                deviation.not_numbers += 1;
                continue;
            }
            let difference = (found - reference).abs();
            error += difference * difference;
            norm += scale * scale;
            deviation.max = deviation.max.max(difference);
        }
        // Against a scale of zeros, the error is absolute.
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
    use super::{Deviation, Entry};

    #[test]
    fn distance_is_relative_to_the_reference() {
        let deviation = Deviation::of([(3.0, 3.0), (4.5, 4.0)]);
        assert_eq!(deviation.relative, 0.1);
        assert_eq!(deviation.max, 0.5);
        assert!(deviation.within(0.1) && !deviation.within(0.09));
    }

    #[test]
    fn a_sum_that_cancels_is_measured_by_its_terms() {
        let entry = |found, scale| Entry {
            found,
            reference: 1e-3,
            scale,
        };
        assert!(!Deviation::of_entries([entry(1.1e-3, 1e-3)]).within(0.01));
        assert!(Deviation::of_entries([entry(1.1e-3, 1.0)]).within(0.01));
    }

    #[test]
    fn no_number_is_right_where_the_reference_is_none() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let deviation = Deviation::of([(nan, nan), (infinity, infinity), (1.0, 1.0)]);
        assert!(deviation.within(0.0));
        assert_eq!((deviation.not_numbers, deviation.rightly_none), (0, 2));
        for wrong in [
            (nan, infinity),
            (infinity, -infinity),
            (1.0, nan),
            (1.0, infinity),
        ] {
            assert!(!Deviation::of([wrong, (1.0, 1.0)]).within(1.0), "{wrong:?}");
        }
    }

    #[test]
    fn a_nan_is_not_within() {
        let deviation = Deviation::of([(f64::NAN, 1.0), (1.0, 1.0)]);
        assert_eq!(deviation.not_numbers, 1);
        let in_words = "1 of 2 entries are no numbers";
        assert_eq!(deviation.no_numbers().as_deref(), Some(in_words));
        assert!(!deviation.within(f64::INFINITY));
        assert_eq!(Deviation::of([(1.0, 1.0)]).no_numbers(), None);
    }
}
