//! A name for an inner transform that has no notation of its own.

use core::fmt;

use super::Transform;
use crate::IntTuple;

/// An inner transform with a name, by which it is printed: a closure has no text of its own.
///
/// ```
/// use cutlet_layout_core::{ComposedLayout, IntTuple, Named, layout, shape};
///
/// let table = [7, 250, 0, 13];
/// let lookup = |c: &IntTuple| IntTuple::from(table[c.leaf(0).value() as usize]);
/// let gather = ComposedLayout::new(Named::new("gather", lookup), shape!(0), layout!(4:1));
/// assert_eq!(gather.to_string(), "gather o _0 o _4:_1");
/// assert_eq!(gather.call(&shape!(1)), 250.into());
/// ```
#[derive(Clone, Copy)]
pub struct Named<F> {
    name: &'static str,
    transform: F,
}

impl<F> Named<F> {
    /// A transform with a name.
    pub const fn new(name: &'static str, transform: F) -> Named<F> {
        Named { name, transform }
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The transform.
    pub const fn transform(&self) -> &F {
        &self.transform
    }
}

impl<F: Transform> Transform for Named<F> {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        self.transform.transform(coord)
    }
}

impl<F> fmt::Display for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
