//! Composed layouts: `R(c) = inner(offset + outer(c))`.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::int_tuple::{TupleBuilder, mismatch};
use crate::swizzle::write_widths;
use crate::text::Text;
use crate::{Int, IntTuple, Layout, Swizzle, try_recast};

mod carried;
mod chain;
mod common;
mod named;
mod outer;

pub use named::Named;

/// The last step of a [`ComposedLayout`]: a layout, a [`Swizzle`], or any function of
/// `offset + outer(c)`.
pub trait Transform {
    /// Maps `offset + outer(c)`, an index or a coordinate, to the composed layout's result.
    ///
    /// # Panics
    /// If the transform does not accept the coordinate.
    fn transform(&self, coord: &IntTuple) -> IntTuple;
}

impl Transform for Layout {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        self.call(coord)
    }
}

impl Transform for Swizzle {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        match coord.as_int() {
            Some(index) if index.basis().is_none() => IntTuple::int(
                Int::dynamic(self.apply(index.value())).with_static(index.is_static()),
            ),
            _ => panic!(
                "{self} swizzles an index, not the coordinate {coord}: use a plain offset and plain strides"
            ),
        }
    }
}

impl<I: Transform> Transform for ComposedLayout<I> {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        self.call(coord)
    }
}

impl<F: Fn(&IntTuple) -> IntTuple> Transform for F {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        self(coord)
    }
}

/// `inner ∘ offset ∘ outer`. Tiling and slicing act on the outer layout and the offset; the inner
/// transform maps the result to memory.
///
/// ```
/// use cutlet_layout_core::{ComposedLayout, IntTuple, Swizzle, identity, layout, shape};
///
/// let swizzled = ComposedLayout::new(Swizzle::new(3, 0, 3), shape!(0), layout!((8, 8):(8, 1)));
/// assert_eq!(swizzled.to_string(), "Sw<3,0,3> o _0 o (_8,_8):(_8,_1)");
/// assert_eq!(swizzled.call(&shape!((1, 0))).to_string(), "_9");
///
/// // The inner may be any function, of coordinates too.
/// let down = |c: &IntTuple| IntTuple::tuple(&[c.mode(0), IntTuple::int(c.leaf(1) + 1.into())]);
/// let moved = ComposedLayout::new(down, shape!((1, 0)), identity(&shape!((8, 4))));
/// assert_eq!(moved.call(&shape!(0)), (1, 1).into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComposedLayout<I> {
    inner: I,
    offset: IntTuple,
    outer: Layout,
}

impl<I> ComposedLayout<I> {
    /// `inner ∘ offset ∘ outer`.
    pub const fn new(inner: I, offset: IntTuple, outer: Layout) -> ComposedLayout<I> {
        ComposedLayout {
            inner,
            offset,
            outer,
        }
    }

    /// The inner transform, which is applied last.
    pub const fn inner(&self) -> &I {
        &self.inner
    }

    /// The offset, which is added to the outer layout's result.
    pub const fn offset(&self) -> &IntTuple {
        &self.offset
    }

    /// The outer layout, which is applied first.
    pub const fn outer(&self) -> &Layout {
        &self.outer
    }

    /// The shape, which is the outer layout's.
    pub const fn shape(&self) -> IntTuple {
        self.outer.shape()
    }

    /// The number of coordinates.
    pub const fn size(&self) -> i64 {
        self.outer.size()
    }

    /// The number of modes.
    pub const fn rank(&self) -> usize {
        self.outer.rank()
    }

    /// The number of levels of parentheses of the outer layout.
    pub const fn depth(&self) -> usize {
        self.outer.depth()
    }

    /// The index of a 1-D coordinate before the inner transform.
    #[track_caller]
    const fn before_inner(&self, c: i64) -> i64 {
        let index = match self.offset.as_int() {
            Some(offset) if offset.basis().is_none() => {
                offset.value().checked_add(self.outer.at(c))
            }
            _ => panic!("at: the offset is a coordinate: use call"),
        };
        match index {
            Some(index) => index,
            None => panic!("at: the index does not fit 64 bits"),
        }
    }
}

impl<I: Transform> ComposedLayout<I> {
    /// The result for a coordinate in any form: `inner(offset + outer(coord))`.
    ///
    /// # Panics
    /// If the coordinate does not fit the shape, the sum does not fit 64 bits, or the inner
    /// transform panics.
    pub fn call(&self, coord: &IntTuple) -> IntTuple {
        self.inner
            .transform(&or_panic(try_add(&self.offset, &self.outer.call(coord))))
    }

    /// The length of an array that holds the layout: 1 more than the greatest index, and longer by
    /// as much as the least is below 0. CuTe gives the outer layout's cosize, which may be less: a
    /// swizzle maps the last index elsewhere, and the offset moves all of them.
    ///
    /// This looks at every coordinate.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let column = Swizzle::new(3, 0, 3).composition(&layout!(8:8));
    /// assert_eq!((column.at(7), column.cosize(), column.outer().cosize()), (63, 64, 57));
    /// ```
    ///
    /// # Panics
    /// If the layout maps to coordinates, or as [`call`](Self::call).
    pub fn cosize(&self) -> i64 {
        let (mut least, mut greatest) = (0, 0);
        for c in 0..self.size() {
            match self.call(&IntTuple::from(c)).as_int() {
                Some(index) if index.basis().is_none() => {
                    least = index.value().min(least);
                    greatest = index.value().max(greatest);
                }
                _ => panic!("cosize: the layout maps to coordinates, which have no indices"),
            }
        }
        match greatest
            .checked_sub(least)
            .and_then(|span| span.checked_add(1))
        {
            Some(cosize) => cosize,
            None => panic!("cosize: the number of indices does not fit 64 bits"),
        }
    }
}

impl ComposedLayout<Swizzle> {
    /// The index of a 1-D coordinate, in `const`.
    ///
    /// # Panics
    /// If the offset is not a plain integer, or the index does not fit 64 bits.
    #[track_caller]
    pub const fn at(&self, c: i64) -> i64 {
        self.inner.apply(self.before_inner(c))
    }

    /// The layout of the same memory in elements of another width, in bits: the swizzle's lowest
    /// bits, the offset and the outer layout all count in elements.
    ///
    /// ```
    /// use cutlet_layout_core::{ComposedLayout, Swizzle, layout, shape};
    ///
    /// let halves = ComposedLayout::new(Swizzle::new(3, 3, 3), shape!(0), layout!((8, 64):(64, 1)));
    /// assert_eq!(halves.recast(16, 32).to_string(), "Sw<3,2,3> o _0 o (_8,_32):(_32,_1)");
    /// assert_eq!(halves.recast(16, 8).to_string(), "Sw<3,4,3> o _0 o (_8,_128):(_128,_1)");
    /// ```
    ///
    /// # Panics
    /// If [`try_recast`](Self::try_recast) returns an error.
    #[track_caller]
    pub const fn recast(&self, old_bits: i64, new_bits: i64) -> ComposedLayout<Swizzle> {
        or_panic(self.try_recast(old_bits, new_bits))
    }

    /// [`recast`](Self::recast), or the reason why there is none.
    ///
    /// # Errors
    /// If an element would be torn: [`crate::try_recast`] of the outer layout returns an error, the
    /// offset is inside a new element, or the swizzle permutes parts of one. In the last case CuTe
    /// drops the swizzle's lowest bits, which gives another layout.
    pub const fn try_recast(
        &self,
        old_bits: i64,
        new_bits: i64,
    ) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        Ok(ComposedLayout {
            inner: tri!(self.inner.try_recast(old_bits, new_bits)),
            offset: tri!(recast_offset(&self.offset, old_bits, new_bits)),
            outer: tri!(try_recast(&self.outer, old_bits, new_bits)),
        })
    }

    /// The layout of the same memory in elements that are `n` times as wide.
    ///
    /// # Panics
    /// If [`try_upcast`](Self::try_upcast) returns an error.
    #[track_caller]
    pub const fn upcast(&self, n: i64) -> ComposedLayout<Swizzle> {
        or_panic(self.try_upcast(n))
    }

    /// [`upcast`](Self::upcast), or the reason why there is none.
    ///
    /// # Errors
    /// If [`try_recast`](Self::try_recast) returns an error.
    pub const fn try_upcast(&self, n: i64) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        if n < 1 {
            return Err(below_1("upcast"));
        }
        self.try_recast(1, n)
    }

    /// The layout of the same memory in elements of which `n` are as wide as one.
    ///
    /// # Panics
    /// If [`try_downcast`](Self::try_downcast) returns an error.
    #[track_caller]
    pub const fn downcast(&self, n: i64) -> ComposedLayout<Swizzle> {
        or_panic(self.try_downcast(n))
    }

    /// [`downcast`](Self::downcast), or the reason why there is none.
    ///
    /// # Errors
    /// If [`try_recast`](Self::try_recast) returns an error.
    pub const fn try_downcast(&self, n: i64) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        if n < 1 {
            return Err(below_1("downcast"));
        }
        self.try_recast(n, 1)
    }
}

const fn below_1(operation: &str) -> LayoutError {
    let mut text = Text::new();
    text.str(operation)
        .str(": the factor is below 1: give at least 1");
    LayoutError::new(ErrorKind::Invalid, &text)
}

/// An offset in elements of another width.
pub(crate) const fn recast_offset(
    offset: &IntTuple,
    old_bits: i64,
    new_bits: i64,
) -> Result<IntTuple, LayoutError> {
    let Some(int) = offset.as_int() else {
        let mut text = Text::new();
        text.str("recast: the offset ")
            .tuple(offset)
            .str(" is a coordinate: give one that is an index");
        return Err(LayoutError::new(ErrorKind::Mismatch, &text));
    };
    let Some(begin) = int.value().checked_mul(old_bits) else {
        return Err(LayoutError::of(
            ErrorKind::Overflow,
            "recast: the offset in bits does not fit 64 bits",
        ));
    };
    if begin % new_bits != 0 {
        let mut text = Text::new();
        text.str("recast: the offset ").int(int);
        write_widths(old_bits, new_bits, &mut text);
        text.str("it would be inside an element: begin where an element does");
        return Err(LayoutError::new(ErrorKind::Mismatch, &text));
    }
    let recast = Int::dynamic(begin / new_bits).with_static(int.is_static());
    Ok(IntTuple::int(recast))
}

impl ComposedLayout<Layout> {
    /// The index of a 1-D coordinate, in `const`.
    ///
    /// # Panics
    /// If the offset is not a plain integer, or the index does not fit 64 bits.
    #[track_caller]
    pub const fn at(&self, c: i64) -> i64 {
        self.inner.at(self.before_inner(c))
    }
}

/// The sum of an offset and a result, integer by integer. The shorter tuple is padded with zeros,
/// and a 0 stands for a tuple of zeros.
const fn try_add(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    match add_into(a, b, &mut builder) {
        Ok(()) => builder.finish(),
        Err(why) => Err(mismatch("composed layout", a, " + ", b, why)),
    }
}

const fn add_into(
    a: &IntTuple,
    b: &IntTuple,
    builder: &mut TupleBuilder,
) -> Result<(), &'static str> {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        return match x.checked_add(y) {
            Some(sum) => {
                builder.leaf(sum);
                Ok(())
            }
            None if !x.same_direction(y) => {
                Err("offset and outer layout have different directions")
            }
            None => Err("the sum does not fit 64 bits"),
        };
    }
    if is_zero(a) {
        builder.append(b);
        return Ok(());
    }
    if is_zero(b) {
        builder.append(a);
        return Ok(());
    }
    if !a.is_tuple() || !b.is_tuple() {
        return Err("offset and outer layout have different ranks");
    }
    let rank = if a.rank() > b.rank() {
        a.rank()
    } else {
        b.rank()
    };
    builder.open();
    let mut i = 0;
    while i < rank {
        if i >= a.rank() {
            builder.append(&b.mode(i));
        } else if i >= b.rank() {
            builder.append(&a.mode(i));
        } else {
            match add_into(&a.mode(i), &b.mode(i), builder) {
                Ok(()) => {}
                Err(why) => return Err(why),
            }
        }
        i += 1;
    }
    builder.close();
    Ok(())
}

const fn is_zero(tuple: &IntTuple) -> bool {
    match tuple.as_int() {
        Some(int) => int.value() == 0,
        None => false,
    }
}

impl<I: fmt::Display> fmt::Display for ComposedLayout<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.inner, self.offset, self.outer)
    }
}
