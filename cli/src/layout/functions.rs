//! The functions of the calculator, by CuTe's names.

use cutlet_layout_core::*;

use super::refusal::Refusal;
use super::value::Value;

/// The functions' signatures, by topic. CuTe's template arguments are arguments after the first: `take<1,3>(A)` and
/// `take(A, 1, 3)` are the same.
pub const SIGNATURES: &[(&str, &[&str])] = &[
    (
        "Algebra",
        &[
            "composition(A, tiler)",
            "complement(A)",
            "complement(A, cotarget)",
            "coalesce(A)",
            "coalesce(A, profile)",
            "filter(A)",
            "filter(A, profile)",
            "filter_zeros(A)",
            "right_inverse(A)",
            "left_inverse(A)",
            "max_common_layout(A, B)",
            "max_common_vector(A, B)",
            "nullspace(A)",
            "domain_distribute(shape, n)",
        ],
    ),
    (
        "Division and product",
        &[
            "logical_divide(A, tiler)",
            "zipped_divide(A, tiler)",
            "tiled_divide(A, tiler)",
            "flat_divide(A, tiler)",
            "logical_product(A, tiler)",
            "zipped_product(A, tiler)",
            "tiled_product(A, tiler)",
            "flat_product(A, tiler)",
            "blocked_product(A, B)",
            "raked_product(A, B)",
            "tile_to_shape(A, shape)",
            "tile_to_shape(A, shape, order)",
        ],
    ),
    (
        "Making layouts",
        &[
            "make_layout(A, …)",
            "make_layout(shape, stride)",
            "make_layout(shape, LayoutRight)",
            "make_ordered_layout(shape, order)",
            "make_layout_like(A)",
            "make_fragment_like(A)",
            "make_identity_layout(shape)",
            "make_composed_layout(inner, offset, A)",
            "make_tile(tiler, …)",
            "make_shape(i, …)",
            "make_stride(i, …)",
            "make_coord(i, …)",
            "make_tuple(i, …)",
        ],
    ),
    (
        "Parts of layouts and tuples",
        &[
            "rank(A, path…)",
            "depth(A, path…)",
            "size(A, path…)",
            "cosize(A, path…)",
            "shape(A, path…)",
            "stride(A, path…)",
            "layout(A, path…)",
            "get(A, path…)",
            "select(A, i, …)",
            "take(A, begin, end)",
            "group(A, begin, end)",
            "flatten(A)",
            "unflatten(A, profile)",
            "append(A, B)",
            "prepend(A, B)",
            "replace(A, i, B)",
            "with_shape(A, shape)",
            "slice(coord, A)",
            "dice(coord, A)",
            "slice_and_offset(coord, A)",
        ],
    ),
    (
        "Elements of other widths",
        &[
            "upcast(A, n)",
            "downcast(A, n)",
            "recast_layout(A, old_bits, new_bits)",
        ],
    ),
    (
        "Coordinates",
        &[
            "idx2crd(index, shape)",
            "idx2crd(index, shape, stride)",
            "crd2idx(coord, shape)",
            "crd2idx(coord, shape, stride)",
            "crd2crd(coord, from, to)",
            "get_hier_coord(A, index)",
            "get_flat_coord(A, index)",
            "get_1d_coord(A, index)",
            "coordinates_of(A, index)",
        ],
    ),
    (
        "Integers and int tuples",
        &[
            "product(t)",
            "product_each(t)",
            "prefix_product(t)",
            "inner_product(a, b)",
            "compact_col_major(shape)",
            "compact_col_major(shape, start)",
            "compact_row_major(shape)",
            "compact_row_major(shape, start)",
            "compact_order(shape, order)",
            "shape_div(a, b)",
            "shape_mod(a, b)",
            "layout_div(A, n)",
            "ceil_div(a, b)",
            "round_up(a, b)",
            "safe_div(a, b)",
            "gcd(a, b)",
        ],
    ),
    (
        "Relations",
        &[
            "congruent(a, b)",
            "weakly_congruent(a, b)",
            "compatible(a, b)",
            "evenly_divides(shape, tiler)",
            "lex_less(a, b)",
            "colex_less(a, b)",
            "elem_less(a, b)",
            "is_static(A)",
        ],
    ),
];

fn name_of(signature: &str) -> &str {
    signature.split('(').next().unwrap_or(signature)
}

fn signatures(name: &str) -> impl Iterator<Item = &'static str> {
    let all = SIGNATURES
        .iter()
        .flat_map(|(_, signatures)| signatures.iter().copied());
    all.filter(move |signature| name_of(signature) == name)
}

/// CuTe's name of a function that has another name in Rust.
fn canonical(name: &str) -> &str {
    match name {
        "ordered_layout" => "make_ordered_layout",
        "layout_like" => "make_layout_like",
        "fragment_like" => "make_fragment_like",
        "identity" => "make_identity_layout",
        "recast" => "recast_layout",
        "group_modes" => "group",
        "concat" => "make_layout",
        other => other,
    }
}

/// Whether there is a function of this name.
pub fn is_known(name: &str) -> bool {
    signatures(canonical(name)).next().is_some()
}

/// The operation of this name, if it can be explained.
pub fn operation(name: &str) -> Option<Operation> {
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
pub fn tiler_of(operation: Operation, tiler: &Value) -> Result<Tiler, Refusal> {
    match operation {
        Operation::BlockedProduct | Operation::RakedProduct => Ok(Tiler::layout(&tiler.layout()?)),
        _ => tiler.tiler(),
    }
}

/// `tile_to_shape`, for swizzled atoms too.
fn tile_to_shape(block: &Value, shape: &IntTuple, order: &IntTuple) -> Result<Value, Refusal> {
    Ok(match block {
        Value::Swizzled(atom) => Value::Swizzled(atom.try_tile_to_shape(shape, order)?),
        block => Value::Layout(try_tile_to_shape(&block.layout()?, shape, order)?),
    })
}

/// Calls a function by name.
pub fn call(name: &str, arguments: &[Value]) -> Result<Value, Refusal> {
    use Value::{Composed, Sliced, Swizzle, Swizzled, Truth, Tuple};
    let name = canonical(name);
    let layout = Value::Layout;
    Ok(match (name, arguments) {
        ("composition", [Swizzled(a), b]) => Swizzled(a.try_composition_by_mode(&b.tiler()?)?),
        ("composition", [Composed(a), b]) => {
            Composed(Box::new(a.try_composition_by_mode(&b.tiler()?)?))
        }
        ("logical_divide", [Swizzled(a), b]) => Swizzled(a.try_logical_divide(&b.tiler()?)?),
        ("logical_divide", [Composed(a), b]) => {
            Composed(Box::new(a.try_logical_divide(&b.tiler()?)?))
        }
        ("zipped_divide", [Swizzled(a), b]) => Swizzled(a.try_zipped_divide(&b.tiler()?)?),
        ("zipped_divide", [Composed(a), b]) => {
            Composed(Box::new(a.try_zipped_divide(&b.tiler()?)?))
        }
        ("tiled_divide", [Swizzled(a), b]) => Swizzled(a.try_tiled_divide(&b.tiler()?)?),
        ("tiled_divide", [Composed(a), b]) => Composed(Box::new(a.try_tiled_divide(&b.tiler()?)?)),
        ("flat_divide", [Swizzled(a), b]) => Swizzled(a.try_flat_divide(&b.tiler()?)?),
        ("flat_divide", [Composed(a), b]) => Composed(Box::new(a.try_flat_divide(&b.tiler()?)?)),

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
        ("right_inverse", [a]) => layout(try_right_inverse(&a.layout()?)?),
        ("left_inverse", [a]) => layout(try_left_inverse(&a.layout()?)?),
        ("max_common_layout", [a, b]) => layout(try_max_common_layout(&a.layout()?, &b.layout()?)?),
        ("max_common_vector", [a, b]) => int(try_max_common_vector(&a.layout()?, &b.layout()?)?),
        ("nullspace", [a]) => layout(try_nullspace(&a.layout()?)?),
        ("domain_distribute", [shape, n]) => {
            layout(try_domain_distribute(&shape.tuple()?, n.int()?)?)
        }
        ("tile_to_shape", [a, shape]) => {
            let shape = shape.tuple()?;
            let order: Vec<i64> = (0..shape.rank() as i64).collect();
            tile_to_shape(a, &shape, &IntTuple::fixed(&order))?
        }
        ("tile_to_shape", [a, shape, order]) => tile_to_shape(a, &shape.tuple()?, &order.tuple()?)?,

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
        ("make_composed_layout", [Swizzle(inner), offset, outer]) => Swizzled(ComposedLayout::new(
            *inner,
            offset.tuple()?,
            outer.layout()?,
        )),
        ("make_composed_layout", [inner, offset, outer]) => Composed(Box::new(
            ComposedLayout::new(inner.layout()?, offset.tuple()?, outer.layout()?),
        )),
        ("make_tile", [_, ..]) => {
            let tilers: Vec<Tiler> = arguments
                .iter()
                .map(Value::tiler)
                .collect::<Result<_, _>>()?;
            Value::Tiler(Tiler::try_tuple(&tilers)?)
        }
        ("make_shape" | "make_stride" | "make_coord" | "make_tuple", modes) => {
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
        ("layout", [a, path @ ..]) => part(&layout(a.layout()?), path)?,
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
        ("append", [Tuple(t), Tuple(last)]) => Tuple(t.try_append(last)?),
        ("append", [a, b]) => layout(a.layout()?.try_append(&b.layout()?)?),
        ("prepend", [Tuple(t), Tuple(first)]) => Tuple(t.try_prepend(first)?),
        ("prepend", [a, b]) => layout(a.layout()?.try_prepend(&b.layout()?)?),
        ("replace", [Tuple(t), i, Tuple(mode)]) => Tuple(t.try_replace(i.mode()?, mode)?),
        ("replace", [a, i, b]) => layout(a.layout()?.try_replace(i.mode()?, &b.layout()?)?),
        ("with_shape", [a, shape]) => layout(a.layout()?.try_with_shape(&shape.tuple()?)?),
        ("slice", [coord, a]) => layout(try_slice(&coord.tuple()?, &a.layout()?)?),
        ("dice", [coord, a]) => layout(try_dice(&coord.tuple()?, &a.layout()?)?),
        ("slice_and_offset", [coord, a]) => {
            let (kept, offset) = try_slice_and_offset(&coord.tuple()?, &a.layout()?)?;
            Sliced(kept, offset)
        }

        ("upcast", [a, n]) => layout(try_upcast(&a.layout()?, n.int()?.value())?),
        ("downcast", [a, n]) => layout(try_downcast(&a.layout()?, n.int()?.value())?),
        ("recast_layout", [Swizzled(a), old, new]) => {
            Swizzled(a.try_recast(old.int()?.value(), new.int()?.value())?)
        }
        ("recast_layout", [Swizzle(a), old, new]) => {
            Swizzle(a.try_recast(old.int()?.value(), new.int()?.value())?)
        }
        ("recast_layout", [a, old, new]) => layout(try_recast(
            &a.layout()?,
            old.int()?.value(),
            new.int()?.value(),
        )?),

        ("idx2crd", [index, shape]) => Tuple(try_idx2crd(&index.tuple()?, &shape.tuple()?)?),
        ("idx2crd", [index, shape, stride]) => Tuple(try_idx2crd_strided(
            &index.tuple()?,
            &shape.tuple()?,
            &stride.tuple()?,
        )?),
        ("crd2idx", [coord, Tuple(shape), stride]) => {
            Tuple(try_crd2idx(&coord.tuple()?, shape, &stride.tuple()?)?)
        }
        ("crd2idx", [coord, a]) => layout(a.layout()?).apply(std::slice::from_ref(coord))?,
        ("crd2crd", [coord, from, to]) => {
            Tuple(try_crd2crd(&coord.tuple()?, &from.tuple()?, &to.tuple()?)?)
        }
        ("get_hier_coord", [a, index]) => Tuple(a.layout()?.get_hier_coord(index.int()?)),
        ("get_flat_coord", [a, index]) => Tuple(a.layout()?.get_flat_coord(index.int()?)),
        ("get_1d_coord", [a, index]) => int(a.layout()?.get_1d_coord(index.int()?)),
        ("coordinates_of", [a, index]) => {
            let a = a.layout()?;
            if a.size() > MOST_COORDINATES {
                return Err(Refusal::new(format!(
                    "coordinates_of looks at all coordinates: {} are more than {MOST_COORDINATES}",
                    a.size()
                )));
            }
            Value::List(picture::coordinates_of(&a, index.int()?.value()).collect())
        }

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

        _ => return Err(wrong_arguments(name, arguments)),
    })
}

/// The most coordinates that are looked through one by one.
const MOST_COORDINATES: i64 = 1 << 20;

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

/// The layout or int tuple at a path.
fn part(value: &Value, path: &[Value]) -> Result<Value, Refusal> {
    let path = numbers(path)?;
    Ok(match value {
        Value::Layout(layout) => Value::Layout(layout.get(&path)),
        Value::Swizzled(layout) if path.is_empty() => Value::Layout(*layout.outer()),
        Value::Composed(layout) if path.is_empty() => Value::Layout(*layout.outer()),
        other => Value::Tuple(other.tuple()?.get(&path)),
    })
}
