//! What a kernel family implements to be measured.

use serde::{Serialize, Serializer};

use super::cells::Cells;
use crate::measure::case::Case;
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::setting::Setting;

/// A kernel family: it reads its problems from suites and sets them up on a device.
pub trait Family {
    /// One problem of a suite.
    type Problem;

    /// The problems of one entry of a suite, in these element types only.
    ///
    /// # Errors
    /// What is wrong with the entry.
    fn problems(&self, entry: toml::Value, dtypes: &[Dtype]) -> Result<Vec<Self::Problem>, String>;

    /// How results name the problem, and how much work it is.
    fn row(&self, problem: &Self::Problem) -> Row;

    /// The problem whose [`Row::columns`] these are, without its label.
    ///
    /// # Errors
    /// What is wrong with the cells.
    fn problem(&self, cells: &Cells) -> Result<Self::Problem, String>;

    /// Sets the problem up, or returns the reason why it is not measured here.
    ///
    /// # Errors
    /// If the device or a library fails.
    fn set_up<'a>(&self, problem: &Self::Problem, setting: &'a Setting) -> Result<SetUp<'a>>;
}

/// A problem as results name it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Unique in a run, and the same in every run: `gemm bf16 4096x4096x4096`.
    pub id: String,
    /// The kernel family.
    pub family: &'static str,
    /// The name that the suite gives the problem.
    pub label: String,
    /// The element type.
    pub dtype: String,
    /// The problem in a table of its family and type: `4096 4096 4096`.
    pub shape: String,
    /// The columns of results that describe the problem, with their texts.
    #[serde(rename = "problem", serialize_with = "as_map")]
    pub columns: Vec<(&'static str, String)>,
    /// The line of a plot that the problem belongs to: for a gather, the distribution of its indices.
    #[serde(skip)]
    pub series: String,
    /// The unit of its speed.
    pub unit: Unit,
    /// Operations: twice the multiply-adds; 0 where data is only moved.
    pub operations: f64,
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: f64,
    /// Left out of means and extremes, because the baseline is broken there.
    pub apart: bool,
}

/// Columns as a map, in which whole numbers are numbers.
fn as_map<S: Serializer>(columns: &[(&str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Cell<'a> {
        Number(u64),
        Text(&'a str),
    }

    serializer.collect_map(columns.iter().map(|(column, text)| {
        let cell = text.parse().map_or(Cell::Text(text), Cell::Number);
        (column, cell)
    }))
}

impl Row {
    /// The speed of a run that takes `microseconds`, in the row's unit.
    pub fn speed(&self, microseconds: f64) -> f64 {
        match self.unit {
            Unit::Teraflops => self.operations / microseconds / 1e6,
            Unit::Gigabytes => self.bytes / microseconds / 1e3,
        }
    }
}

/// The unit of a speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// 10¹² operations a second.
    #[serde(rename = "TFLOP/s")]
    Teraflops,
    /// 10⁹ bytes a second, read and written.
    #[serde(rename = "GB/s")]
    Gigabytes,
}

impl Unit {
    /// As results and tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Teraflops => "TFLOP/s",
            Unit::Gigabytes => "GB/s",
        }
    }
}

/// The result of setting up a problem.
pub enum SetUp<'a> {
    /// The problem can be measured.
    Ready(Box<dyn Case + 'a>),
    /// The problem cannot be measured here, for this reason.
    Skipped(String),
}
