//! Layouts and int tuples with further modes: `append`, `prepend`, and both up to a rank.

use cutlet_layout_core::{IntTuple, Layout};

use crate::composed::Made;
use crate::refusal::Refusal;
use crate::value::Value;

/// `append`, `prepend`, `append<N>` and `prepend<N>`. Python has the rank last.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    let side = match name {
        "append" | "append<N>" => Side::Last,
        "prepend" | "prepend<N>" => Side::First,
        _ => return Ok(None),
    };
    let is_template = name.ends_with("<N>");
    let (a, b, rank) = match arguments {
        [a, rank] if is_template => (a, None, Some(rank)),
        [a, rank, b] if is_template => (a, Some(b), Some(rank)),
        [a, b] if !is_template => (a, Some(b), None),
        [a, b, rank] if !is_template => (a, Some(b), Some(rank)),
        _ => return Ok(None),
    };
    let times = match rank {
        Some(rank) => missing(name, a, rank.mode()?)?,
        None => 1,
    };
    let mut extended = a.clone();
    for _ in 0..times {
        extended = side.with(&extended, b)?;
    }
    Ok(Some(extended))
}

/// The number of modes that a value has less than a rank.
fn missing(name: &str, a: &Value, rank: usize) -> Result<usize, Refusal> {
    let has = a.tuple()?.rank();
    rank.checked_sub(has).ok_or_else(|| {
        Refusal::new(format!(
            "{name}: `{a}` has rank {has} already: give a rank of at least that"
        ))
    })
}

/// Where a mode is added.
#[derive(Clone, Copy)]
enum Side {
    First,
    Last,
}

impl Side {
    /// A value with a further mode: a layout has `_1:_0` unless one is given.
    fn with(self, a: &Value, b: Option<&Value>) -> Result<Value, Refusal> {
        if let (Value::Tuple(a), Some(Value::Tuple(b))) = (a, b) {
            return Ok(Value::Tuple(self.with_tuple(a, b)?));
        }
        let b = b.map_or(Ok(Layout::UNIT), Value::layout)?;
        match (self, a) {
            (Side::Last, Value::Composed(a)) => a.after(|a| a.try_append(&b).map(Made::from)),
            (Side::First, Value::Composed(a)) => a.after(|a| a.try_prepend(&b).map(Made::from)),
            (Side::Last, a) => return Ok(Value::Layout(a.layout()?.try_append(&b)?)),
            (Side::First, a) => return Ok(Value::Layout(a.layout()?.try_prepend(&b)?)),
        }
        .map(Value::from)
    }

    fn with_tuple(self, a: &IntTuple, b: &IntTuple) -> Result<IntTuple, Refusal> {
        Ok(match self {
            Side::Last => a.try_append(b)?,
            Side::First => a.try_prepend(b)?,
        })
    }
}
