//! The functions of composed layouts. Most act on the outer layout and the offset, as in CuTe.

use cutlet_layout_core::{
    ComposedLayout, IntTuple, Layout, LayoutError, Swizzle, TilerKind, try_product,
};

use super::{coordinates, int, number, numbers};
use crate::composed::{Composed, Inner, Made};
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// Calls a function whose first argument is a composed layout. Functions of shapes have no entry here.
pub(super) fn call(
    name: &str,
    a: &Composed,
    arguments: &[Value],
) -> Result<Option<Value>, Refusal> {
    if let Some(made) = divided(name, a, arguments)? {
        return Ok(Some(made.into()));
    }
    if let Some(made) = rearranged(name, a, arguments)? {
        return Ok(Some(made.into()));
    }
    if let Some(made) = of_swizzled(name, a, arguments)? {
        return Ok(Some(made));
    }
    let outer = Value::Layout(*a.outer());
    Ok(Some(match (name, arguments) {
        // As in CuTe, a composed layout has the complement and the fragment of its outer layout.
        ("size" | "rank" | "depth" | "shape" | "complement" | "make_fragment_like", rest) => {
            let mut of_outer = vec![outer];
            of_outer.extend_from_slice(rest);
            super::call(name, &of_outer)?
        }
        ("cosize", path) => {
            let path = numbers(path)?;
            coordinates::cosize(&a.after(|a| a.try_get(&path).map(Made::from))?)?
        }
        ("stride", _) => {
            return Err(Refusal::new(format!(
                "{name}: `{}` is a composed layout, whose values are no sums of strides: take its layout apart first",
                cut(&a.to_string())
            )));
        }
        ("is_static", []) => Value::Truth(a.outer().is_static() && a.offset.is_static()),
        ("max_common_layout" | "max_common_vector", [b]) => {
            common(name, &Value::from(a.clone()), b)?
        }
        _ => return Ok(None),
    }))
}

/// Calls a function whose second argument is a composed layout, and whose first is none.
pub(super) fn call_with(name: &str, a: &Value, b: &Composed) -> Result<Option<Value>, Refusal> {
    let b = Value::from(b.clone());
    Ok(match name {
        "crd2idx" => Some(b.apply(std::slice::from_ref(a))?),
        "max_common_layout" | "max_common_vector" => Some(common(name, a, &b)?),
        _ => None,
    })
}

/// What two layouts, each of which may be swizzled, have in common.
fn common(name: &str, a: &Value, b: &Value) -> Result<Value, Refusal> {
    let swizzled = |value: &Value| match value {
        Value::Composed(layout) => swizzled(name, layout),
        other => Ok(Swizzle::new(0, 0, 0).composition(&other.layout()?)),
    };
    let (a, b) = (swizzled(a)?, swizzled(b)?);
    Ok(match name {
        "max_common_layout" => Value::Layout(a.try_max_common_layout(&b)?),
        _ => int(a.try_max_common_vector(&b)?),
    })
}

/// Compositions, divisions and products.
fn divided(name: &str, a: &Composed, arguments: &[Value]) -> Result<Option<Composed>, Refusal> {
    let [b] = arguments else {
        return Ok(None);
    };
    type Divide = for<'a, 'b> fn(
        &ComposedLayout<&'a Inner>,
        &'b cutlet_layout_core::Tiler,
    ) -> Result<ComposedLayout<&'a Inner>, LayoutError>;
    let divide: Divide = match name {
        "composition" => |a, b| a.try_composition_by_mode(b),
        "logical_divide" => |a, b| a.try_logical_divide(b),
        "zipped_divide" => |a, b| a.try_zipped_divide(b),
        "tiled_divide" => |a, b| a.try_tiled_divide(b),
        "flat_divide" => |a, b| a.try_flat_divide(b),
        "logical_product" => |a, b| a.try_logical_product(b),
        "zipped_product" => |a, b| a.try_zipped_product(b),
        "tiled_product" => |a, b| a.try_tiled_product(b),
        "flat_product" => |a, b| a.try_flat_product(b),
        "blocked_product" => {
            let b = b.layout()?;
            return a
                .after(|a| a.try_blocked_product(&b).map(Made::from))
                .map(Some);
        }
        "raked_product" => {
            let b = b.layout()?;
            return a
                .after(|a| a.try_raked_product(&b).map(Made::from))
                .map(Some);
        }
        _ => return Ok(None),
    };
    let tiler = b.tiler()?;
    a.after(|a| divide(a, &tiler).map(Made::from)).map(Some)
}

/// Parts and other arrangements of the modes.
fn rearranged(name: &str, a: &Composed, arguments: &[Value]) -> Result<Option<Composed>, Refusal> {
    let made = match (name, arguments) {
        ("layout" | "get" | "mode", path) => {
            let path = numbers(path)?;
            a.after(|a| a.try_get(&path).map(Made::from))
        }
        ("select", modes) => {
            let modes = numbers(modes)?;
            a.after(|a| a.try_select(&modes).map(Made::from))
        }
        ("take", [begin, end]) => {
            let (begin, end) = (begin.mode()?, end.mode()?);
            a.after(|a| a.try_take(begin, end).map(Made::from))
        }
        ("group", [begin, end]) => {
            let (begin, end) = (begin.mode()?, end.mode()?);
            a.after(|a| a.try_group(begin, end).map(Made::from))
        }
        ("flatten", []) => a.after(|a| Ok(a.flatten().into())),
        ("coalesce", []) => a.after(|a| Ok(a.coalesce().into())),
        ("coalesce", [profile]) => {
            let profile = profile.tuple()?;
            a.after(|a| a.try_coalesce_by_mode(&profile).map(Made::from))
        }
        ("filter", [profile]) => {
            let profile = profile.tuple()?;
            a.after(|a| a.try_filter_by_mode(&profile).map(Made::from))
        }
        ("with_shape", [shape]) => {
            let shape = shape.tuple()?;
            a.after(|a| a.try_with_shape(&shape).map(Made::from))
        }
        ("tile_to_shape", [shape, order @ ..]) => {
            let shape = shape.tuple()?;
            let order = super::order(&shape, order)?;
            a.after(|a| a.try_tile_to_shape(&shape, &order).map(Made::from))
        }
        _ => return Ok(None),
    };
    made.map(Some)
}

/// Functions that change the inner transform too, which only a swizzle or a layout allows.
fn of_swizzled(name: &str, a: &Composed, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    let bits = match (name, arguments) {
        ("recast_layout", [old, new]) => (old.int()?.value(), new.int()?.value()),
        ("upcast", [n]) => (1, n.int()?.value()),
        ("downcast", [n]) => (n.int()?.value(), 1),
        ("right_inverse" | "left_inverse", []) => return inverse(name, a).map(Some),
        _ => return Ok(None),
    };
    let swizzled = swizzled(name, a)?;
    Ok(Some(swizzled.try_recast(bits.0, bits.1)?.into()))
}

fn inverse(name: &str, a: &Composed) -> Result<Value, Refusal> {
    let is_right = name == "right_inverse";
    if let Inner::Layout(inner) = &a.inner {
        let layout: ComposedLayout<Layout> = ComposedLayout::new(**inner, a.offset, a.outer);
        return Ok(Value::Layout(if is_right {
            layout.try_right_inverse()?
        } else {
            layout.try_left_inverse()?
        }));
    }
    let swizzled = swizzled(name, a)?;
    Ok(if is_right {
        swizzled.try_right_inverse()?.into()
    } else {
        swizzled.try_left_inverse()?.into()
    })
}

fn swizzled(name: &str, a: &Composed) -> Result<ComposedLayout<Swizzle>, Refusal> {
    a.swizzled().ok_or_else(|| {
        Refusal::new(format!(
            "{name}: the inner of `{}` is {}, but only a swizzle can be changed with its layout",
            cut(&a.to_string()),
            Value::Inner(a.inner.clone()).kind()
        ))
    })
}

/// Calls a function whose first argument is a tuple of tilers.
pub(super) fn of_tiler(
    name: &str,
    tiler: &cutlet_layout_core::Tiler,
    path: &[Value],
) -> Result<Option<Value>, Refusal> {
    let path = match name {
        "rank" | "size" | "get" | "layout" | "mode" => numbers(path)?,
        _ => return Ok(None),
    };
    let part = tiler.try_get(&path)?;
    Ok(Some(match name {
        "rank" => number(part.rank()),
        "size" => match part.size() {
            Some(size) => int(size),
            None => int(try_product(&Value::Tiler(part).layout()?.shape())?),
        },
        _ => match part.kind() {
            TilerKind::Layout(layout) => Value::Layout(layout),
            TilerKind::Underscore => Value::Tuple(IntTuple::UNDERSCORE),
            TilerKind::Tuple => Value::Tiler(part),
        },
    }))
}
