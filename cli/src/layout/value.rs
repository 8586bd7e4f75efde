//! The values of the calculator's expressions.

use std::fmt;

use cutlet_layout_core::{ComposedLayout, Int, IntTuple, Layout, Swizzle, Tiler, try_slice};

use super::refusal::Refusal;

/// A value of one of the calculator's types.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, `_`, or a tuple of them: a shape, stride, coordinate or index.
    Tuple(IntTuple),
    /// A layout.
    Layout(Layout),
    /// A tuple of tilers in angle brackets.
    Tiler(Tiler),
    /// A swizzle on its own.
    Swizzle(Swizzle),
    /// A swizzle, offset and layout.
    Swizzled(ComposedLayout<Swizzle>),
    /// A layout, offset and layout.
    Composed(Box<ComposedLayout<Layout>>),
    /// A layout and its offset.
    Sliced(Layout, IntTuple),
    /// True or false.
    Truth(bool),
    /// Several int tuples.
    List(Vec<IntTuple>),
    /// `LayoutLeft` or `LayoutRight`: which extent has stride 1.
    Order { left: bool },
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Tuple(tuple) => write!(f, "{tuple}"),
            Value::Layout(layout) => write!(f, "{layout}"),
            Value::Tiler(tiler) => write!(f, "{tiler}"),
            Value::Swizzle(swizzle) => write!(f, "{swizzle}"),
            Value::Swizzled(layout) => write!(f, "{layout}"),
            Value::Composed(layout) => write!(f, "{layout}"),
            Value::Sliced(layout, offset) => write!(f, "({layout}, {offset})"),
            Value::Truth(truth) => write!(f, "{truth}"),
            Value::List(list) => {
                for (i, tuple) in list.iter().enumerate() {
                    write!(f, "{}{tuple}", if i > 0 { " " } else { "" })?;
                }
                Ok(())
            }
            Value::Order { left } => f.write_str(if *left { "LayoutLeft" } else { "LayoutRight" }),
        }
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
            Value::Swizzle(_) => "a swizzle",
            Value::Swizzled(_) | Value::Composed(_) => "a composed layout",
            Value::Sliced(..) => "a layout with an offset",
            Value::Truth(_) => "true or false",
            Value::List(_) => "a list",
            Value::Order { .. } => "an order of strides",
        }
    }

    fn not(&self, wanted: &str) -> Refusal {
        Refusal::new(format!(
            "{wanted} is needed, but `{self}` is {}",
            self.kind()
        ))
    }

    /// The value as an int tuple. A layout stands for its shape.
    pub fn tuple(&self) -> Result<IntTuple, Refusal> {
        match self {
            Value::Tuple(tuple) => Ok(*tuple),
            Value::Layout(layout) => Ok(layout.shape()),
            _ => Err(self.not("a tuple of integers")),
        }
    }

    /// The value as an integer.
    pub fn int(&self) -> Result<Int, Refusal> {
        match self {
            Value::Tuple(tuple) => tuple.as_int().ok_or_else(|| self.not("an integer")),
            _ => Err(self.not("an integer")),
        }
    }

    /// The value as the number of a mode.
    pub fn mode(&self) -> Result<usize, Refusal> {
        usize::try_from(self.int()?.value()).map_err(|_| self.not("the number of a mode"))
    }

    /// The value as a layout. A shape stands for its column-major layout.
    pub fn layout(&self) -> Result<Layout, Refusal> {
        match self {
            Value::Layout(layout) => Ok(*layout),
            Value::Tuple(shape) => Ok(Layout::try_col_major(shape)?),
            _ => Err(self.not("a layout")),
        }
    }

    /// The value as a tiler: a layout, a tuple in angle brackets, or a shape.
    pub fn tiler(&self) -> Result<Tiler, Refusal> {
        match self {
            Value::Tiler(tiler) => Ok(*tiler),
            Value::Layout(layout) => Ok(Tiler::layout(layout)),
            Value::Tuple(shape) => Ok(Tiler::try_shape(shape)?),
            _ => Err(self.not("a tiler")),
        }
    }

    /// `value(coordinate)`: the image of a coordinate, or a slice if there is an underscore.
    pub fn apply(self, arguments: &[Value]) -> Result<Value, Refusal> {
        let coord = match arguments {
            [one] => one.tuple()?,
            [] => {
                return Err(Refusal::new(
                    "a coordinate is needed between the parentheses",
                ));
            }
            several => {
                let mut coord = IntTuple::EMPTY;
                for mode in several {
                    coord = coord.try_append(&mode.tuple()?)?;
                }
                coord
            }
        };
        let slices = coord.has_underscore();
        Ok(match self {
            Value::Swizzled(layout) if slices => Value::Swizzled(layout.try_slice(&coord)?),
            Value::Swizzled(layout) => Value::Tuple(layout.call(&coord)),
            Value::Composed(layout) if slices => {
                Value::Composed(Box::new(layout.try_slice(&coord)?))
            }
            Value::Composed(layout) => Value::Tuple(layout.call(&coord)),
            Value::Swizzle(swizzle) => {
                let index = Value::Tuple(coord).int()?;
                let place = swizzle.apply(index.value());
                let place = if index.is_static() {
                    Int::fixed(place)
                } else {
                    place.into()
                };
                Value::Tuple(IntTuple::int(place))
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
                    "`{other}` is {}, which maps no coordinates",
                    other.kind()
                )));
            }
        })
    }
}
