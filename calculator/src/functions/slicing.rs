//! The modes that a coordinate keeps: of layouts, composed layouts and int tuples.

use cutlet_layout_core::{Int, IntTuple, try_dice, try_slice, try_slice_and_offset};

use crate::composed::Composed;
use crate::refusal::Refusal;
use crate::value::{Sliced, Value};

/// `slice`, `dice` and `slice_and_offset`. C++ has the coordinate first, and Python last: the coordinate is the
/// argument with `_`, or the one at its place.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    let [first, second] = arguments else {
        return Ok(None);
    };
    let (is_python, name) = match name {
        "slice_" => (true, "slice"),
        "slice" | "dice" | "slice_and_offset" => (false, name),
        _ => return Ok(None),
    };
    let is_first = match (is_coordinate(first), is_coordinate(second)) {
        (Some(is_first), Some(is_second)) if is_first != is_second => is_first,
        (Some(_), Some(_)) => !is_python,
        (is_first, _) => is_first.is_some(),
    };
    let (coord, a) = if is_first {
        (first, second)
    } else {
        (second, first)
    };
    of(name, &coord.tuple()?, a).map(Some)
}

/// Whether a value has `_`, if it may be a coordinate at all.
fn is_coordinate(value: &Value) -> Option<bool> {
    match value {
        Value::Tuple(tuple) => Some(tuple.has_underscore()),
        _ => None,
    }
}

fn of(name: &str, coord: &IntTuple, a: &Value) -> Result<Value, Refusal> {
    Ok(match (name, a) {
        ("slice", Value::Composed(a)) => a.after(|a| a.try_slice(coord).map(Into::into))?.into(),
        // The composed layout has the offset of what is sliced off, so 0 is left of it.
        ("slice_and_offset", Value::Composed(a)) => Value::Several(vec![
            a.after(|a| a.try_slice(coord).map(Into::into))?.into(),
            Value::Tuple(IntTuple::int(Int::ZERO)),
        ]),
        ("slice_and_offset", a) => {
            let (layout, offset) = try_slice_and_offset(coord, &a.layout()?)?;
            Value::Sliced(Box::new(Sliced { layout, offset }))
        }
        ("dice", Value::Composed(a)) => {
            let outer = try_dice(coord, a.outer())?;
            Composed::new(a.inner().clone(), *a.offset(), outer)?.into()
        }
        (_, Value::Tuple(tuple)) => Value::Tuple(kept(coord, tuple, name == "slice")?),
        ("dice", a) => Value::Layout(try_dice(coord, &a.layout()?)?),
        (_, a) => Value::Layout(try_slice(coord, &a.layout()?)?),
    })
}

/// The parts of an int tuple that a coordinate marks with `_`, or the other ones.
fn kept(coord: &IntTuple, tuple: &IntTuple, underscores: bool) -> Result<IntTuple, Refusal> {
    if !coord.is_tuple() && coord.has_underscore() == underscores {
        return Ok(*tuple);
    }
    let mut kept = IntTuple::EMPTY;
    if !keep_into(coord, tuple, underscores, &mut kept)? {
        return Err(Refusal::new(format!(
            "`{coord}` does not fit {tuple}: give each tuple the rank of its mode"
        )));
    }
    if kept.num_leaves() == 0 {
        return Err(Refusal::new(format!("`{coord}` keeps nothing of {tuple}")));
    }
    Ok(kept)
}

/// Appends the parts that are kept, those of nested tuples side by side; false if the coordinate does not fit.
fn keep_into(
    coord: &IntTuple,
    tuple: &IntTuple,
    underscores: bool,
    kept: &mut IntTuple,
) -> Result<bool, Refusal> {
    if !coord.is_tuple() {
        if coord.has_underscore() == underscores {
            *kept = kept.try_append(tuple)?;
        }
        return Ok(true);
    }
    if !tuple.is_tuple() || tuple.rank() != coord.rank() {
        return Ok(false);
    }
    for i in 0..coord.rank() {
        if !keep_into(&coord.mode(i), &tuple.mode(i), underscores, kept)? {
            return Ok(false);
        }
    }
    Ok(true)
}
