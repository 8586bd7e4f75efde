//! The steps of the operations that layout-core has no words for.

use cutlet_layout_core::{
    Int, IntTuple, Layout, coalesce, filter_zeros, idx2crd, linear_coordinate, try_complement,
};

use super::contraction;
use crate::analysis::banks;
use crate::compose::compose;
use crate::value::Value;

/// The most rows of a table.
const ROWS: i64 = 12;

/// The steps of an operation on its operands, if there is more to say than the result.
pub(super) fn of(name: &str, operands: &[Value], result: Option<&Value>) -> Vec<String> {
    let layouts: Vec<Layout> = operands
        .iter()
        .map_while(|operand| operand.layout().ok())
        .collect();
    match (name, layouts.as_slice(), operands) {
        ("coalesce", [a], _) => merges(a),
        ("filter", [a], _) => {
            let dropped = filter_zeros(a);
            let mut steps = vec![format!("  modes of stride 0 get extent 1: {dropped}")];
            steps.extend(merges(&dropped));
            steps
        }
        ("complement", [a, ..], [_, rest @ ..]) => {
            let target = match rest.first().map(Value::tuple) {
                Some(Ok(target)) => target,
                _ => IntTuple::int(a.cosize_int()),
            };
            gaps(a, &target)
        }
        ("right_inverse", [a], _) => inverse(a, result, true),
        ("left_inverse", [a], _) => inverse(a, result, false),
        ("layout_div" | "shape_div", [a, ..], [_, n]) => quotient(a, n, name == "layout_div"),
        ("shape_mod", [a, ..], [_, n]) => remainder(a, n),
        ("apply", [a, ..], [_, coord @ ..]) => {
            crate::value::coordinate(coord).map_or(Vec::new(), |coord| sum(a, &coord))
        }
        ("crd2idx", _, [coord, a, rest @ ..]) => match (coord.tuple(), with_stride(a, rest)) {
            (Ok(coord), Some(a)) => sum(&a, &coord),
            _ => Vec::new(),
        },
        ("idx2crd", _, [index, shape]) => match (index.int(), shape.tuple()) {
            (Ok(index), Ok(shape)) => digits(index, &shape),
            _ => Vec::new(),
        },
        ("find_swizzle", _, [bits, accesses @ ..]) => match (bits.int(), result) {
            (Ok(bits), Some(swizzle)) => conflicts(accesses, bits.value(), swizzle),
            _ => Vec::new(),
        },
        ("contract", _, [Value::Notation(notation), tensors @ ..]) => {
            let layouts = tensors
                .iter()
                .map(Value::layout)
                .collect::<Result<Vec<_>, _>>();
            match layouts.as_deref() {
                Ok([a, b, c]) => contraction::steps(notation, [a, b, c]),
                _ => Vec::new(),
            }
        }
        ("upcast" | "downcast", [a, ..], [_, n]) => recast(a, n, name == "upcast"),
        _ => Vec::new(),
    }
}

/// What each access costs without a swizzle and with it.
fn conflicts(accesses: &[Value], bits: i64, swizzle: &Value) -> Vec<String> {
    let steps = accesses.iter().flat_map(|access| {
        let swizzled = compose(swizzle, access).ok()?;
        let [before, after] = [access, &swizzled].map(|it| banks(it, bits).ok());
        Some([
            format!("  {access}: {}", before?),
            format!("  {swizzled}: {}", after?),
        ])
    });
    steps.flatten().collect()
}

fn with_stride(shape: &Value, stride: &[Value]) -> Option<Layout> {
    match stride {
        [stride] => Layout::try_from_shape_stride(&shape.tuple().ok()?, &stride.tuple().ok()?).ok(),
        _ => shape.layout().ok(),
    }
}

/// How the modes of a layout merge, from the left.
fn merges(a: &Layout) -> Vec<String> {
    let mut steps = Vec::new();
    let mut last: Option<(Int, Int)> = None;
    for leaf in 0..a.num_leaves() {
        let (shape, stride) = (a.leaf_shape(leaf), a.leaf_stride(leaf));
        last = match last {
            _ if shape.is_constant(1) => {
                steps.push(format!("  {shape}:{stride} has one element: dropped"));
                last
            }
            Some((before, step)) if continues((before, step), (shape, stride)) => {
                let merged = before.checked_mul(shape).unwrap_or(shape);
                steps.push(format!(
                    "  {shape}:{stride} continues {before}:{step}, since {before}*{step} = {stride}: both are {merged}:{step}"
                ));
                Some((merged, step))
            }
            Some((before, step)) => {
                steps.push(format!(
                    "  {shape}:{stride} does not continue {before}:{step}: a mode of its own"
                ));
                Some((shape, stride))
            }
            None => Some((shape, stride)),
        };
    }
    steps
}

/// Whether two modes are one, as far as their integers are known.
fn continues((before, step): (Int, Int), (shape, stride): (Int, Int)) -> bool {
    let both = Layout::concat2(&Layout::leaf(before, step), &Layout::leaf(shape, stride));
    coalesce(&both).num_leaves() == 1
}

/// The gaps between a layout's modes, in the order of strides.
fn gaps(a: &Layout, target: &IntTuple) -> Vec<String> {
    if a.has_basis() {
        return Vec::new();
    }
    let mut modes: Vec<(i64, i64)> = (0..a.num_leaves())
        .map(|leaf| (a.leaf_stride(leaf).value(), a.leaf_shape(leaf).value()))
        .filter(|&(stride, extent)| stride != 0 && extent != 1)
        .collect();
    modes.sort_unstable();
    let sorted: Vec<String> = modes
        .iter()
        .map(|(stride, extent)| format!("{extent}:{stride}"))
        .collect();
    let mut steps = vec![format!(
        "  the modes in the order of strides: {}",
        sorted.join(", ")
    )];
    let mut reached: i64 = 1;
    for (stride, extent) in modes {
        match stride / reached {
            gap if gap > 1 => steps.push(format!(
                "  before stride {stride}, {gap} repetitions fit that are {reached} apart: {gap}:{reached}"
            )),
            _ => steps.push(format!("  before stride {stride} there is no gap")),
        }
        reached = stride.saturating_mul(extent);
    }
    let size = target.size();
    steps.push(format!(
        "  up to {size}, {0} repetitions fit that are {reached} apart: {0}:{reached}",
        size.max(1).saturating_add(reached - 1) / reached.max(1)
    ));
    if let Ok(rest) = try_complement(a, target) {
        steps.push(format!("  coalesced: {}", coalesce(&rest)));
    }
    steps
}

/// The table that shows what an inverse does.
fn inverse(a: &Layout, result: Option<&Value>, right: bool) -> Vec<String> {
    let Some(inverse) = result.and_then(|result| result.layout().ok()) else {
        return Vec::new();
    };
    let (outer, inner, names) = if right {
        (a, &inverse, ["A", "R"])
    } else {
        (&inverse, a, ["R", "A"])
    };
    let mut steps = vec![format!("  A coalesced is {}", coalesce(a))];
    steps.extend(chained(outer, inner, names));
    steps
}

/// Rows `A(B(0)) = A(2) = 4`.
fn chained(outer: &Layout, inner: &Layout, [a, b]: [&str; 2]) -> Vec<String> {
    let size = inner.size();
    let mut rows: Vec<String> = (0..size.min(ROWS))
        .map_while(|c| {
            let between = inner.try_at(c)?;
            let value = outer.try_at(between)?;
            Some(format!("  {a}({b}({c})) = {a}({between}) = {value}"))
        })
        .collect();
    if size > ROWS {
        rows.push(format!("  … and {} more", size - ROWS));
    }
    rows
}

/// The table `R(c) = A(B(c))` of a composition.
pub(super) fn table(a: &Layout, b: &Layout) -> Vec<String> {
    let rows = chained(a, b, ["A", "B"]);
    rows.iter()
        .enumerate()
        .map(|(c, row)| match row.trim_start() {
            row if row.starts_with('A') => format!("  R({c}) = {row}"),
            row => format!("  {row}"),
        })
        .collect()
}

/// How a divisor runs through the extents from the left.
fn quotient(a: &Layout, divisor: &Value, with_strides: bool) -> Vec<String> {
    let Ok(divisor) = divisor.int() else {
        return Vec::new();
    };
    let mut left = divisor.value();
    let mut steps = Vec::new();
    for leaf in 0..a.num_leaves() {
        let extent = a.leaf_shape(leaf).value();
        if left < 1 || extent % left != 0 && left % extent != 0 {
            break;
        }
        let (quotient, rest) = ((extent + left - 1) / left, (left + extent - 1) / extent);
        let stride = if with_strides {
            format!(", and the stride {} times {left}", a.leaf_stride(leaf))
        } else {
            String::new()
        };
        steps.push(format!(
            "  extent {extent} by {left}: {quotient} stay{stride}; {rest} is left to divide by"
        ));
        left = rest;
    }
    steps
}

/// How a number of elements runs through the extents from the left.
fn remainder(a: &Layout, count: &Value) -> Vec<String> {
    let Ok(count) = count.int() else {
        return Vec::new();
    };
    let mut left = count.value();
    let mut steps = Vec::new();
    for leaf in 0..a.num_leaves() {
        let extent = a.leaf_shape(leaf).value();
        if left < 1 || extent % left != 0 && left % extent != 0 {
            break;
        }
        let (kept, rest) = (extent.min(left), (left + extent - 1) / extent);
        steps.push(format!(
            "  {left} elements from extent {extent}: {kept} of it, and {rest} of what follows"
        ));
        left = rest;
    }
    steps
}

/// The sum that an index is.
fn sum(a: &Layout, coord: &IntTuple) -> Vec<String> {
    if coord.has_underscore() {
        return Vec::new();
    }
    let shape = a.shape();
    let natural = idx2crd(coord, &shape).to_dynamic();
    let products: Vec<String> = (0..a.num_leaves())
        .map(|leaf| format!("{}*{}", natural.leaf(leaf), a.leaf_stride(leaf)))
        .collect();
    vec![
        format!(
            "  as a 1-D coordinate: {}",
            linear_coordinate(&natural, &shape).to_dynamic()
        ),
        format!("  as a natural coordinate: {natural}"),
        format!("  {}", products.join(" + ")),
    ]
}

/// The digits of an index.
fn digits(index: Int, shape: &IntTuple) -> Vec<String> {
    let mut rest = index.value();
    let last = shape.num_leaves().saturating_sub(1);
    let mut steps = Vec::new();
    for leaf in 0..shape.num_leaves() {
        let extent = shape.leaf(leaf).value();
        if leaf == last || extent < 1 {
            steps.push(format!("  the last extent takes the rest: {rest}"));
            break;
        }
        steps.push(format!(
            "  {rest} mod {extent} = {}, and {rest} div {extent} = {}",
            rest % extent,
            rest / extent
        ));
        rest /= extent;
    }
    steps
}

/// What becomes of each mode if elements get wider or narrower.
fn recast(a: &Layout, n: &Value, wider: bool) -> Vec<String> {
    let Ok(n) = n.int() else {
        return Vec::new();
    };
    let n = n.value();
    let modes = (0..a.num_leaves()).map(|leaf| (a.leaf_shape(leaf), a.leaf_stride(leaf)));
    let words = modes.map(|(shape, stride)| match (wider, stride.value()) {
        (_, 0) => format!("  {shape}:{stride} has stride 0: it stays"),
        (true, d) if d % n == 0 => {
            format!(
                "  {shape}:{stride}: {n} divides the stride, which becomes {}",
                d / n
            )
        }
        (true, d) => format!("  {shape}:{stride}: {n} elements of stride {d} become one"),
        (false, 1) => {
            format!("  {shape}:{stride} is the innermost: its extent is {n} times as large")
        }
        (false, d) => format!(
            "  {shape}:{stride}: the stride becomes {}",
            d.saturating_mul(n)
        ),
    });
    words.collect()
}
