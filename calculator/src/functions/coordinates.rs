//! The coordinate of an index: a layout backwards.

use cutlet_layout_core::{
    Int, IntTuple, Layout, linear_coordinate, picture, try_idx2crd, try_idx2crd_strided,
};

use super::int;
use crate::composed::Composed;
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// The most coordinates that are looked through one by one.
const MOST_COORDINATES: i64 = 1 << 20;

/// Refuses a function that looks at every coordinate of a layout if there are too many.
pub(super) fn few_coordinates(function: &str, size: i64) -> Result<(), Refusal> {
    if size > MOST_COORDINATES {
        return Err(Refusal::new(format!(
            "{function} looks at all coordinates: {size} are more than {MOST_COORDINATES}"
        )));
    }
    Ok(())
}

/// The natural coordinate to which a shape, or a layout, gives this index.
pub(super) fn of_index(index: &IntTuple, a: &Value) -> Result<IntTuple, Refusal> {
    match a {
        Value::Tuple(shape) => Ok(try_idx2crd(index, shape)?),
        Value::Composed(a) => of_composed(index, a),
        other => of_layout(index, &other.layout()?),
    }
}

/// The natural coordinate to which a layout gives this index. A tuple has an index for each mode.
pub(super) fn of_layout(index: &IntTuple, a: &Layout) -> Result<IntTuple, Refusal> {
    let Some(int) = index.as_int() else {
        return by_mode(index, a);
    };
    if !int.basis().is_none() || a.has_basis() {
        return Err(Refusal::new(format!(
            "`{}` has no coordinate of the index {int}: give plain integers and plain strides",
            cut(&a.to_string())
        )));
    }
    // CuTe's formula, which is right for compact layouts and for some others.
    if let Ok(coord) = try_idx2crd_strided(index, &a.shape(), &a.stride())
        && a.try_call(&coord).is_ok_and(|found| found == *index)
    {
        return Ok(coord);
    }
    few_coordinates(
        "the coordinate of an index of a layout that is not compact",
        a.size(),
    )?;
    let found = (0..a.size()).find(|&c| a.at(c) == int.value());
    natural(found, int, &a.shape(), a)
}

fn by_mode(index: &IntTuple, a: &Layout) -> Result<IntTuple, Refusal> {
    if index.has_underscore() || index.rank() != a.rank() {
        return Err(Refusal::new(format!(
            "`{index}` does not fit the shape {}: give an index, or one for each mode",
            a.shape()
        )));
    }
    let modes = (0..a.rank()).map(|i| of_layout(&index.mode(i), &a.mode(i)));
    Ok(IntTuple::tuple(&modes.collect::<Result<Vec<_>, _>>()?))
}

fn of_composed(index: &IntTuple, a: &Composed) -> Result<IntTuple, Refusal> {
    let Some(int) = index.as_int() else {
        return Err(Value::Tuple(*index).not("an index"));
    };
    let found = coordinates(a, int.value())?.next();
    natural(found, int, &a.outer().shape(), a)
}

/// The 1-D coordinates to which a composed layout gives an index.
fn coordinates(a: &Composed, index: i64) -> Result<impl Iterator<Item = i64>, Refusal> {
    let size = a.outer().size();
    few_coordinates("the coordinate of an index of a composed layout", size)?;
    let layout = a.by_reference();
    Ok((0..size).filter(move |&c| {
        let value = layout.call(&IntTuple::from(c)).as_int();
        value.map(Int::value) == Some(index)
    }))
}

/// A 1-D coordinate that was found, in its natural form.
fn natural(
    found: Option<i64>,
    index: Int,
    shape: &IntTuple,
    a: &impl ToString,
) -> Result<IntTuple, Refusal> {
    let Some(c) = found else {
        return Err(Refusal::new(format!(
            "`{}` gives no coordinate the index {index}: give one of its indices",
            cut(&a.to_string())
        )));
    };
    let coord = try_idx2crd(&IntTuple::from(c), shape)?;
    Ok(if index.is_static() && shape.is_static() {
        coord.to_static()
    } else {
        coord
    })
}

/// `get_hier_coord`, `get_flat_coord` and `get_1d_coord`.
pub(super) fn in_form(name: &str, index: &IntTuple, a: &Value) -> Result<Value, Refusal> {
    let shape = a.shape()?;
    let coord = match a {
        Value::Tuple(shape) => of_layout(index, &Layout::try_col_major(shape)?)?,
        other => of_index(index, other)?,
    };
    Ok(match name {
        "get_1d_coord" => Value::Tuple(linear_coordinate(&coord, &shape)),
        "get_flat_coord" if shape.is_tuple() => {
            let modes =
                (0..shape.rank()).map(|i| linear_coordinate(&coord.mode(i), &shape.mode(i)));
            Value::Tuple(IntTuple::tuple(&modes.collect::<Vec<_>>()))
        }
        _ => Value::Tuple(coord),
    })
}

/// All coordinates to which a layout gives an index, in all forms.
pub(super) fn all_of_index(a: &Value, index: i64) -> Result<Value, Refusal> {
    let Value::Composed(a) = a else {
        let a = a.layout()?;
        few_coordinates("coordinates_of", a.size())?;
        return Ok(Value::List(picture::coordinates_of(&a, index).collect()));
    };
    let shape = Layout::try_col_major(&a.outer().shape())?;
    let forms =
        coordinates(a, index)?.flat_map(|c| picture::coordinates_of(&shape, c).collect::<Vec<_>>());
    Ok(Value::List(forms.collect()))
}

/// The number of indices of a composed layout, from the least or 0 to the greatest.
pub(crate) fn cosize_of_composed(a: &Composed) -> Result<i64, Refusal> {
    few_coordinates("the cosize of a composed layout", a.outer().size())?;
    Ok(a.by_reference().cosize())
}

/// [`cosize_of_composed`], which is static if nothing but the inner transform can be dynamic.
pub(super) fn cosize(a: &Composed) -> Result<Value, Refusal> {
    let cosize = cosize_of_composed(a)?;
    let is_static = a.outer().is_static() && a.offset().is_static();
    Ok(int(if is_static {
        Int::fixed(cosize)
    } else {
        Int::dynamic(cosize)
    }))
}
