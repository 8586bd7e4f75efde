//! What a kernel family implements to be measured.

use cutlet::Stream;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::dtype::Dtype;
use super::error::Result;
use super::setting::Setting;

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

    /// Sets the problem up, or says why it is not measured here.
    ///
    /// # Errors
    /// If the device or a library fails.
    fn set_up<'a>(&self, problem: &Self::Problem, setting: &'a Setting) -> Result<SetUp<'a>>;
}

/// A problem as results name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Unique in a run, and the same in every run: `gemm bf16 4096x4096x4096`.
    pub id: String,
    /// The kernel family.
    pub family: String,
    /// Where the problem comes from, in the suite's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The element type.
    pub dtype: String,
    /// What tells it from its neighbours in a table: `4096 4096 4096`.
    pub shape: String,
    /// What the problem is among others of its family in a plot: a shape is its own, gathers have
    /// the distribution of their indices.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub series: String,
    /// What speed is counted in.
    pub unit: Unit,
    /// Operations: twice the multiply-adds; 0 where data is only moved.
    pub operations: f64,
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: f64,
    /// Left out of means and extremes, because the baseline is broken there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl Row {
    /// The speed of a run of so many microseconds, in the row's unit.
    pub fn speed(&self, microseconds: f64) -> f64 {
        match self.unit {
            Unit::Teraflops => self.operations / microseconds / 1e6,
            Unit::Gigabytes => self.bytes / microseconds / 1e3,
        }
    }
}

/// What speed is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// 10¹² operations a second.
    #[serde(rename = "TFLOP/s")]
    Teraflops,
    /// 10⁹ bytes a second, read and written.
    #[serde(rename = "GB/s")]
    Gigabytes,
}

impl Unit {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Teraflops => "TFLOP/s",
            Unit::Gigabytes => "GB/s",
        }
    }
}

/// What became of setting up a problem.
pub enum SetUp<'a> {
    /// It can be measured.
    Ready(Box<dyn Case + 'a>),
    /// It cannot, for this reason.
    Skipped(String),
}

/// A problem set up on a device: inputs in several sets, and who solves it.
pub trait Case {
    /// Sets of inputs and outputs; runs go through them in turn, so that no run finds its data in
    /// a cache.
    fn sets(&self) -> usize;

    /// Who solves the problem. At least one baseline, the first of them the library's default.
    fn contestants(&self) -> &[Contestant];

    /// Puts one run of contestant number `contestant` on set number `set` into the stream.
    ///
    /// # Errors
    /// If the launch fails.
    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()>;

    /// What is wrong with contestant number `contestant`'s output of set 0; nothing where all is well.
    ///
    /// # Errors
    /// If the device fails.
    fn fault(&mut self, contestant: usize) -> Result<Option<String>>;

    /// Whether the baseline number `baseline` solves set 0 rightly, and whether cutlet does.
    ///
    /// # Errors
    /// If the device fails.
    fn check(&mut self, baseline: usize) -> Result<Check>;

    /// Overwrites the outputs of the sets that [`recheck`](Self::recheck) looks at, to be called before its runs.
    ///
    /// # Errors
    /// If the device fails.
    fn poison(&mut self) -> Result<()>;

    /// Whether the outputs of the [`rechecked`] sets, which cutlet has just computed in the way that was timed, are
    /// right.
    ///
    /// # Errors
    /// If the device fails.
    fn recheck(&mut self, baseline: usize) -> Result<Check>;
}

/// The sets, of so many, that are compared again after a problem was timed: one in the middle, and the last.
pub fn rechecked(sets: usize) -> impl Iterator<Item = usize> {
    let (middle, last) = (sets / 2, sets - 1);
    (middle < last).then_some(middle).into_iter().chain([last])
}

/// Who solves a problem.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// `cutlet`, `cuBLASLt algorithm 3`.
    pub name: String,
    /// Which side it is on.
    pub role: Role,
}

/// Which side a contestant is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// This library.
    Cutlet,
    /// One of the ways to do it that the fastest is chosen from, as the baseline.
    Baseline,
    /// One of the kernels that this library chooses from, to show how well it does.
    Instance,
    /// A way that is not the same computation, shown beside: the fastest of these is chosen too.
    Aside,
}

impl Role {
    /// Whether it is this library's: one that does not run or is wrong is a fault of the row, where others are passed
    /// over.
    pub fn is_ours(self) -> bool {
        matches!(self, Role::Cutlet | Role::Instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_last_set_are_compared_again() {
        for (sets, expected) in [(1, vec![0]), (2, vec![1]), (3, vec![1, 2]), (9, vec![4, 8])] {
            assert_eq!(rechecked(sets).collect::<Vec<_>>(), expected);
        }
    }
}
