//! Notation that is pasted from C++ and Python: type names with angle brackets, `Int<8>{}`, `cute.` before a name.

use cutlet_layout_core::{Int, IntTuple, Layout, Swizzle, Tiler};

use crate::calculator::parenthesised;
use crate::composed::Composed;
use crate::functions::tiled;
use crate::refusal::Refusal;
use crate::value::Value;

/// Names that stand before `::` or `.` and say nothing.
pub(crate) const NAMESPACES: [&str; 8] = [
    "cute", "cutlass", "pycute", "std", "utils", "ct", "CopyAtom", "MmaAtom",
];

/// Words before a variable's name in a declaration. An integer's type says nothing: all integers have 64 bits here.
pub(crate) const DECLARES: [&str; 20] = [
    "auto",
    "const",
    "constexpr",
    "static",
    "using",
    "let",
    "Layout",
    "Tensor",
    "int",
    "unsigned",
    "long",
    "short",
    "size_t",
    "int32_t",
    "int64_t",
    "uint32_t",
    "uint64_t",
    "int16_t",
    "uint16_t",
    "bool",
];

/// How a function of CuTe prints its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prints {
    /// As a line.
    Line,
    /// As a line, and a table below it.
    Table,
    /// As a LaTeX document.
    Latex,
}

/// What a function prints, if it is one that prints. Its value is its argument.
pub(crate) fn prints(name: &str) -> Option<Prints> {
    Some(match name {
        "print" | "printf" => Prints::Line,
        "print_layout" => Prints::Table,
        "print_latex" => Prints::Latex,
        _ => return None,
    })
}

/// The value of a name that needs no arguments.
pub(crate) fn constant(name: &str) -> Option<Value> {
    Some(match name {
        "LayoutLeft" | "GenColMajor" => Value::Order { left: true },
        "LayoutRight" | "GenRowMajor" => Value::Order { left: false },
        "Underscore" | "None" | "X" | "InOrder" => Value::Tuple(IntTuple::UNDERSCORE),
        _ => return None,
    })
}

/// Whether values of this type can be written with angle brackets or parentheses behind its name.
pub(crate) fn is_type(name: &str) -> bool {
    matches!(
        name,
        "Int"
            | "C"
            | "Constant"
            | "Shape"
            | "Stride"
            | "Coord"
            | "Step"
            | "tuple"
            | "Tile"
            | "Layout"
            | "Sw"
            | "S"
            | "Swizzle"
            | "make_swizzle"
            | "ComposedLayout"
            | "ScaledBasis"
            | "E"
            | "Tv"
            | "TiledMma"
            | "TiledCopy"
    )
}

/// The value of a type with its arguments, such as `Layout<Shape<_2,_3>, Stride<_3,_1>>`.
pub(crate) fn of_type(name: &str, arguments: Vec<Value>) -> Result<Value, Refusal> {
    match (name, arguments.as_slice()) {
        ("Int" | "C" | "Constant", [value]) => Ok(Value::Tuple(value.tuple()?.to_static())),
        ("Shape" | "Stride" | "Coord" | "Step" | "tuple", _) => tuple(arguments),
        ("Tile", _) => {
            let tilers: Result<Vec<Tiler>, Refusal> = arguments.iter().map(Value::tiler).collect();
            Ok(Value::Tiler(Tiler::try_tuple(&tilers?)?))
        }
        ("Layout", [shape]) => Ok(Value::Layout(shape.layout()?)),
        ("Layout", [shape, Value::Order { left }]) => {
            let shape = shape.tuple()?;
            Ok(Value::Layout(if *left {
                Layout::try_col_major(&shape)?
            } else {
                Layout::try_row_major(&shape)?
            }))
        }
        ("Layout", [shape, stride]) => Ok(Value::Layout(Layout::try_from_shape_stride(
            &shape.tuple()?,
            &stride.tuple()?,
        )?)),
        ("Sw" | "S" | "Swizzle" | "make_swizzle", [bits, base, shift]) => {
            let [bits, base, shift] = [bits.int()?, base.int()?, shift.int()?].map(Int::value);
            Ok(Swizzle::try_new(bits, base, shift)?.into())
        }
        ("ComposedLayout", [inner, offset, outer]) => composed(inner, offset, outer),
        ("ScaledBasis", [value, directions @ ..]) if !directions.is_empty() => {
            along(value.int()?, directions)
        }
        // The third is the width of an access, which the layout does not have.
        ("Tv", [threads, values] | [threads, values, _]) => {
            let both = [threads.layout()?, values.layout()?];
            Ok(Value::Layout(Layout::try_concat(&both)?))
        }
        ("TiledMma", [atom, warps]) => tiled::mma(atom, warps, None),
        ("TiledMma", [atom, warps, order]) => tiled::mma(atom, warps, Some(order)),
        ("TiledCopy", [atom, threads, values]) => tiled::copy(atom, threads, values),
        ("E", directions) if !directions.is_empty() => along(Int::fixed(1), directions),
        _ => Err(wrong_count(name, arguments.len())),
    }
}

/// A composed layout of its three parts.
pub(crate) fn composed(inner: &Value, offset: &Value, outer: &Value) -> Result<Value, Refusal> {
    let Some(inner) = inner.inner() else {
        return Err(inner.not("a swizzle, a layout or an index table"));
    };
    Ok(Composed::new(inner, offset.tuple()?, outer.layout()?)?.into())
}

/// `Shape<_2,_3>` is a tuple with one argument too; `(2)` is an integer in parentheses, which CuTe prints as a tuple.
fn tuple(arguments: Vec<Value>) -> Result<Value, Refusal> {
    if arguments.is_empty() {
        return Ok(Value::Tuple(IntTuple::EMPTY));
    }
    // A shape of one integer stands for the integer, as `make_layout(make_shape(8))` prints.
    parenthesised(arguments)
}

/// An integer along a direction, the outermost first, as C++ has them.
fn along(value: Int, directions: &[Value]) -> Result<Value, Refusal> {
    let mut text = value.to_string();
    for direction in directions.iter().rev() {
        text += &format!("@{}", direction.mode()?);
    }
    Ok(Value::Tuple(IntTuple::parse(&text)?))
}

fn wrong_count(name: &str, count: usize) -> Refusal {
    let wanted = match name {
        "Int" | "C" | "Constant" => "one integer: Int<8>",
        "Layout" => "a shape and a stride: Layout<Shape<_2,_3>, Stride<_3,_1>>",
        "ComposedLayout" => "an inner transform, an offset and a layout",
        "ScaledBasis" => "a factor and a direction: ScaledBasis<_1,0>",
        "E" => "a direction: E<0>",
        "Tv" => "a layout of threads and one of values",
        "TiledMma" => "an instruction, a layout of warps and perhaps a permutation",
        "TiledCopy" => "an instruction, a layout of threads and one of values",
        _ => "bits, base and shift: Swizzle<3,4,3>",
    };
    Refusal::new(format!(
        "`{name}` takes {wanted}; here are {count} arguments"
    ))
}
