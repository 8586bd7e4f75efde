//! Operands with their places, so that a refusal points at the operand that caused it.

use super::Calculator;
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// Values, each with the place of its expression.
#[derive(Default)]
pub(super) struct Operands {
    pub(super) values: Vec<Value>,
    pub(super) places: Vec<usize>,
}

impl Operands {
    pub(super) fn one(value: Value, place: usize) -> Operands {
        Operands::from([(value, place)])
    }

    pub(super) fn push(&mut self, value: Value, place: usize) {
        self.values.push(value);
        self.places.push(place);
    }

    pub(super) fn extend(&mut self, more: Operands) {
        self.values.extend(more.values);
        self.places.extend(more.places);
    }

    /// The operands with others behind the first, as a call's with its template arguments.
    pub(super) fn with_behind_first(mut self, others: Operands) -> Operands {
        let behind = self.values.len().min(1);
        self.values.splice(behind..behind, others.values);
        self.places.splice(behind..behind, others.places);
        self
    }
}

impl<const N: usize> From<[(Value, usize); N]> for Operands {
    fn from(pairs: [(Value, usize); N]) -> Operands {
        let (values, places) = pairs.into_iter().unzip();
        Operands { values, places }
    }
}

impl Calculator<'_> {
    /// Applies an operation, and explains it if that is wanted.
    pub(super) fn operate(
        &mut self,
        name: &str,
        operands: &Operands,
        operation: impl FnOnce(&[Value]) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let computes = matches!(name, "cosize" | "upcast" | "downcast" | "recast_layout");
        if computes && !self.symbols.is_empty() {
            self.needs_numbers = true;
            let message = format!("{name}: a stride of the operand has no number");
            return Err(Refusal::new(message));
        }
        let result = self.apply(operands, operation);
        self.explanations.add(name, &operands.values, &result);
        self.pointing(name, operands, result)
    }

    /// Applies an operation that needs no explanation.
    pub(super) fn operate_quietly(
        &mut self,
        operands: &Operands,
        operation: impl FnOnce(&[Value]) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let result = self.apply(operands, operation);
        self.pointing("", operands, result)
    }

    fn apply(
        &mut self,
        operands: &Operands,
        operation: impl FnOnce(&[Value]) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        // A panic of the operation is caught outside of the whole expression.
        self.operand = operands.places.last().copied();
        let result = operation(&operands.values);
        self.operand = None;
        result
    }

    /// The result, its refusal pointing at an operand.
    fn pointing(
        &self,
        name: &str,
        operands: &Operands,
        result: Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        result.map_err(|refusal| match refusal.column {
            Some(_) => refusal,
            None => match operands
                .places
                .get(blamed(name, &refusal, &operands.values))
            {
                Some(&place) => self.reader.refusal(place, refusal.message),
                None => refusal,
            },
        })
    }
}

/// The number of the operand that a refusal is about: one that it quotes; else the coordinate, or the divisor of the
/// first operand, or the layout whose complement is refused, or the notation of a contraction.
fn blamed(name: &str, refusal: &Refusal, operands: &[Value]) -> usize {
    let quoted = operands.iter().position(|operand| {
        let quote = format!("`{}`", cut(&operand.to_string()));
        refusal.message.contains(&quote)
    });
    let is_first = refusal.message.starts_with("complement:")
        || matches!(
            name,
            "slice" | "dice" | "slice_and_offset" | "crd2idx" | "crd2crd" | "idx2crd" | "contract"
        );
    quoted.unwrap_or(if is_first {
        0
    } else {
        operands.len().saturating_sub(1)
    })
}
