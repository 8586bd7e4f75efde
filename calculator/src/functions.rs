//! The functions of the calculator, by CuTe's names.

mod coordinates;
mod extended;
mod of_composed;
mod partition;
mod slicing;
pub(crate) mod tiled;

pub(crate) use coordinates::cosize_of_composed;

use cutlet_layout_core::*;

use crate::analysis::find_swizzle;
use crate::compose::compose;
use crate::composed::Inner;
use crate::pasted;
use crate::refusal::Refusal;
use crate::signatures::{canonical, signatures};
use crate::tma::TmaBox;
use crate::value::Value;

/// Calls a function by name. A refusal with a column says that the arguments do not fit the signature.
pub fn call(name: &str, arguments: &[Value]) -> Result<Value, Refusal> {
    use Value::{Truth, Tuple};
    let name = canonical(name);
    let topics = [
        slicing::call,
        partition::call,
        extended::call,
        tiled::call,
        of_memory,
    ];
    for topic in topics {
        if let Some(value) = topic(name, arguments)? {
            return Ok(value);
        }
    }
    let own = match arguments {
        [Value::Composed(a), rest @ ..] => of_composed::call(name, a, rest)?,
        [a, Value::Composed(b)] => of_composed::call_with(name, a, b)?,
        [Value::Tiler(tiler), path @ ..] => of_composed::of_tiler(name, tiler, path)?,
        _ => None,
    };
    if let Some(value) = own {
        return Ok(value);
    }
    let layout = Value::Layout;
    Ok(match (name, arguments) {
        ("composition", [a, b]) => compose(a, b)?,
        (_, [a, b]) if let Some(operation) = operation(name) => {
            layout(operation.apply(&a.layout()?, &tiler_of(operation, b)?)?)
        }

        ("complement", [a]) => {
            let a = a.layout()?;
            layout(try_complement(&a, &IntTuple::int(filter(&a).cosize_int()))?)
        }
        ("complement", [a, target]) => layout(try_complement(&a.layout()?, &target.tuple()?)?),
        ("coalesce", [a]) => layout(coalesce(&a.layout()?)),
        ("coalesce", [a, profile]) => {
            layout(try_coalesce_by_mode(&a.layout()?, &profile.tuple()?)?)
        }
        ("filter", [a]) => layout(filter(&a.layout()?)),
        ("filter", [a, profile]) => layout(try_filter_by_mode(&a.layout()?, &profile.tuple()?)?),
        ("filter_zeros", [a]) => layout(filter_zeros(&a.layout()?)),
        // A swizzle undoes itself.
        ("right_inverse" | "left_inverse", [Value::Inner(Inner::Swizzle(a))]) => (*a).into(),
        ("right_inverse", [a]) => layout(try_right_inverse(&a.layout()?)?),
        ("left_inverse", [a]) => layout(try_left_inverse(&a.layout()?)?),
        ("max_common_layout", [a, b]) => layout(try_max_common_layout(&a.layout()?, &b.layout()?)?),
        ("max_common_vector", [a, b]) => int(try_max_common_vector(&a.layout()?, &b.layout()?)?),
        ("nullspace", [a]) => layout(try_nullspace(&a.layout()?)?),
        ("domain_distribute", [shape, n]) => {
            layout(try_domain_distribute(&shape.tuple()?, n.int()?)?)
        }
        ("tile_to_shape", [a, shape, order @ ..]) => {
            let shape = shape.tuple()?;
            let order = self::order(&shape, order)?;
            layout(try_tile_to_shape(&a.layout()?, &shape, &order)?)
        }

        ("contract", [Value::Notation(notation), a, b, c]) => {
            let [a, b, c] = [a.layout()?, b.layout()?, c.layout()?];
            Value::Contraction(Box::new(notation.modes([&a, &b, &c])?.layouts()?))
        }

        ("make_layout", [Tuple(shape)]) => layout(Layout::try_col_major(shape)?),
        ("make_layout", [Tuple(shape), Tuple(stride)]) => {
            layout(Layout::try_from_shape_stride(shape, stride)?)
        }
        ("make_layout", [shape, Value::Order { left: true }]) => {
            layout(Layout::try_col_major(&shape.tuple()?)?)
        }
        ("make_layout", [shape, Value::Order { left: false }]) => {
            layout(Layout::try_row_major(&shape.tuple()?)?)
        }
        ("make_layout", [_, ..]) => {
            let modes: Vec<Layout> = arguments
                .iter()
                .map(Value::layout)
                .collect::<Result<_, _>>()?;
            layout(Layout::try_concat(&modes)?)
        }
        ("make_ordered_layout", [shape, order]) => {
            layout(try_ordered_layout(&shape.tuple()?, &order.tuple()?)?)
        }
        ("make_layout_like", [a]) => layout(try_layout_like(&a.layout()?)?),
        ("make_fragment_like", [a]) => layout(try_fragment_like(&a.layout()?)?),
        ("make_identity_layout", [shape]) => layout(try_identity(&shape.tuple()?)?),
        ("make_composed_layout", [inner, offset, outer]) => pasted::composed(inner, offset, outer)?,
        ("make_tile", [_, ..]) => {
            let tilers: Vec<Tiler> = arguments
                .iter()
                .map(Value::tiler)
                .collect::<Result<_, _>>()?;
            Value::Tiler(Tiler::try_tuple(&tilers)?)
        }
        ("make_shape" | "make_stride" | "make_coord" | "make_step" | "make_tuple", modes) => {
            let mut tuple = IntTuple::EMPTY;
            for mode in modes {
                tuple = tuple.try_append(&mode.tuple()?)?;
            }
            Tuple(tuple)
        }

        ("rank", [a, path @ ..]) => number(part(a, path)?.tuple()?.rank()),
        ("depth", [a, path @ ..]) => number(part(a, path)?.tuple()?.depth()),
        ("size", [a, path @ ..]) => match part(a, path)? {
            Value::Layout(a) => int(a.size_int()),
            a => int(try_product(&a.tuple()?)?),
        },
        ("cosize", [a, path @ ..]) => int(part(&layout(a.layout()?), path)?.layout()?.cosize_int()),
        ("shape", [a, path @ ..]) => Tuple(part(a, path)?.tuple()?),
        ("stride", [a, path @ ..]) => Tuple(part(&layout(a.layout()?), path)?.layout()?.stride()),
        ("layout" | "mode", [a, path @ ..]) => part(&layout(a.layout()?), path)?,
        ("get", [a, path @ ..]) => part(a, path)?,
        ("select", [Tuple(t), modes @ ..]) => Tuple(t.try_select(&numbers(modes)?)?),
        ("select", [a, modes @ ..]) => layout(a.layout()?.try_select(&numbers(modes)?)?),
        ("take", [Tuple(t), begin, end]) => Tuple(t.try_take(begin.mode()?, end.mode()?)?),
        ("take", [a, begin, end]) => layout(a.layout()?.try_take(begin.mode()?, end.mode()?)?),
        ("group", [Tuple(t), begin, end]) => Tuple(t.try_group(begin.mode()?, end.mode()?)?),
        ("group", [a, begin, end]) => layout(a.layout()?.try_group(begin.mode()?, end.mode()?)?),
        ("flatten", [Tuple(t)]) => Tuple(t.flatten()),
        ("flatten", [a]) => layout(a.layout()?.flatten()),
        ("unflatten", [Tuple(t), profile]) => Tuple(t.try_unflatten(&profile.tuple()?)?),
        ("unflatten", [a, profile]) => layout(a.layout()?.try_unflatten(&profile.tuple()?)?),
        ("replace", [Tuple(t), i, Tuple(mode)]) => Tuple(t.try_replace(i.mode()?, mode)?),
        ("replace", [a, i, b]) => layout(a.layout()?.try_replace(i.mode()?, &b.layout()?)?),
        ("with_shape", [a, shape]) => layout(a.layout()?.try_with_shape(&shape.tuple()?)?),
        ("upcast", [a, n]) => layout(try_upcast(&a.layout()?, n.int()?.value())?),
        ("downcast", [a, n]) => layout(try_downcast(&a.layout()?, n.int()?.value())?),
        ("recast_layout", [Value::Inner(Inner::Swizzle(a)), old, new]) => {
            a.try_recast(old.int()?.value(), new.int()?.value())?.into()
        }
        ("recast_layout", [a, old, new]) => layout(try_recast(
            &a.layout()?,
            old.int()?.value(),
            new.int()?.value(),
        )?),

        ("idx2crd", [index, a]) => Tuple(coordinates::of_index(&index.tuple()?, a)?),
        ("idx2crd", [index, shape, stride]) => {
            let a = Layout::try_from_shape_stride(&shape.tuple()?, &stride.tuple()?)?;
            Tuple(coordinates::of_layout(&index.tuple()?, &a)?)
        }
        ("crd2idx", [coord, Tuple(shape), stride]) => {
            Tuple(try_crd2idx(&coord.tuple()?, shape, &stride.tuple()?)?)
        }
        ("crd2idx", [coord, a]) => layout(a.layout()?).apply(std::slice::from_ref(coord))?,
        ("crd2crd", [coord, from, to]) => {
            Tuple(try_crd2crd(&coord.tuple()?, &from.tuple()?, &to.tuple()?)?)
        }
        ("get_hier_coord" | "get_flat_coord" | "get_1d_coord", [a, index]) => {
            coordinates::in_form(name, &IntTuple::int(index.int()?), a)?
        }
        ("coordinates_of", [a, index]) => coordinates::all_of_index(a, index.int()?.value())?,

        ("product", [t]) => int(try_product(&t.tuple()?)?),
        ("product_each", [t]) => Tuple(try_product_each(&t.tuple()?)?),
        ("prefix_product", [t]) => Tuple(try_prefix_product(&t.tuple()?)?),
        ("inner_product", [a, b]) => int(try_inner_product(&a.tuple()?, &b.tuple()?)?),
        ("compact_col_major", [shape]) => Tuple(try_compact_col_major(&shape.tuple()?, Int::ONE)?),
        ("compact_col_major", [shape, start]) => {
            Tuple(try_compact_col_major(&shape.tuple()?, start.int()?)?)
        }
        ("compact_row_major", [shape]) => Tuple(try_compact_row_major(&shape.tuple()?, Int::ONE)?),
        ("compact_row_major", [shape, start]) => {
            Tuple(try_compact_row_major(&shape.tuple()?, start.int()?)?)
        }
        ("compact_order", [shape, order]) => {
            Tuple(try_compact_order(&shape.tuple()?, &order.tuple()?)?)
        }
        ("shape_div", [a, b]) => Tuple(try_shape_div(&a.tuple()?, &b.tuple()?)?),
        ("shape_mod", [a, b]) => Tuple(try_shape_mod(&a.tuple()?, &b.tuple()?)?),
        ("layout_div", [a, n]) => layout(try_layout_div(&a.layout()?, n.int()?)?),
        ("ceil_div", [a, b]) => Tuple(try_ceil_div(&a.tuple()?, &b.tuple()?)?),
        ("round_up", [a, b]) => Tuple(try_round_up(&a.tuple()?, &b.tuple()?)?),
        ("safe_div", [a, b]) => int(try_safe_div(a.int()?, b.int()?)?),
        ("gcd", [a, b]) => int(gcd(a.int()?, b.int()?)),

        ("congruent", [a, b]) => Truth(congruent(&a.tuple()?, &b.tuple()?)),
        ("weakly_congruent", [a, b]) => Truth(weakly_congruent(&a.tuple()?, &b.tuple()?)),
        ("compatible", [a, b]) => Truth(compatible(&a.tuple()?, &b.tuple()?)),
        ("evenly_divides", [shape, tiler]) => {
            Truth(evenly_divides(&shape.tuple()?, &tiler.tiler()?))
        }
        ("lex_less", [a, b]) => less(compare_lexicographic(&a.tuple()?, &b.tuple()?)),
        ("colex_less", [a, b]) => less(compare_colexicographic(&a.tuple()?, &b.tuple()?)),
        ("elem_less", [a, b]) => less(compare_elementwise(&a.tuple()?, &b.tuple()?)),
        ("is_static", [Tuple(t)]) => Truth(t.is_static()),
        ("is_static", [a]) => Truth(a.layout()?.is_static()),
        ("is_integral", [a]) => Truth(is_int(a, Int::is_integral)),
        ("is_std_integral", [a]) => Truth(is_int(a, Int::is_std_integral)),
        ("is_constant", [a, n]) => {
            let n = n.int()?.value();
            Truth(is_int(a, |a| a.is_constant(n)))
        }

        _ => return Err(wrong_arguments(name, arguments)),
    })
}

/// What depends on how memory is accessed: swizzles and boxes of TMA.
fn of_memory(name: &str, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    let boxes = |tensor, tile, bits: &Value, swizzle| {
        let boxes = TmaBox::new(tensor, tile, bits.int()?.value(), swizzle)?;
        Ok(Some(Value::TmaBox(Box::new(boxes))))
    };
    match (name, arguments) {
        ("find_swizzle", [bits, accesses @ ..]) if !accesses.is_empty() => {
            Ok(Some(find_swizzle(accesses, bits.int()?.value())?.into()))
        }
        ("tma_box", [tensor, tile, bits]) => boxes(tensor, tile, bits, None),
        ("tma_box", [tensor, tile, bits, swizzle]) => boxes(tensor, tile, bits, Some(swizzle)),
        _ => Ok(None),
    }
}

/// The order of the modes of a shape: from the left, unless an order is given.
fn order(shape: &IntTuple, given: &[Value]) -> Result<IntTuple, Refusal> {
    match given {
        [] => {
            let order: Vec<i64> = (0..shape.rank() as i64).collect();
            Ok(IntTuple::fixed(&order))
        }
        [order] => order.tuple(),
        _ => Err(Refusal::new("tile_to_shape takes one order")),
    }
}

/// The operation of this name, if layout-core explains it.
pub(crate) fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "composition" => Operation::Composition,
        "logical_divide" => Operation::LogicalDivide,
        "zipped_divide" => Operation::ZippedDivide,
        "tiled_divide" => Operation::TiledDivide,
        "flat_divide" => Operation::FlatDivide,
        "logical_product" => Operation::LogicalProduct,
        "zipped_product" => Operation::ZippedProduct,
        "tiled_product" => Operation::TiledProduct,
        "flat_product" => Operation::FlatProduct,
        "blocked_product" => Operation::BlockedProduct,
        "raked_product" => Operation::RakedProduct,
        _ => return None,
    })
}

/// The second argument of an operation as a tiler. A shape tiles by mode, except in blocked and raked products, where
/// it is a layout's shape.
pub(crate) fn tiler_of(operation: Operation, tiler: &Value) -> Result<Tiler, Refusal> {
    match operation {
        Operation::BlockedProduct | Operation::RakedProduct => Ok(Tiler::layout(&tiler.layout()?)),
        _ => tiler.tiler(),
    }
}

fn wrong_arguments(name: &str, arguments: &[Value]) -> Refusal {
    let ways: Vec<&str> = signatures(name).collect();
    let count = arguments.len();
    let message = format!(
        "the signature is {}; there {} {count} argument{}",
        ways.join(" or "),
        if count == 1 { "is" } else { "are" },
        if count == 1 { "" } else { "s" }
    );
    Refusal {
        column: Some(0),
        message,
    }
}

fn int(int: Int) -> Value {
    Value::Tuple(IntTuple::int(int))
}

/// A rank or depth, which is static because the type tells it.
fn number(number: usize) -> Value {
    int(Int::fixed(number as i64))
}

fn numbers(modes: &[Value]) -> Result<Vec<usize>, Refusal> {
    modes.iter().map(Value::mode).collect()
}

fn less(ordering: Option<std::cmp::Ordering>) -> Value {
    Value::Truth(ordering == Some(std::cmp::Ordering::Less))
}

/// Whether a value is an integer with a property.
fn is_int(value: &Value, has: impl FnOnce(Int) -> bool) -> bool {
    value.int().is_ok_and(has)
}

/// The layout or int tuple at a path.
fn part(value: &Value, path: &[Value]) -> Result<Value, Refusal> {
    let is_several = matches!(
        value,
        Value::Several(_) | Value::Sliced(_) | Value::Contraction(_)
    );
    if let (true, [i, rest @ ..]) = (is_several, path) {
        let parts = value.parts().unwrap_or_default();
        let Some(found) = parts.get(i.mode()?) else {
            return Err(value.not(&format!("a value with a part {i}, counted from 0,")));
        };
        return part(found, rest);
    }
    let path = numbers(path)?;
    Ok(match value {
        Value::Layout(layout) => Value::Layout(layout.try_get(&path)?),
        other if path.is_empty() => other.clone(),
        other => Value::Tuple(other.tuple()?.get(&path)),
    })
}
