//! Compositions, divisions and products in words: each step with its intermediate layouts.

use core::fmt;

use crate::by_layout::{product_target, repetitions};
use crate::complement::{Extents, complement_modes};
use crate::error::LayoutError;
use crate::flat_modes::Modes;
use crate::{
    IntTuple, Layout, Tiler, TilerKind, coalesce, try_blocked_product, try_complement,
    try_composition, try_composition_by_mode, try_flat_divide, try_flat_product, try_layout_div,
    try_logical_divide, try_logical_product, try_raked_product, try_shape_mod, try_tiled_divide,
    try_tiled_product, try_zipped_divide, try_zipped_product,
};

/// An operation that [`explain`] puts in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`composition`](crate::composition), and by mode with a tuple as tiler.
    Composition,
    /// [`logical_divide`](crate::logical_divide).
    LogicalDivide,
    /// [`zipped_divide`](crate::zipped_divide).
    ZippedDivide,
    /// [`tiled_divide`](crate::tiled_divide).
    TiledDivide,
    /// [`flat_divide`](crate::flat_divide).
    FlatDivide,
    /// [`logical_product`](crate::logical_product).
    LogicalProduct,
    /// [`zipped_product`](crate::zipped_product).
    ZippedProduct,
    /// [`tiled_product`](crate::tiled_product).
    TiledProduct,
    /// [`flat_product`](crate::flat_product).
    FlatProduct,
    /// [`blocked_product`](crate::blocked_product); the tiler is a layout.
    BlockedProduct,
    /// [`raked_product`](crate::raked_product); the tiler is a layout.
    RakedProduct,
}

/// The kind of an operation's steps.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    Composition,
    Divide,
    Product,
}

impl Operation {
    /// The operation's name.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Composition => "composition",
            Operation::LogicalDivide => "logical_divide",
            Operation::ZippedDivide => "zipped_divide",
            Operation::TiledDivide => "tiled_divide",
            Operation::FlatDivide => "flat_divide",
            Operation::LogicalProduct => "logical_product",
            Operation::ZippedProduct => "zipped_product",
            Operation::TiledProduct => "tiled_product",
            Operation::FlatProduct => "flat_product",
            Operation::BlockedProduct => "blocked_product",
            Operation::RakedProduct => "raked_product",
        }
    }

    /// The operation's result.
    ///
    /// # Errors
    /// If the operation returns an error, or a blocked or raked product is given a tuple.
    pub const fn apply(self, a: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
        match self {
            Operation::Composition => try_composition_by_mode(a, tiler),
            Operation::LogicalDivide => try_logical_divide(a, tiler),
            Operation::ZippedDivide => try_zipped_divide(a, tiler),
            Operation::TiledDivide => try_tiled_divide(a, tiler),
            Operation::FlatDivide => try_flat_divide(a, tiler),
            Operation::LogicalProduct => try_logical_product(a, tiler),
            Operation::ZippedProduct => try_zipped_product(a, tiler),
            Operation::TiledProduct => try_tiled_product(a, tiler),
            Operation::FlatProduct => try_flat_product(a, tiler),
            Operation::BlockedProduct | Operation::RakedProduct => match tiler.kind() {
                TilerKind::Layout(b) if matches!(self, Operation::BlockedProduct) => {
                    try_blocked_product(a, &b)
                }
                TilerKind::Layout(b) => try_raked_product(a, &b),
                _ => Err(LayoutError::of(
                    crate::ErrorKind::Mismatch,
                    "blocked and raked products repeat a layout over a layout, not over a tuple: give one layout",
                )),
            },
        }
    }

    const fn family(self) -> Family {
        match self {
            Operation::Composition => Family::Composition,
            Operation::LogicalDivide
            | Operation::ZippedDivide
            | Operation::TiledDivide
            | Operation::FlatDivide => Family::Divide,
            _ => Family::Product,
        }
    }

    /// The arrangement of the parts at the end, if it is a step of its own.
    const fn arrangement(self) -> Option<&'static str> {
        match self {
            Operation::ZippedDivide => {
                Some("tiles and rests are gathered: ((TileM,TileN,…), (RestM,RestN,…))")
            }
            Operation::TiledDivide => {
                Some("tiles are gathered: ((TileM,TileN,…), RestM, RestN, …)")
            }
            Operation::FlatDivide => {
                Some("tiles come before rests: (TileM, TileN, …, RestM, RestN, …)")
            }
            Operation::ZippedProduct => {
                Some("blocks and repetitions are gathered: ((M,N,…), (TileM,TileN,…))")
            }
            Operation::TiledProduct => Some("blocks are gathered: ((M,N,…), TileM, TileN, …)"),
            Operation::FlatProduct => {
                Some("blocks come before repetitions: (M, N, …, TileM, TileN, …)")
            }
            Operation::BlockedProduct => Some(
                "each mode of A is put before B's of the same place, and the two are coalesced",
            ),
            Operation::RakedProduct => Some(
                "each mode of B is put before A's of the same place, and the two are coalesced",
            ),
            _ => None,
        }
    }
}

impl Family {
    /// The family's operation on one mode.
    const fn apply(self, a: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
        match self {
            Family::Composition => try_composition_by_mode(a, tiler),
            Family::Divide => try_logical_divide(a, tiler),
            Family::Product => try_logical_product(a, tiler),
        }
    }

    /// What becomes of a mode past the tiler.
    const fn past_tiler(self) -> &'static str {
        match self {
            Family::Composition => "dropped",
            Family::Divide | Family::Product => "kept",
        }
    }
}

/// An operation and its operands, displayed step by step; see [`explain`].
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    operation: Operation,
    a: Layout,
    tiler: Tiler,
}

/// An operation step by step, in words. If it has no result, the failing step says so, and the last
/// line says why.
///
/// ```
/// use cutlet_layout_core::{Operation, explain, layout, tile};
///
/// let words = explain(Operation::LogicalDivide, &layout!((4, 2, 3):(2, 1, 8)), &tile!(4:2));
/// assert_eq!(words.to_string(), "\
/// logical_divide: A = (_4,_2,_3):(_2,_1,_8) by B = _4:_2
///   A o (B, B*): the elements that B points to, and the layout of such tiles
///   the size of A is 24
///   B* = complement(B, 24) = (_2,_3):(_1,_8), where the other tiles begin
///   (B, B*) = (_4,(_2,_3)):(_2,(_1,_8))
///   A o _4:_2 = (_2,_2):(_4,_1)
///   A o (_2,_3):(_1,_8) = (_2,_3):(_2,_8)
/// = ((_2,_2),(_2,_3)):((_4,_1),(_2,_8))
/// ");
/// ```
pub const fn explain(operation: Operation, a: &Layout, tiler: &Tiler) -> Explanation {
    Explanation {
        operation,
        a: *a,
        tiler: *tiler,
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation {
            operation,
            a,
            tiler,
        } = self;
        let between = match operation.family() {
            Family::Composition => "o",
            Family::Divide => "by",
            Family::Product => "times",
        };
        writeln!(f, "{}: A = {a} {between} B = {tiler}", operation.name())?;
        let ranked = matches!(
            operation,
            Operation::BlockedProduct | Operation::RakedProduct
        );
        if ranked {
            padded_product(f, a, tiler)?;
        } else {
            mode(f, operation.family(), a, tiler, 1)?;
        }
        if let Some(arrangement) = operation.arrangement() {
            writeln!(f, "  {arrangement}")?;
        }
        result(f, &operation.apply(a, tiler))
    }
}

fn result(f: &mut fmt::Formatter<'_>, result: &Result<Layout, LayoutError>) -> fmt::Result {
    match result {
        Ok(layout) => writeln!(f, "= {layout}"),
        Err(error) => writeln!(f, "refused: {error}"),
    }
}

/// Writes a step and its result. The reason of a refusal is written once, in the last line.
fn step(
    f: &mut fmt::Formatter<'_>,
    depth: usize,
    what: fmt::Arguments<'_>,
    result: &Result<Layout, LayoutError>,
    remark: &str,
) -> fmt::Result {
    match result {
        Ok(layout) => writeln!(f, "{:1$}{what} = {layout}{remark}", "", 2 * depth),
        Err(_) => writeln!(f, "{:1$}{what} has no result", "", 2 * depth),
    }
}

/// Writes the steps for a layout and its tiler, mode by mode for a tuple.
fn mode(
    f: &mut fmt::Formatter<'_>,
    family: Family,
    a: &Layout,
    tiler: &Tiler,
    depth: usize,
) -> fmt::Result {
    match tiler.kind() {
        TilerKind::Underscore => writeln!(f, "{:1$}`_` keeps the mode as it is", "", 2 * depth),
        TilerKind::Layout(b) => match family {
            Family::Composition => {
                compose(f, a, &b, depth, "R(c) = A(B(c)): B picks coordinates of A")
            }
            Family::Divide => divide(f, a, &b, depth),
            Family::Product => multiply(f, a, &b, depth),
        },
        TilerKind::Tuple => {
            for i in 0..a.rank().max(tiler.rank()) {
                if i >= a.rank() {
                    writeln!(f, "{:1$}A has no mode {i} for B's", "", 2 * depth)?;
                } else if i >= tiler.rank() {
                    writeln!(
                        f,
                        "{:1$}mode {i}, {2}, is past B and {3}",
                        "",
                        2 * depth,
                        a.mode(i),
                        family.past_tiler()
                    )?;
                } else {
                    let (a, b) = (a.mode(i), tiler.mode(i));
                    writeln!(f, "{:1$}mode {i}: A = {a}, B = {b}", "", 2 * depth)?;
                    mode(f, family, &a, &b, depth + 1)?;
                    if let Ok(result) = family.apply(&a, &b) {
                        writeln!(f, "{:1$}= {result}", "", 2 * depth + 2)?;
                    }
                }
            }
            Ok(())
        }
    }
}

/// Writes A o B for each mode of B on its own.
fn compose(
    f: &mut fmt::Formatter<'_>,
    a: &Layout,
    b: &Layout,
    depth: usize,
    meaning: &str,
) -> fmt::Result {
    let indent = 2 * depth;
    if !meaning.is_empty() {
        writeln!(f, "{:indent$}{meaning}", "")?;
        let simplest = coalesce(a);
        if &simplest != a {
            writeln!(
                f,
                "{:indent$}A coalesced is {simplest}, the same function",
                ""
            )?;
        }
    }
    if b.depth() == 0 {
        return if meaning.is_empty() {
            Ok(())
        } else {
            div_and_mod(f, a, b, depth)
        };
    }
    for i in 0..b.rank() {
        let mode = b.mode(i);
        step(
            f,
            depth,
            format_args!("A o {mode}"),
            &try_composition(a, &mode),
            "",
        )?;
        if !meaning.is_empty() {
            div_and_mod(f, a, &mode, depth + 1)?;
        }
    }
    Ok(())
}

/// Writes the two steps of A o s:d, if A has an element at each multiple of d: every d-th element of A, and the first s
/// of these.
fn div_and_mod(f: &mut fmt::Formatter<'_>, a: &Layout, mode: &Layout, depth: usize) -> fmt::Result {
    if mode.depth() > 0 || !mode.leaf_stride(0).basis().is_none() || mode.leaf_stride(0).value() < 1
    {
        return Ok(());
    }
    let (extent, stride) = (mode.leaf_shape(0), mode.leaf_stride(0));
    let Ok(each) = try_layout_div(&coalesce(a), stride) else {
        return Ok(());
    };
    let Ok(shape) = try_shape_mod(&each.shape(), &IntTuple::int(extent)) else {
        return Ok(());
    };
    let Ok(first) = Layout::try_from_shape_stride(&shape, &each.stride()) else {
        return Ok(());
    };
    let indent = 2 * depth;
    if stride.value() > 1 {
        writeln!(
            f,
            "{:indent$}div out {stride}: {each}, the elements of A at multiples of {}",
            "",
            stride.value()
        )?;
    }
    writeln!(
        f,
        "{:indent$}mod out {extent}: {first}, the first {} of them",
        "",
        extent.value()
    )?;
    let simplest = coalesce(&first);
    if simplest != first {
        writeln!(f, "{:indent$}coalesced: {simplest}", "")?;
    }
    Ok(())
}

fn divide(f: &mut fmt::Formatter<'_>, a: &Layout, b: &Layout, depth: usize) -> fmt::Result {
    let indent = 2 * depth;
    writeln!(
        f,
        "{:indent$}A o (B, B*): the elements that B points to, and the layout of such tiles",
        ""
    )?;
    writeln!(f, "{:indent$}the size of A is {}", "", a.size())?;
    let mut modes = Modes::EMPTY;
    let rest = match complement_modes(b, &Extents::of_layout(a), &mut modes) {
        Ok(()) => modes.to_layout(),
        Err(error) => Err(error),
    };
    step(
        f,
        depth,
        format_args!("B* = complement(B, {})", a.size()),
        &rest,
        ", where the other tiles begin",
    )?;
    let Ok(rest) = rest else {
        return Ok(());
    };
    let both = Layout::try_concat(&[*b, rest]);
    step(f, depth, format_args!("(B, B*)"), &both, "")?;
    match both {
        Ok(both) => compose(f, a, &both, depth, ""),
        Err(_) => Ok(()),
    }
}

fn multiply(f: &mut fmt::Formatter<'_>, a: &Layout, b: &Layout, depth: usize) -> fmt::Result {
    let indent = 2 * depth;
    writeln!(
        f,
        "{:indent$}(A, A* o B): the block, and its repetitions in the order of B",
        ""
    )?;
    let Ok(target) = product_target(a, b) else {
        return writeln!(f, "{:indent$}B has no cosize to repeat A over", "");
    };
    writeln!(
        f,
        "{:indent$}the size of A times the cosize of B is {}",
        "",
        target.value()
    )?;
    let places = try_complement(a, &IntTuple::int(target));
    step(
        f,
        depth,
        format_args!("A* = complement(A, {})", target.value()),
        &places,
        ", where A can be repeated",
    )?;
    match places {
        Ok(places) => step(
            f,
            depth,
            format_args!("A* o B"),
            &repetitions(a, &places, b),
            "",
        ),
        Err(_) => Ok(()),
    }
}

/// Writes the steps of a product whose operands are first padded to the same rank.
fn padded_product(f: &mut fmt::Formatter<'_>, a: &Layout, tiler: &Tiler) -> fmt::Result {
    let TilerKind::Layout(b) = tiler.kind() else {
        return Ok(());
    };
    let rank = a.rank().max(b.rank());
    let pad = |layout: &Layout| {
        let mut padded = if layout.depth() == 0 {
            Layout::concat(&[*layout])
        } else {
            *layout
        };
        while padded.rank() < rank {
            padded = padded.append(&Layout::UNIT);
        }
        padded
    };
    let (wide_a, wide_b) = (pad(a), pad(&b));
    if a.rank() != b.rank() {
        writeln!(f, "  both get rank {rank}: A = {wide_a}, B = {wide_b}")?;
    }
    multiply(f, &wide_a, &wide_b, 1)
}
