//! What a kernel family implements to be measured.

use cutlet::Stream;
use serde::Deserialize;

use super::cells::Cells;
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
#[derive(Clone, Debug, PartialEq)]
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
    pub columns: Vec<(&'static str, String)>,
    /// The line of a plot that the problem belongs to: for a gather, the distribution of its indices.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 10¹² operations a second.
    Teraflops,
    /// 10⁹ bytes a second, read and written.
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

/// A problem set up on a device: its inputs in several sets, and its contestants.
pub trait Case {
    /// Sets of inputs and outputs. Runs go through them in turn, so that no run finds its data in a cache.
    fn sets(&self) -> usize;

    /// The contestants: at least one baseline, the first of them the library's default.
    fn contestants(&self) -> &[Contestant];

    /// Puts one run of contestant number `contestant` on set number `set` into the stream.
    ///
    /// # Errors
    /// If the launch fails.
    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()>;

    /// What is wrong with contestant number `contestant`'s output of set 0, if anything.
    ///
    /// # Errors
    /// If the device fails.
    fn fault(&mut self, contestant: usize) -> Result<Option<String>>;

    /// Checks the outputs of baseline number `baseline` and of cutlet for set 0.
    ///
    /// # Errors
    /// If the device fails.
    fn check(&mut self, baseline: usize) -> Result<Check>;

    /// Overwrites the outputs of the [`rechecked`] sets.
    ///
    /// # Errors
    /// If the device fails.
    fn poison(&mut self) -> Result<()>;

    /// Checks cutlet's outputs of the [`rechecked`] sets, after cutlet computed them in the way that was timed.
    ///
    /// # Errors
    /// If the device fails.
    fn recheck(&mut self, baseline: usize) -> Result<Check>;
}

/// The sets that are compared again after a problem was timed: one in the middle, and the last.
pub fn rechecked(sets: usize) -> impl Iterator<Item = usize> {
    let (middle, last) = (sets / 2, sets - 1);
    (middle < last).then_some(middle).into_iter().chain([last])
}

/// One way to solve a problem.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// `cutlet`, `cuBLASLt algorithm 3`.
    pub name: String,
    /// Its role in the comparison.
    pub role: Role,
}

/// The role of a contestant in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// cutlet, with the kernel that it chooses.
    Cutlet,
    /// A candidate for the baseline: the fastest of them becomes it.
    Baseline,
    /// One of the kernel instances that cutlet chooses from.
    Instance,
    /// Such an instance that was not timed in rounds, by its second look.
    Look,
    /// Another computation, shown beside the baseline. Only the fastest is shown.
    Aside,
}

impl Role {
    /// As results write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Cutlet => "cutlet",
            Role::Baseline => "baseline",
            Role::Instance => "instance",
            Role::Look => "look",
            Role::Aside => "aside",
        }
    }

    /// Whether it is cutlet's own. The row fails if such a contestant fails or is wrong; others are passed over.
    pub fn is_ours(self) -> bool {
        matches!(self, Role::Cutlet | Role::Instance | Role::Look)
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
