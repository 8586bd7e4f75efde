//! Composed layouts of the calculator: their inner is a swizzle, a layout, an index table, or a composed layout again.

use std::fmt;
use std::sync::Arc;

use cutlet_layout_core::{
    ComposedLayout, IntTuple, Layout, LayoutError, Swizzle, Tiler, Transform, try_composition,
};

use crate::refusal::Refusal;

/// An inner transform.
#[derive(Clone, Debug, PartialEq)]
pub enum Inner {
    /// A swizzle.
    Swizzle(Swizzle),
    /// A layout.
    Layout(Box<Layout>),
    /// An index table: it maps `i` to its entry `i`.
    Table(Arc<[i64]>),
    /// A composed layout.
    Composed(Box<Composed>),
}

impl Transform for Inner {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        match self {
            Inner::Swizzle(swizzle) => swizzle.transform(coord),
            Inner::Layout(layout) => layout.call(coord),
            Inner::Table(table) => look_up(table, coord),
            Inner::Composed(layout) => layout.by_reference().call(coord),
        }
    }
}

impl Transform for &Inner {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        (*self).transform(coord)
    }
}

fn look_up(table: &[i64], coord: &IntTuple) -> IntTuple {
    let index = coord.as_int().filter(|index| index.basis().is_none());
    let Some(index) = index else {
        panic!("gather: the table is looked up by an index, but {coord} is a coordinate");
    };
    let entry = usize::try_from(index.value())
        .ok()
        .and_then(|i| table.get(i));
    match entry {
        Some(&entry) => IntTuple::from(entry),
        None => panic!(
            "gather: the table has {} entries, and none at {}: use a smaller layout or a longer table",
            table.len(),
            index.value()
        ),
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inner::Swizzle(swizzle) => write!(f, "{swizzle}"),
            Inner::Layout(layout) => write!(f, "{layout}"),
            Inner::Composed(layout) => write!(f, "{layout}"),
            Inner::Table(table) => {
                f.write_str("gather([")?;
                for (i, entry) in table.iter().enumerate() {
                    write!(f, "{}{entry}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("])")
            }
        }
    }
}

/// `inner o offset o outer`.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    pub(crate) inner: Inner,
    pub(crate) offset: IntTuple,
    pub(crate) outer: Layout,
}

/// The most composed layouts inside each other.
const DEPTH: usize = 32;

impl Inner {
    /// The number of composed layouts inside each other.
    fn depth(&self) -> usize {
        match self {
            Inner::Composed(layout) => 1 + layout.inner.depth(),
            _ => 0,
        }
    }
}

impl Composed {
    /// `inner o offset o outer`.
    ///
    /// # Errors
    /// If too many composed layouts are inside each other.
    pub fn new(inner: Inner, offset: IntTuple, outer: Layout) -> Result<Composed, Refusal> {
        if inner.depth() == DEPTH {
            return Err(Refusal::new(format!(
                "more than {DEPTH} composed layouts are inside each other"
            )));
        }
        Ok(Composed {
            inner,
            offset,
            outer,
        })
    }

    /// The layout with its inner borrowed: layout-core's operations are on it.
    pub fn by_reference(&self) -> ComposedLayout<&Inner> {
        ComposedLayout::new(&self.inner, self.offset, self.outer)
    }

    /// The inner transform, which is applied last.
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The offset, which is added to the outer layout's value.
    pub fn offset(&self) -> &IntTuple {
        &self.offset
    }

    /// The outer layout, which is applied first.
    pub fn outer(&self) -> &Layout {
        &self.outer
    }

    /// The result of an operation of layout-core.
    pub(crate) fn after(
        &self,
        operation: impl FnOnce(&ComposedLayout<&Inner>) -> Result<Made, LayoutError>,
    ) -> Result<Composed, Refusal> {
        let Made { offset, outer } = operation(&self.by_reference())?;
        Ok(Composed {
            inner: self.inner.clone(),
            offset,
            outer,
        })
    }

    /// The layout as a swizzled one, if its inner is a swizzle.
    pub fn swizzled(&self) -> Option<ComposedLayout<Swizzle>> {
        match &self.inner {
            Inner::Swizzle(swizzle) => Some(ComposedLayout::new(*swizzle, self.offset, self.outer)),
            _ => None,
        }
    }

    /// `self o tiler`.
    pub(crate) fn compose(&self, tiler: &Tiler) -> Result<Composed, Refusal> {
        self.after(|a| a.try_composition_by_mode(tiler).map(Made::from))
    }

    /// `self o other`: this layout with the inner layout of `other` is the inner transform of the result.
    pub(crate) fn nest(&self, other: &Composed) -> Result<Composed, Refusal> {
        let first = match &other.inner {
            Inner::Layout(layout) => layout,
            inner => {
                return Err(Refusal::new(format!(
                    "`{inner}` is in the middle of a composition, where a layout must be"
                )));
            }
        };
        let inner = Composed {
            outer: try_composition(&self.outer, first)?,
            ..self.clone()
        };
        Composed::new(Inner::Composed(Box::new(inner)), other.offset, other.outer)
    }
}

/// Offset and outer layout of an operation's result. The inner transform stays as it is.
pub(crate) struct Made {
    offset: IntTuple,
    outer: Layout,
}

impl<I> From<ComposedLayout<I>> for Made {
    fn from(layout: ComposedLayout<I>) -> Made {
        Made {
            offset: *layout.offset(),
            outer: *layout.outer(),
        }
    }
}

impl From<ComposedLayout<Swizzle>> for Composed {
    fn from(layout: ComposedLayout<Swizzle>) -> Composed {
        Composed {
            inner: Inner::Swizzle(*layout.inner()),
            offset: *layout.offset(),
            outer: *layout.outer(),
        }
    }
}

impl fmt::Display for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.inner, self.offset, self.outer)
    }
}
