//! The result of `cutlet tune`: what was found out about each problem.

use std::fmt;

use cutlet::{DeviceRates, ProblemKey};
use serde::Serialize;

use super::verdict::{Kernel, Measured, title};
use crate::backend::RanOn;
use crate::measure::statistics::Spread;

/// The result of the command.
#[derive(Serialize)]
pub struct Report {
    pub device: RanOn,
    /// The tuning file.
    pub file: String,
    pub rates: Option<Rates>,
    pub problems: Vec<ProblemReport>,
    /// How many problems came to which end.
    #[serde(flatten)]
    pub counts: Counts,
    /// Entries that the file has now.
    pub entries: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            measured,
            written,
            left_out,
            failed,
        } = self.counts;
        write!(
            f,
            "{measured} problems measured, {written} gains written, {left_out} left out, {failed} failed; {} has {} \
             entries",
            self.file, self.entries
        )
    }
}

/// How many problems came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    pub measured: usize,
    /// Of those that were measured, how many have an entry.
    pub written: usize,
    pub left_out: usize,
    pub failed: usize,
}

impl Counts {
    /// Those of some problems.
    pub fn of(problems: &[ProblemReport]) -> Counts {
        let mut counts = Counts::default();
        for problem in problems {
            match &problem.outcome {
                Outcome::Measured { written, .. } => {
                    counts.measured += 1;
                    counts.written += usize::from(*written);
                }
                Outcome::LeftOut { .. } => counts.left_out += 1,
                Outcome::Failed { .. } => counts.failed += 1,
            }
        }
        counts
    }
}

/// The measured rates of the device.
#[derive(Serialize)]
pub struct Rates {
    memory_gigabytes: Option<f64>,
    l2_gigabytes: Option<f64>,
    loaded_megahertz: Option<f64>,
}

impl Rates {
    pub fn new(rates: &DeviceRates) -> Rates {
        Rates {
            memory_gigabytes: rates.memory_gigabytes,
            l2_gigabytes: rates.l2_gigabytes,
            loaded_megahertz: rates.loaded_megahertz,
        }
    }
}

/// What was found out about a problem.
#[derive(Serialize)]
pub struct ProblemReport {
    /// The problem in a few words.
    pub problem: String,
    /// The key in a tuning file.
    pub key: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The end that a problem came to.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Measured {
        estimated: Kernel,
        fastest: Kernel,
        /// The estimated kernel's time over the fastest one's.
        gain: Spread,
        /// Whether the file has the fastest kernel, because it is faster beyond the noise.
        written: bool,
    },
    LeftOut {
        reason: String,
    },
    Failed {
        error: String,
    },
}

impl ProblemReport {
    /// What came of the problem of this key.
    pub fn of(key: &ProblemKey, outcome: Outcome) -> ProblemReport {
        ProblemReport {
            problem: title(key),
            key: key.to_string(),
            outcome,
        }
    }
}

impl Outcome {
    /// That of a problem that was measured.
    pub fn measured(measured: &Measured) -> Outcome {
        Outcome::Measured {
            estimated: measured.estimated.clone(),
            fastest: measured.fastest.clone(),
            gain: measured.gain,
            written: measured.is_gain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_counted_by_their_ends() {
        let problem = |outcome| ProblemReport {
            problem: String::new(),
            key: String::new(),
            outcome,
        };
        let measured = |written| Outcome::Measured {
            estimated: Kernel::new("a", 2.0),
            fastest: Kernel::new("b", 1.0),
            gain: Spread::of(&[2.0]),
            written,
        };
        let text = || String::from("why");
        let problems = [
            measured(true),
            measured(false),
            Outcome::LeftOut { reason: text() },
            Outcome::Failed { error: text() },
        ];
        let counts = Counts::of(&problems.map(problem));
        let expected = Counts {
            measured: 2,
            written: 1,
            left_out: 1,
            failed: 1,
        };
        assert_eq!(counts, expected);
    }
}
