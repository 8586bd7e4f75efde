//! Explanations of operations: each step with its result.

use std::fmt;

use cutlet_layout_core::explain;

use crate::functions::{operation, tiler_of};
use crate::refusal::Refusal;
use crate::value::Value;

/// An operation step by step. Each line is a step; its indentation says which step it is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    lines: Vec<String>,
}

impl Explanation {
    /// The lines, from the operation and its operands to its result.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// The explanations of an expression, if they are wanted.
#[derive(Default)]
pub(crate) struct Explanations {
    list: Option<Vec<Explanation>>,
}

impl Explanations {
    pub(crate) fn record(&mut self) {
        self.list = Some(Vec::new());
    }

    pub(crate) fn are_recorded(&self) -> bool {
        self.list.is_some()
    }

    pub(crate) fn list(&self) -> &[Explanation] {
        self.list.as_deref().unwrap_or_default()
    }

    /// Explains an operation that was applied.
    pub(crate) fn add(&mut self, name: &str, operands: &[Value], _: &Result<Value, Refusal>) {
        let Some(list) = &mut self.list else {
            return;
        };
        let [a, b] = operands else {
            return;
        };
        let Some(operation) = operation(name) else {
            return;
        };
        if let (Ok(a), Ok(tiler)) = (a.layout(), tiler_of(operation, b)) {
            let lines = explain(operation, &a, &tiler).to_string();
            list.push(Explanation {
                lines: lines.lines().map(str::to_owned).collect(),
            });
        }
    }
}
