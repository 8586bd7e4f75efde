//! A hint where a result is longer only because its integers are dynamic.

use crate::calculator::{Calculator, Options};
use crate::value::Value;

/// What the expression would be with static integers, if its result would have fewer integers.
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
    let options = Options { is_static: true };
    let mut calculator = Calculator::new(text, options);
    let shorter = calculator.evaluate().ok()?;
    if self::leaves(&shorter)? >= leaves {
        return None;
    }
    let shown = calculator.symbols().named(&shorter.to_string());
    Some(format!("with static integers (--static) it is {shown}"))
}

/// The number of integers of a layout's shape.
fn leaves(value: &Value) -> Option<usize> {
    match value {
        Value::Layout(layout) => Some(layout.num_leaves()),
        Value::Composed(layout) => Some(layout.outer().num_leaves()),
        _ => None,
    }
}
