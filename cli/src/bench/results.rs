//! `results.json`: everything a run found, in a schema with a version.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::check::Check;
use super::error::{Error, Result};
use super::family::{Role, Row};
use super::machine::Machine;
use super::protocol::Protocol;
use super::statistics::{Spread, Verdict, geometric_mean};
use super::telemetry::Telemetry;

/// The version of the schema; a change that old programs would misread raises it.
pub const SCHEMA: u32 = 1;

/// The file's name in a run's folder.
pub const FILE: &str = "results.json";

/// Everything a run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The schema's version: [`SCHEMA`].
    pub schema: u32,
    /// The program's version.
    pub program: String,
    /// The command that made the run.
    pub command: String,
    /// When it began, in UTC.
    pub began: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Names of the suites, with what they are for.
    pub suites: Vec<SuiteName>,
    /// The machine.
    pub machine: Machine,
    /// How problems were timed.
    pub protocol: Protocol,
    /// How many rows a whole run has; unknown of older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_rows: Option<usize>,
    /// One entry for each problem, in the suites' order.
    pub rows: Vec<RowResult>,
}

/// A suite of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuiteName {
    /// Its name or path.
    pub name: String,
    /// What it is for.
    pub about: String,
}

/// What became of a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowResult {
    /// The problem.
    #[serde(flatten)]
    pub row: Row,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// Right, and timed.
    Measured(Box<Measured>),
    /// Wrong: there is no speed.
    Wrong {
        /// What is wrong.
        check: Box<Check>,
    },
    /// Not measured here.
    Skipped {
        /// Why.
        reason: String,
    },
    /// Something failed: there is no speed.
    Failed {
        /// What.
        error: String,
    },
}

/// The figures of a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Whether the output is right, and how far from the references.
    pub check: Check,
    /// Who was timed: cutlet, the baseline, the baseline library's default, others beside.
    pub contestants: Vec<Figures>,
    /// Speed of cutlet over the baseline's, round by round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Spread>,
    /// The same, power-settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained_ratio: Option<Spread>,
    /// What the ratio comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Runs in each CUDA graph; absent where runs were launched one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_runs: Option<usize>,
    /// Sets of buffers that the runs went through.
    pub sets: usize,
    /// Who was to be timed beside them, but did not run or was wrong, and in what way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
    /// What the card did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

/// The figures of a contestant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// `cutlet`, `cuBLASLt algorithm 3`.
    pub name: String,
    /// Which side it is on.
    pub role: Role,
    /// Whether it is the baseline library's default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// Microseconds a run.
    pub microseconds: Spread,
    /// Of each round.
    pub rounds: Vec<f64>,
    /// The median's speed, in the row's unit.
    pub speed: f64,
    /// Microseconds a run, power-settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained_microseconds: Option<Spread>,
    /// The speed of the power-settled median, in the row's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained_speed: Option<f64>,
}

impl Measured {
    /// cutlet's figures.
    pub fn cutlet(&self) -> Option<&Figures> {
        self.contestants
            .iter()
            .find(|figures| figures.role == Role::Cutlet)
    }

    /// The baseline's: those of the fastest way.
    pub fn baseline(&self) -> Option<&Figures> {
        self.contestants
            .iter()
            .find(|figures| figures.role == Role::Baseline)
    }

    /// Those of the baseline library's default.
    pub fn library_default(&self) -> Option<&Figures> {
        self.contestants.iter().find(|figures| figures.default)
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

    /// Whether it was wrong or failed.
    pub fn is_bad(&self) -> bool {
        matches!(self.outcome, Outcome::Wrong { .. } | Outcome::Failed { .. })
    }
}

/// How cutlet stands against the baseline over rows of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// `gemm bf16`.
    pub kind: String,
    /// Rows with a baseline, those apart left out.
    pub rows: usize,
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// The smallest ratio, and the shape it belongs to.
    pub worst: (f64, String),
    /// Rows faster, tied and slower.
    pub counts: [usize; 3],
    /// Shapes that are shown apart, with their ratios.
    pub apart: Vec<(String, f64)>,
}

impl Results {
    /// Reads the results in a folder, or in a file.
    ///
    /// # Errors
    /// If there is no such file, or it is no such file.
    pub fn read(path: &Path) -> Result<Results> {
        let file = match path.is_dir() {
            true => path.join(FILE),
            false => path.to_path_buf(),
        };
        let doing = || format!("reading results from {}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| Error::file(doing(), error))?;
        let schema = serde_json::from_str::<Version>(&text)
            .map_err(|error| Error::file(doing(), error))?
            .schema;
        if schema != SCHEMA {
            return Err(Error::file(
                doing(),
                format!(
                    "its schema is {schema}, this program knows {SCHEMA}; use the program that wrote it"
                ),
            ));
        }
        serde_json::from_str(&text).map_err(|error| Error::file(doing(), error))
    }

    /// How many rows there are, where the run was cut short: `12 of 24 rows`.
    pub fn cut_short(&self) -> Option<String> {
        let (rows, planned) = (self.rows.len(), self.planned_rows?);
        (rows < planned).then(|| format!("{rows} of {planned} rows"))
    }

    /// The families and element types of the rows, in their order.
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

    /// How cutlet stands against the baseline, for each family and element type.
    pub fn summaries(&self) -> Vec<Summary> {
        let kinds = self.kinds().into_iter();
        kinds.filter_map(|kind| self.summary(kind)).collect()
    }

    fn summary(&self, of: String) -> Option<Summary> {
        let compared = self.rows.iter().filter(|result| kind(&result.row) == of);
        let compared = compared.filter_map(|result| {
            let measured = result.measured()?;
            Some((&result.row, measured.ratio?, measured.verdict?))
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
            worst: worst.map(|(row, ratio, _)| (ratio.median, row.shape.clone()))?,
            counts: [Verdict::Faster, Verdict::Tie, Verdict::Slower].map(count),
            apart: apart
                .iter()
                .map(|(row, ratio, _)| (row.shape.clone(), ratio.median))
                .collect(),
            kind: of,
        })
    }
}

/// The family and element type of a row, as one table or plot shows them.
pub fn kind(row: &Row) -> String {
    match row.family.as_str() {
        "gather" => row.family.clone(),
        family => format!("{family} {}", row.dtype),
    }
}

/// What every version of the schema has.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

#[cfg(test)]
mod tests {
    use super::Protocol;

    #[test]
    fn what_older_results_do_not_say_is_unknown() {
        let older = r#"{"rounds": 7, "sample_milliseconds": 4.0}"#;
        let older: Protocol = serde_json::from_str(older).unwrap();
        assert_eq!(older.choice, None);
        assert_eq!(older.graph_below_microseconds, None);
        assert!(!older.scaled_for_activations);
    }

    #[test]
    fn a_number_that_is_read_is_the_one_that_was_written() {
        let mut numbers = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let number = 10.0 * numbers.f64();
            let written = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&written).unwrap(), number);
        }
    }
}
