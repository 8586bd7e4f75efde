//! A problem set up on a device, with its contestants.

use cutlet::Stream;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::error::Result;

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

    /// Overwrites the outputs of the [rechecked](cutlet_host::measure::rechecked) sets.
    ///
    /// # Errors
    /// If the device fails.
    fn poison(&mut self) -> Result<()>;

    /// Checks cutlet's outputs of the [rechecked](cutlet_host::measure::rechecked) sets, after cutlet computed them in the way that was timed.
    ///
    /// # Errors
    /// If the device fails.
    fn recheck(&mut self, baseline: usize) -> Result<Check>;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// cutlet, with the kernel that it chooses.
    Cutlet,
    /// A candidate for the baseline: the fastest of them becomes it.
    Baseline,
    /// One of the kernel instances that cutlet chooses from.
    Instance,
    /// Such an instance that was not timed in rounds, by its second screening.
    Screened,
    /// Another computation, shown beside the baseline. Only the fastest is shown.
    Alternative,
}

impl Role {
    /// As results write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Cutlet => "cutlet",
            Role::Baseline => "baseline",
            Role::Instance => "instance",
            Role::Screened => "screened",
            Role::Alternative => "alternative",
        }
    }

    /// Whether it is cutlet's own. The row fails if such a contestant fails or is wrong; others are passed over.
    pub fn is_ours(self) -> bool {
        matches!(self, Role::Cutlet | Role::Instance | Role::Screened)
    }
}

/// The numbers of the contestants of a role.
pub fn of_role(contestants: &[Contestant], role: Role) -> Vec<usize> {
    let numbered = contestants.iter().enumerate();
    numbered
        .filter(|(_, contestant)| contestant.role == role)
        .map(|(number, _)| number)
        .collect()
}
