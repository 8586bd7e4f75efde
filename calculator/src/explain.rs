//! Explanations of operations: each step with its result.

mod contraction;
mod steps;

use std::fmt;

use cutlet_layout_core::{Operation, TilerKind, explain};

use crate::functions::{operation, tiler_of};
use crate::meanings::meaning;
use crate::refusal::Refusal;
use crate::value::Value;

/// An operation step by step. Each line is a step; its indentation says which step it is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    lines: Vec<String>,
}

impl Explanation {
    pub(crate) fn of(lines: Vec<String>) -> Explanation {
        Explanation { lines }
    }

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

    /// Replaces the explanations, if they are wanted.
    pub(crate) fn replace(&mut self, explanations: Vec<Explanation>) {
        if self.are_recorded() {
            self.list = Some(explanations);
        }
    }

    pub(crate) fn list(&self) -> &[Explanation] {
        self.list.as_deref().unwrap_or_default()
    }

    /// Explains an operation that was applied.
    pub(crate) fn add(&mut self, name: &str, operands: &[Value], result: &Result<Value, Refusal>) {
        if let Some(list) = &mut self.list {
            let lines = words(name, operands, result);
            list.push(Explanation { lines });
        }
    }
}

/// An operation in words: its operands, its meaning, its steps and its result.
fn words(name: &str, operands: &[Value], result: &Result<Value, Refusal>) -> Vec<String> {
    if let (Some(operation), [a, b]) = (operation(name), operands)
        && let Some(lines) = of_layouts(operation, a, b)
    {
        return lines;
    }
    let mut lines = vec![title(name, operands)];
    if !meaning(name).is_empty() {
        lines.push(format!("  {}", meaning(name)));
    }
    if let Some(Value::Composed(_)) = operands.first() {
        lines.extend(of_outer(name, operands, result));
    } else {
        lines.extend(steps::of(name, operands, result.as_ref().ok()));
    }
    let result = match result {
        Ok(value) => format!("= {value}"),
        Err(refusal) => format!("refused: {refusal}"),
    };
    lines.extend(result.lines().map(str::to_owned));
    lines
}

/// `name: A = …, B = …`.
fn title(name: &str, operands: &[Value]) -> String {
    let mut names = ('A'..='Z').chain('a'..='z');
    let named: Vec<String> = operands
        .iter()
        .map_while(|operand| match operand {
            // The notation of a contraction names A, B and C, which come next.
            Value::Notation(notation) => Some(notation.to_string()),
            operand => {
                let text = operand.to_string().replace('\n', "; ");
                Some(format!("{} = {text}", names.next()?))
            }
        })
        .collect();
    format!("{name}: {}", named.join(", "))
}

/// The words that layout-core has for an operation on layouts, with a table of a composition's values.
fn of_layouts(operation: Operation, a: &Value, b: &Value) -> Option<Vec<String>> {
    let (a, tiler) = (a.layout().ok()?, tiler_of(operation, b).ok()?);
    let text = explain(operation, &a, &tiler).to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let (Operation::Composition, TilerKind::Layout(b)) = (operation, tiler.kind())
        && operation.apply(&a, &tiler).is_ok()
    {
        let last = lines.len().saturating_sub(1);
        lines.splice(last..last, steps::table(&a, &b));
    }
    Some(lines)
}

/// The steps on the outer layout of a composed one, if the operation does nothing else.
fn of_outer(name: &str, operands: &[Value], result: &Result<Value, Refusal>) -> Vec<String> {
    let ([Value::Composed(a), rest @ ..], Ok(Value::Composed(made))) = (operands, result) else {
        return Vec::new();
    };
    let mut of_outer = vec![Value::Layout(*a.outer())];
    of_outer.extend_from_slice(rest);
    let kept = format!(
        "  inner {} and offset {} stay; the outer layout changes",
        a.inner(),
        a.offset()
    );
    let Ok(result) = crate::functions::call(name, &of_outer) else {
        return Vec::new();
    };
    let stays = made.inner() == a.inner() && made.offset() == a.offset();
    if !stays || !matches!(&result, Value::Layout(outer) if outer == made.outer()) {
        return Vec::new();
    }
    let steps = words(name, &of_outer, &Ok(result));
    let indented = steps.into_iter().map(|line| format!("    {line}"));
    [kept].into_iter().chain(indented).collect()
}
