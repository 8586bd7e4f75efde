//! The values of the calculator's expressions.

use std::fmt;

use cutlet_layout_core::contraction::{self, Notation};
use cutlet_layout_core::picture::Draw;
use cutlet_layout_core::{
    ComposedLayout, Int, IntTuple, Layout, Swizzle, Tiler, TilerKind, try_slice,
};

use crate::composed::{Composed, Inner};
use crate::equality::Comparison;
use crate::refusal::{Refusal, cut};
use crate::tiled::Tiled;
use crate::tma::TmaBox;

/// A value of one of the calculator's types.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, `_`, or a tuple of them: a shape, stride, coordinate or index.
    Tuple(IntTuple),
    /// A layout.
    Layout(Layout),
    /// A tuple of tilers in angle brackets.
    Tiler(Tiler),
    /// An inner transform on its own: a swizzle or an index table.
    Inner(Inner),
    /// An inner transform, offset and layout.
    Composed(Box<Composed>),
    /// A layout and its offset.
    Sliced(Box<Sliced>),
    /// Several values of different kinds.
    Several(Vec<Value>),
    /// True or false.
    Truth(bool),
    /// What two layouts have in common.
    Comparison(Comparison),
    /// Several int tuples.
    List(Vec<IntTuple>),
    /// A sum of symbols with their factors.
    Sum(Vec<Int>),
    /// A tiled operation, or an instruction alone.
    Tiled(Tiled),
    /// Boxes of TMA.
    TmaBox(Box<TmaBox>),
    /// The notation of a contraction.
    Notation(Notation),
    /// The layouts that a contraction becomes.
    Contraction(Box<contraction::Layouts>),
    /// The text of a value with symbolic extents.
    Symbolic(String),
    /// `LayoutLeft` or `LayoutRight`: which extent has stride 1.
    Order {
        /// Whether it is the leftmost.
        left: bool,
    },
}

/// A part of a layout, and the index at which it begins.
#[derive(Clone, Copy, Debug)]
pub struct Sliced {
    /// The layout, which begins at 0.
    pub layout: Layout,
    /// What is added to each index.
    pub offset: IntTuple,
}

impl Sliced {
    /// The same function as a composed layout, whose inner transform changes nothing.
    pub fn composed(&self) -> ComposedLayout<Layout> {
        ComposedLayout::new(Layout::leaf(Int::ONE, Int::ONE), self.offset, self.layout)
    }
}

impl fmt::Display for Sliced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.layout, self.offset)
    }
}

impl Draw for Sliced {
    fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    fn element(&self, c: i64) -> IntTuple {
        self.composed().call(&c.into()).to_dynamic()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Tuple(tuple) => write!(f, "{tuple}"),
            Value::Layout(layout) => write!(f, "{layout}"),
            Value::Tiler(tiler) => write!(f, "{tiler}"),
            Value::Inner(inner) => write!(f, "{inner}"),
            Value::Composed(layout) => write!(f, "{layout}"),
            Value::Sliced(sliced) => write!(f, "{sliced}"),
            Value::Several(values) => {
                f.write_str("(")?;
                separated(f, values, ", ")?;
                f.write_str(")")
            }
            Value::Truth(truth) => write!(f, "{truth}"),
            Value::Comparison(comparison) => write!(f, "{comparison}"),
            Value::List(list) if list.is_empty() => f.write_str("none"),
            Value::List(list) => separated(f, list, " "),
            Value::Sum(terms) if terms.is_empty() => f.write_str("0"),
            Value::Sum(terms) => separated(f, terms, " + "),
            Value::Tiled(tiled) => write!(f, "{tiled}"),
            Value::TmaBox(boxes) => write!(f, "{boxes}"),
            Value::Notation(notation) => write!(f, "{notation}"),
            Value::Contraction(layouts) => write!(f, "{layouts}"),
            Value::Symbolic(text) => f.write_str(text),
            Value::Order { left } => f.write_str(if *left { "LayoutLeft" } else { "LayoutRight" }),
        }
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    list: &[T],
    separator: &str,
) -> fmt::Result {
    for (i, item) in list.iter().enumerate() {
        write!(f, "{}{item}", if i > 0 { separator } else { "" })?;
    }
    Ok(())
}

impl From<Swizzle> for Value {
    fn from(swizzle: Swizzle) -> Value {
        Value::Inner(Inner::Swizzle(swizzle))
    }
}

impl From<Composed> for Value {
    fn from(layout: Composed) -> Value {
        Value::Composed(Box::new(layout))
    }
}

impl From<ComposedLayout<Swizzle>> for Value {
    fn from(layout: ComposedLayout<Swizzle>) -> Value {
        Composed::from(layout).into()
    }
}

impl From<Tiled> for Value {
    fn from(tiled: Tiled) -> Value {
        Value::Tiled(tiled)
    }
}

impl Value {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tuple(tuple) if tuple.is_int() => "an integer",
            Value::Tuple(_) => "a tuple of integers",
            Value::Layout(_) => "a layout",
            Value::Tiler(_) => "a tiler",
            Value::Inner(Inner::Swizzle(_)) => "a swizzle",
            Value::Inner(Inner::Table(_)) => "an index table",
            Value::Inner(Inner::Layout(_)) => "a layout",
            Value::Inner(Inner::Composed(_)) => "a composed layout",
            Value::Composed(_) => "a composed layout",
            Value::Sliced(_) => "a layout with an offset",
            Value::Several(_) => "several values",
            Value::Truth(_) => "true or false",
            Value::Comparison(_) => "a comparison",
            Value::List(_) => "a list",
            Value::Sum(_) => "a sum of symbols",
            Value::Tiled(tiled) => match tiled {
                Tiled::Mma(_) => "a tiled MMA",
                Tiled::Copy(_) => "a tiled copy",
            },
            Value::TmaBox(_) => "a TMA box",
            Value::Notation(_) => "the notation of a contraction",
            Value::Contraction(_) => "a contraction",
            Value::Symbolic(_) => "a value with symbolic extents",
            Value::Order { .. } => "an order of strides",
        }
    }

    pub(crate) fn not(&self, wanted: &str) -> Refusal {
        let way_out = match self {
            Value::Symbolic(_) => ": give numbers for its symbols",
            Value::Contraction(_) => ": its layouts are [0], [1] and [2]",
            _ => "",
        };
        Refusal::new(format!(
            "{wanted} is needed, but `{}` is {}{way_out}",
            cut(&self.to_string()),
            self.kind()
        ))
    }

    /// The value as a layout with an offset, which is 0 for a layout.
    ///
    /// # Errors
    /// If it is none.
    pub fn sliced(&self) -> Result<Sliced, Refusal> {
        match self {
            Value::Sliced(sliced) => Ok(**sliced),
            other => Ok(Sliced {
                layout: other.layout()?,
                offset: IntTuple::int(Int::ZERO),
            }),
        }
    }

    /// The parts of several values in one, if there are such.
    pub fn parts(&self) -> Option<Vec<Value>> {
        match self {
            Value::Several(values) => Some(values.clone()),
            Value::Sliced(sliced) => Some(vec![
                Value::Layout(sliced.layout),
                Value::Tuple(sliced.offset),
            ]),
            Value::Contraction(layouts) => {
                let layouts = [layouts.a(), layouts.b(), layouts.c()];
                Some(layouts.map(|layout| Value::Layout(*layout)).into())
            }
            Value::Tuple(tuple) if tuple.is_tuple() => {
                let modes = (0..tuple.rank()).map(|i| Value::Tuple(tuple.mode(i)));
                Some(modes.collect())
            }
            _ => None,
        }
    }

    /// The value as an int tuple. A layout stands for its shape.
    ///
    /// # Errors
    /// If it is none.
    pub fn tuple(&self) -> Result<IntTuple, Refusal> {
        match self {
            Value::Tuple(tuple) => Ok(*tuple),
            Value::Layout(layout) => Ok(layout.shape()),
            Value::Composed(layout) => Ok(layout.outer().shape()),
            Value::Sliced(sliced) => Ok(sliced.layout.shape()),
            _ => Err(self.not("a tuple of integers")),
        }
    }

    /// The value as an integer.
    ///
    /// # Errors
    /// If it is none.
    pub fn int(&self) -> Result<Int, Refusal> {
        match self {
            Value::Tuple(tuple) => tuple.as_int().ok_or_else(|| self.not("an integer")),
            _ => Err(self.not("an integer")),
        }
    }

    /// The value as the number of a mode.
    ///
    /// # Errors
    /// If it is none.
    pub fn mode(&self) -> Result<usize, Refusal> {
        usize::try_from(self.int()?.value()).map_err(|_| self.not("the number of a mode"))
    }

    /// The value as a layout. A shape stands for its column-major layout.
    ///
    /// # Errors
    /// If it is none.
    pub fn layout(&self) -> Result<Layout, Refusal> {
        match self {
            Value::Layout(layout) => Ok(*layout),
            Value::Tuple(shape) => Ok(Layout::try_col_major(shape)?),
            Value::Tiler(tiler) => match tiler.kind() {
                TilerKind::Layout(layout) => Ok(layout),
                _ => Err(self.not("a layout")),
            },
            _ => Err(self.not("a layout")),
        }
    }

    /// The value as a tiler: a layout, a tuple in angle brackets, or a shape.
    ///
    /// # Errors
    /// If it is none.
    pub fn tiler(&self) -> Result<Tiler, Refusal> {
        match self {
            Value::Tiler(tiler) => Ok(*tiler),
            Value::Layout(layout) => Ok(Tiler::layout(layout)),
            Value::Tuple(shape) => Ok(Tiler::try_shape(shape)?),
            _ => Err(self.not("a tiler")),
        }
    }

    /// The value as a tiled operation.
    ///
    /// # Errors
    /// If it is none.
    pub fn tiled(&self) -> Result<&Tiled, Refusal> {
        match self {
            Value::Tiled(tiled) => Ok(tiled),
            _ => Err(self.not("a tiled MMA or a tiled copy")),
        }
    }

    /// The value as the inner transform of a composed layout, if it can be one.
    pub fn inner(&self) -> Option<Inner> {
        match self {
            Value::Inner(inner) => Some(inner.clone()),
            Value::Composed(layout) => Some(Inner::Composed(layout.clone())),
            Value::Layout(_) | Value::Tuple(_) => {
                Some(Inner::Layout(Box::new(self.layout().ok()?)))
            }
            _ => None,
        }
    }

    /// The shape of a layout's coordinates.
    ///
    /// # Errors
    /// If the value is no layout.
    pub fn shape(&self) -> Result<IntTuple, Refusal> {
        match self {
            Value::Composed(layout) => Ok(layout.outer().shape()),
            other => Ok(other.sliced()?.layout.shape()),
        }
    }

    /// The number of a layout's coordinates.
    ///
    /// # Errors
    /// If the value is no layout.
    pub fn size(&self) -> Result<i64, Refusal> {
        match self {
            Value::Composed(layout) => Ok(layout.outer().size()),
            other => Ok(other.sliced()?.layout.size()),
        }
    }

    /// The value of a layout at a 1-D coordinate.
    ///
    /// # Errors
    /// If the value is no layout, or refuses the coordinate.
    pub fn at(&self, c: i64) -> Result<IntTuple, Refusal> {
        let coord = IntTuple::from(c);
        match self {
            Value::Composed(layout) => Ok(layout.by_reference().call(&coord).to_dynamic()),
            Value::Sliced(sliced) => Ok(sliced.composed().call(&coord).to_dynamic()),
            other => Ok(other.layout()?.try_call(&coord)?.to_dynamic()),
        }
    }

    /// `value(coordinate)`: the image of a coordinate, or a slice if there is an underscore.
    ///
    /// # Errors
    /// If the value maps no coordinates, or the coordinate does not fit it.
    pub fn apply(&self, arguments: &[Value]) -> Result<Value, Refusal> {
        let coord = coordinate(arguments)?;
        let slices = coord.has_underscore();
        Ok(match self {
            Value::Composed(layout) if slices => layout
                .after(|a| a.try_slice(&coord).map(Into::into))?
                .into(),
            Value::Composed(layout) => Value::Tuple(layout.by_reference().call(&coord)),
            Value::Sliced(sliced) if slices => {
                let part = sliced.composed().try_slice(&coord)?;
                Value::Sliced(Box::new(Sliced {
                    layout: *part.outer(),
                    offset: *part.offset(),
                }))
            }
            Value::Sliced(sliced) => Value::Tuple(sliced.composed().call(&coord)),
            Value::Inner(inner) => {
                Value::Tuple(cutlet_layout_core::Transform::transform(inner, &coord))
            }
            Value::Layout(_) | Value::Tuple(_) => {
                let layout = self.layout()?;
                if slices {
                    Value::Layout(try_slice(&coord, &layout)?)
                } else {
                    Value::Tuple(layout.try_call(&coord)?)
                }
            }
            other => {
                return Err(Refusal::new(format!(
                    "`{}` is {}, which maps no coordinates",
                    cut(&other.to_string()),
                    other.kind()
                )));
            }
        })
    }
}

/// The arguments between parentheses as one coordinate.
pub(crate) fn coordinate(arguments: &[Value]) -> Result<IntTuple, Refusal> {
    match arguments {
        [one] => one.tuple(),
        [] => Err(Refusal::new(
            "a coordinate is needed between the parentheses",
        )),
        several => {
            let mut coord = IntTuple::EMPTY;
            for mode in several {
                coord = coord.try_append(&mode.tuple()?)?;
            }
            Ok(coord)
        }
    }
}
