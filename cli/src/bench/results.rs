//! The results of a run.

mod file;
mod ratio;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::family::Row;
use super::machine::Machine;
use crate::measure::case::Role;
use crate::measure::check::Distance;
use crate::measure::positive::positive;
use crate::measure::protocol::Protocol;
use crate::measure::statistics::{Spread, Verdict, geometric_mean};
use crate::measure::telemetry::Telemetry;
use crate::units;

/// The version of the format of results. A change that other versions would misread raises it.
pub const SCHEMA: u32 = 2;

/// The name of the results in a run's folder.
pub const FILE: &str = "results.csv";

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The version of the format: [`SCHEMA`].
    pub schema: u32,
    /// The program's version.
    pub program: String,
    /// The command that made the run.
    pub command: String,
    /// When the run began, in UTC.
    pub began: String,
    /// How long the run took, in seconds.
    #[serde(deserialize_with = "positive")]
    pub seconds: f64,
    /// How many rows the whole run has.
    pub planned_rows: usize,
    /// The suites of the run.
    pub suites: Vec<SuiteName>,
    /// The machine.
    pub machine: Machine,
    /// How problems were timed.
    pub protocol: Protocol,
    /// One entry for each problem, in the suites' order.
    #[serde(skip)]
    pub rows: Vec<RowResult>,
}

/// A suite of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuiteName {
    /// Its name or path.
    pub name: String,
    /// Its purpose.
    pub about: String,
}

/// The result of a problem.
#[derive(Clone, Debug, Serialize)]
pub struct RowResult {
    /// The suite that has the problem.
    pub suite: String,
    /// The problem.
    #[serde(flatten)]
    pub row: Row,
    /// The outcome of measuring it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The outcome of measuring a problem.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// The output is right, and was timed.
    Measured(Box<Measured>),
    /// The output is wrong: there is no speed.
    Wrong {
        /// What is wrong.
        found: String,
    },
    /// The problem was not measured here.
    Skipped {
        /// Why.
        reason: String,
    },
    /// Something failed: there is no speed.
    Failed {
        /// What failed.
        error: String,
    },
}

/// The figures of a problem.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The contestants that were timed: cutlet, the baseline, the baseline library's default, instances and alternatives.
    pub contestants: Vec<Figures>,
    /// cutlet's speed over the baseline's, round by round.
    pub ratio: Option<Spread>,
    /// The same ratio, power-settled.
    pub sustained_ratio: Option<Spread>,
    /// Contestants that did not run or were wrong, with the reason.
    pub passed_over: Vec<String>,
    /// Clock and power of the card while the row was measured.
    pub telemetry: Option<Telemetry>,
}

/// The figures of a contestant.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// `cutlet`, `cuBLASLt algorithm 3`.
    pub name: String,
    /// Its role in the comparison.
    pub role: Role,
    /// Whether it is the baseline library's default.
    pub default: bool,
    /// Microseconds a run.
    pub microseconds: Spread,
    /// The median's speed, in the row's unit.
    pub speed: f64,
    /// The median of the power-settled microseconds a run.
    pub sustained_microseconds: Option<f64>,
    /// How far its output is from the reference, where that is known.
    pub error: Option<Distance>,
}

impl Measured {
    /// cutlet's figures.
    pub fn cutlet(&self) -> Option<&Figures> {
        let mut contestants = self.contestants.iter();
        contestants.find(|figures| figures.role == Role::Cutlet)
    }

    /// The baseline's figures: those of the fastest candidate.
    pub fn baseline(&self) -> Option<&Figures> {
        let contestants = self.contestants.iter();
        contestants
            .filter(|figures| figures.role == Role::Baseline)
            .min_by(|a, b| a.microseconds.median.total_cmp(&b.microseconds.median))
    }

    /// The figures of the baseline library's default.
    pub fn library_default(&self) -> Option<&Figures> {
        self.contestants.iter().find(|figures| figures.default)
    }

    /// The verdict of the ratio.
    pub fn verdict(&self) -> Option<Verdict> {
        self.ratio.as_ref().map(Verdict::of)
    }
}

impl RowResult {
    /// The figures, if there are any.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    /// Whether the row is wrong or failed.
    pub fn is_bad(&self) -> bool {
        matches!(self.outcome, Outcome::Wrong { .. } | Outcome::Failed { .. })
    }
}

/// How cutlet compares with the baseline over rows of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// `gemm bf16`.
    pub kind: String,
    /// Rows with a ratio, without those shown apart.
    pub rows: usize,
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// The smallest ratio.
    pub worst: AtShape,
    /// Rows that are faster.
    pub faster: usize,
    /// Rows that are neither faster nor slower beyond the noise.
    pub tied: usize,
    /// Rows that are slower.
    pub slower: usize,
    /// Ratios that are shown apart.
    pub apart: Vec<AtShape>,
}

/// A ratio at a shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtShape {
    /// The shape.
    pub shape: String,
    /// cutlet's speed over the baseline's.
    pub ratio: f64,
}

impl AtShape {
    fn new(row: &Row, ratio: &Spread) -> AtShape {
        AtShape {
            shape: row.shape.clone(),
            ratio: ratio.median,
        }
    }
}

impl fmt::Display for AtShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x at {}", units::ratio(self.ratio), self.shape)
    }
}

impl Results {
    /// How many rows there are of how many, if the run was cut short: `12 of 24 rows`.
    pub fn cut_short(&self) -> Option<String> {
        let (rows, planned) = (self.rows.len(), self.planned_rows);
        (rows < planned).then(|| format!("{rows} of {planned} rows"))
    }

    /// The families and element types of the rows, in the rows' order.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        for RowResult { row, .. } in &self.rows {
            let kind = kind(row);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// How cutlet compares with the baseline, for each family and element type.
    pub fn summaries(&self) -> Vec<Summary> {
        let kinds = self.kinds().into_iter();
        kinds.filter_map(|kind| self.summary(kind)).collect()
    }

    fn summary(&self, of: String) -> Option<Summary> {
        let compared = self.rows.iter().filter(|result| kind(&result.row) == of);
        let compared = compared.filter_map(|result| {
            let measured = result.measured()?;
            Some((&result.row, measured.ratio?, measured.verdict()?))
        });
        let (apart, counted): (Vec<_>, Vec<_>) = compared.partition(|(row, ..)| row.apart);
        let ratios: Vec<f64> = counted.iter().map(|(_, ratio, _)| ratio.median).collect();
        let worst = counted
            .iter()
            .min_by(|(_, a, _), (_, b, _)| a.median.total_cmp(&b.median));
        let count = |of: Verdict| {
            counted
                .iter()
                .filter(|(.., verdict)| *verdict == of)
                .count()
        };
        Some(Summary {
            rows: counted.len(),
            mean: geometric_mean(&ratios)?,
            worst: worst.map(|(row, ratio, _)| AtShape::new(row, ratio))?,
            faster: count(Verdict::Faster),
            tied: count(Verdict::Tie),
            slower: count(Verdict::Slower),
            apart: apart
                .iter()
                .map(|(row, ratio, _)| AtShape::new(row, ratio))
                .collect(),
            kind: of,
        })
    }
}

/// The family and element type of a row, for the tables and plots of such rows.
pub fn kind(row: &Row) -> String {
    match row.family {
        "gather" => row.family.to_string(),
        family => format!("{family} {}", row.dtype),
    }
}
