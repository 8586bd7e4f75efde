//! `cutlet bench compare`: what got faster or slower between two runs, beyond the noise.

use std::fmt;

use serde::Serialize;

use super::results::{Figures, Measured, Results, RowResult};
use crate::measure::statistics::{Spread, geometric_mean};

/// Runs on different days differ by this much without a cause in the code: by clocks, cards or addresses.
const NOISE: f64 = 0.03;

/// The comparison of two runs.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The two machines with their libraries, if they differ.
    other_machines: Option<[String; 2]>,
    /// Whether only one of the runs scaled its inputs for activations.
    other_inputs: bool,
    faster: Vec<Change>,
    slower: Vec<Change>,
    /// Rows without a change beyond the noise.
    unchanged: usize,
    /// Rows that only the old run measured.
    only_old: Vec<String>,
    /// Rows that only the new run measured.
    only_new: Vec<String>,
    /// The geometric mean of all changes.
    mean: Option<f64>,
}

/// A row's change.
#[derive(Debug, Serialize)]
struct Change {
    id: String,
    /// New speed over old speed.
    factor: f64,
    measure: Measure,
    /// The old figure: a time in microseconds, or a ratio to a baseline.
    old: Spread,
    /// The new figure.
    new: Spread,
}

/// The figures of two runs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    /// cutlet's speed over the baseline's, in which the clock cancels out.
    Ratio,
    /// cutlet's time in microseconds.
    Time,
    /// The baseline's time, where neither run has cutlet.
    BaselineTime,
}

impl Comparison {
    /// Compares two runs.
    pub fn new(old: &Results, new: &Results) -> Comparison {
        let machines = [old.machine.line(), new.machine.line()];
        let mut comparison = Comparison {
            other_machines: (machines[0] != machines[1]).then_some(machines),
            other_inputs: old.protocol.scaled_for_activations
                != new.protocol.scaled_for_activations,
            faster: Vec::new(),
            slower: Vec::new(),
            unchanged: 0,
            only_old: Vec::new(),
            only_new: Vec::new(),
            mean: None,
        };
        let mut factors = Vec::new();
        for before in &old.rows {
            let after = new.rows.iter().find(|after| after.row.id == before.row.id);
            let change = after.and_then(|after| change(before, after));
            match change {
                Some(change) => {
                    factors.push(change.factor);
                    comparison.sort_in(change);
                }
                None if before.measured().is_some() => {
                    comparison.only_old.push(before.row.id.clone());
                }
                None => {}
            }
        }
        let measured_before = |id: &str| {
            let before = old.rows.iter().find(|before| before.row.id == id);
            before.is_some_and(|before| before.measured().is_some())
        };
        comparison.only_new = new
            .rows
            .iter()
            .filter(|after| after.measured().is_some() && !measured_before(&after.row.id))
            .map(|after| after.row.id.clone())
            .collect();
        comparison.mean = geometric_mean(&factors);
        comparison
    }

    fn sort_in(&mut self, change: Change) {
        let beyond =
            change.old.apart_from(&change.new) && (change.factor.ln().abs() > (1.0 + NOISE).ln());
        match beyond {
            false => self.unchanged += 1,
            true if change.factor > 1.0 => self.faster.push(change),
            true => self.slower.push(change),
        }
    }

    /// Whether a row got slower, or was measured only in the old run.
    pub fn is_worse(&self) -> bool {
        !self.slower.is_empty() || !self.only_old.is_empty()
    }
}

fn change(before: &RowResult, after: &RowResult) -> Option<Change> {
    let (old, new) = (before.measured()?, after.measured()?);
    let pair = |of: fn(&Measured) -> Option<&Figures>| match (of(old), of(new)) {
        (Some(old), Some(new)) => Some([old.microseconds, new.microseconds]),
        _ => None,
    };
    let baselines_alone = old.cutlet().or(new.cutlet()).is_none();
    let (measure, [old, new]) = match (old.ratio, new.ratio) {
        (Some(old), Some(new)) => (Measure::Ratio, [old, new]),
        _ if baselines_alone => (Measure::BaselineTime, pair(Measured::baseline)?),
        _ => (Measure::Time, pair(Measured::cutlet)?),
    };
    let factor = match measure {
        Measure::Ratio => new.median / old.median,
        Measure::Time | Measure::BaselineTime => old.median / new.median,
    };
    Some(Change {
        id: before.row.id.clone(),
        factor,
        measure,
        old,
        new,
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some([old, new]) = &self.other_machines {
            writeln!(f, "the machines differ:\n  old  {old}\n  new  {new}")?;
        }
        if self.other_inputs {
            writeln!(f, "the inputs of products with an activation differ")?;
        }
        for (what, changes) in [("faster", &self.faster), ("slower", &self.slower)] {
            if changes.is_empty() {
                continue;
            }
            writeln!(f, "{what}:")?;
            for Change {
                id,
                factor,
                measure,
                old,
                new,
            } in changes
            {
                let (old, new) = (old.median, new.median);
                let figures = match measure {
                    Measure::Ratio => format!("{old:.3}x to {new:.3}x of the baseline's speed"),
                    Measure::Time => format!("{old:.1} to {new:.1} us"),
                    Measure::BaselineTime => format!("{old:.1} to {new:.1} us of the baseline"),
                };
                let percent = (factor - 1.0) * 100.0;
                writeln!(f, "  {id:<42} {percent:>+6.1}%  {figures}")?;
            }
        }
        for (run, rows) in [("old", &self.only_old), ("new", &self.only_new)] {
            for id in rows {
                writeln!(f, "measured in the {run} run only: {id}")?;
            }
        }
        let changed = self.faster.len() + self.slower.len();
        match (self.mean, changed) {
            (None, _) => write!(f, "the runs have no row in common"),
            (Some(_), 0) => write!(f, "no change beyond the noise in {} rows", self.unchanged),
            (Some(mean), _) => write!(
                f,
                "{} rows faster, {} slower, {} without a change beyond the noise; \
                 geometric mean {mean:.3}x",
                self.faster.len(),
                self.slower.len(),
                self.unchanged
            ),
        }
    }
}
