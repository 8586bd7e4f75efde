//! `a o b` for values of all kinds.

use cutlet_layout_core::{Int, IntTuple, Operation, try_composition};

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
            other => return Err(misplaced(a, other)),
        },
        (a, b) => Value::Layout(Operation::Composition.apply(&a.layout()?, &b.tiler()?)?),
    })
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
