//! The functions of composed layouts. Most act on the outer layout and the offset, as in CuTe.

use cutlet_layout_core::{
    ComposedLayout, Int, IntTuple, Layout, LayoutError, Swizzle, TilerKind, try_product,
};

use super::{int, number, numbers};
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
        ("size" | "rank" | "depth" | "shape" | "cosize", path) => {
            let mut of_outer = vec![outer];
            of_outer.extend_from_slice(path);
            super::call(name, &of_outer)?
        }
        ("get_hier_coord" | "get_flat_coord" | "get_1d_coord", [index]) => {
            super::call(name, &[outer, index.clone()])?
        }
        ("slice_and_offset", _) | ("stride", _) => {
            return Err(Refusal::new(format!(
                "{name}: `{}` is a composed layout, whose values are no sums of strides: take its layout apart first",
                cut(&a.to_string())
            )));
        }
        ("is_static", []) => Value::Truth(a.outer().is_static() && a.offset.is_static()),
        ("coordinates_of", [index]) => coordinates_of(a, index.int()?.value())?,
        _ => return Ok(None),
    }))
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
        ("append", [b]) => {
            let b = b.layout()?;
            a.after(|a| a.try_append(&b).map(Made::from))
        }
        ("prepend", [b]) => {
            let b = b.layout()?;
            a.after(|a| a.try_prepend(&b).map(Made::from))
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
        ("right_inverse", []) => return right_inverse(a).map(Some),
        _ => return Ok(None),
    };
    let swizzled = swizzled(name, a)?;
    Ok(Some(swizzled.try_recast(bits.0, bits.1)?.into()))
}

fn right_inverse(a: &Composed) -> Result<Value, Refusal> {
    if let Inner::Layout(inner) = &a.inner {
        let layout: ComposedLayout<Layout> = ComposedLayout::new(**inner, a.offset, a.outer);
        return Ok(Value::Layout(layout.try_right_inverse()?));
    }
    Ok(swizzled("right_inverse", a)?.try_right_inverse()?.into())
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

/// The coordinates at which a composed layout has an index.
fn coordinates_of(a: &Composed, index: i64) -> Result<Value, Refusal> {
    let size = a.outer().size();
    super::few_coordinates(size)?;
    let shape = Layout::try_col_major(&a.outer().shape())?;
    let layout = a.by_reference();
    let found = (0..size).filter(|&c| {
        let value = layout.call(&IntTuple::from(c)).as_int();
        value.map(Int::value) == Some(index)
    });
    let forms = found
        .flat_map(|c| cutlet_layout_core::picture::coordinates_of(&shape, c).collect::<Vec<_>>());
    Ok(Value::List(forms.collect()))
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
