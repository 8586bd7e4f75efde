//! `a o b` for values of all kinds.

use cutlet_layout_core::{Int, IntTuple, Layout, Operation, Swizzle, Tiler, try_composition};

use crate::composed::{Composed, Inner};
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// The composition of two values: `b` is applied first.
pub(crate) fn compose(a: &Value, b: &Value) -> Result<Value, Refusal> {
    Ok(match (a, b) {
        (Value::Inner(Inner::Swizzle(a)), Value::Inner(Inner::Swizzle(b))) => {
            a.try_compose(*b)?.into()
        }
        (Value::Inner(Inner::Swizzle(swizzle)), Value::Composed(b)) if b.swizzled().is_some() => {
            match b.swizzled() {
                Some(b) => b.try_after(*swizzle)?.into(),
                None => return Err(misplaced(a, &b.inner)),
            }
        }
        (Value::Inner(inner), Value::Composed(b)) => match &b.inner {
            Inner::Layout(layout) => {
                let inner = at_zero(inner, Value::Layout(**layout))?;
                Composed::new(Inner::Composed(Box::new(inner)), b.offset, b.outer)?.into()
            }
            other => return Err(misplaced(a, other)),
        },
        (Value::Composed(a), Value::Inner(Inner::Swizzle(b))) if a.swizzled().is_some() => {
            swizzled_o_swizzle(a, *b)?
        }
        (Value::Inner(_) | Value::Composed(_), Value::Inner(inner)) => {
            return Err(misplaced(a, inner));
        }
        (a, Value::Inner(Inner::Swizzle(swizzle))) => swizzle.try_before(&a.layout()?)?.into(),
        (_, Value::Inner(inner)) => return Err(misplaced(a, inner)),
        (Value::Inner(inner), b) => at_zero(inner, b.clone())?.into(),
        (Value::Composed(a), Value::Composed(b)) => a.nest(b)?.into(),
        (Value::Composed(a), b) => a.compose(&b.tiler()?)?.into(),
        (a, Value::Composed(b)) => match &b.inner {
            Inner::Layout(inner) => Composed {
                inner: Inner::Layout(Box::new(try_composition(&a.layout()?, inner)?)),
                ..(**b).clone()
            }
            .into(),
            Inner::Swizzle(swizzle) => layout_o_swizzled(&a.layout()?, *swizzle, b)?,
            other => return Err(misplaced(a, other)),
        },
        (a, b) => Value::Layout(Operation::Composition.apply(&a.layout()?, &b.tiler()?)?),
    })
}

/// `a o (swizzle o 0 o outer)`: the swizzle moves behind `a`, as in CuTe.
fn layout_o_swizzled(a: &Layout, swizzle: Swizzle, b: &Composed) -> Result<Value, Refusal> {
    no_offset(b, "a layout")?;
    let moved = Composed::from(swizzle.try_before(a)?);
    Ok(moved.compose(&Tiler::layout(&b.outer))?.into())
}

/// `(swizzle o 0 o outer) o first`: `first` moves behind `outer`, where both are one swizzle.
fn swizzled_o_swizzle(a: &Composed, first: Swizzle) -> Result<Value, Refusal> {
    no_offset(a, "a swizzle")?;
    let moved = first.try_before(&a.outer)?;
    match a.swizzled() {
        Some(swizzled) => Ok(moved.try_after(*swizzled.inner())?.into()),
        None => Ok(moved.into()),
    }
}

fn no_offset(a: &Composed, other: &str) -> Result<(), Refusal> {
    if a.offset.as_int().is_some_and(|offset| offset.value() == 0) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "`{}` has an offset, so its swizzle does not compose with {other}: give the offset 0",
        cut(&a.to_string())
    )))
}

/// `inner o 0 o outer`.
fn at_zero(inner: &Inner, outer: Value) -> Result<Composed, Refusal> {
    Composed::new(inner.clone(), IntTuple::int(Int::ZERO), outer.layout()?)
}

fn misplaced(a: &Value, inner: &Inner) -> Refusal {
    Refusal::new(format!(
        "`{} o {}`: {} stands at the left of a composition, and a layout on its right",
        cut(&a.to_string()),
        cut(&inner.to_string()),
        Value::Inner(inner.clone()).kind()
    ))
}
