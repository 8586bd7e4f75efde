//! A hint where a result is longer, or has no room, only because its integers are dynamic.

use crate::calculator::{Calculator, Options};
use crate::equality::compare_functions;
use crate::refusal::caught;
use crate::value::Value;

/// What the expression would be with static integers, if its result would be the same function with fewer integers.
///
/// ```
/// use cutlet_calculator::{evaluate, static_hint};
///
/// let text = "(10,2):(16,4) o (5,4):(1,5)";
/// let hint = static_hint(text, &evaluate(text).unwrap()).unwrap();
/// assert_eq!(hint, "with static integers (--static) it is (_5,(_2,_2)):(_16,(_80,_4))");
/// ```
pub fn static_hint(text: &str, value: &Value) -> Option<String> {
    let leaves = leaves(value)?;
    let (shorter, shown) = with_static_integers(text)?;
    if self::leaves(&shorter)? >= leaves {
        return None;
    }
    let compared = caught(|| compare_functions(value, &shorter)).ok()?;
    compared.is_same_function().then(|| hint(&shown))
}

/// What the expression would be with static integers, if it has a value then.
pub(crate) fn static_way_out(text: &str) -> Option<String> {
    let (_, shown) = with_static_integers(text)?;
    Some(hint(&shown))
}

fn hint(shown: &str) -> String {
    format!("with static integers (--static) it is {shown}")
}

/// The value with static integers, and its text.
fn with_static_integers(text: &str) -> Option<(Value, String)> {
    let mut calculator = Calculator::new(text, Options { is_static: true });
    let value = calculator.evaluate().ok()?;
    let shown = calculator.shown(&value);
    Some((value, shown))
}

/// The number of integers of a layout's shape.
fn leaves(value: &Value) -> Option<usize> {
    match value {
        Value::Layout(layout) => Some(layout.num_leaves()),
        Value::Composed(layout) => Some(layout.outer().num_leaves()),
        _ => None,
    }
}
