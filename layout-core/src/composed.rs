//! Composed layouts: `R(c) = inner(offset + outer(c))`.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::int_tuple::{TupleBuilder, mismatch};
use crate::text::Text;
use crate::{
    Int, IntTuple, Layout, Swizzle, Tiler, try_blocked_product, try_coalesce_by_mode,
    try_composition, try_composition_by_mode, try_filter_by_mode, try_flat_divide,
    try_flat_product, try_logical_divide, try_logical_product, try_raked_product, try_recast,
    try_slice_and_offset, try_tile_to_shape, try_tiled_divide, try_tiled_product,
    try_zipped_divide, try_zipped_product,
};

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
        text.str("recast: the tensor begins at bit ").number(begin);
        text.str(" of its memory, which is inside an element of ")
            .number(new_bits)
            .str(" bits: begin at a multiple");
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

/// The operations that act on the outer layout.
macro_rules! outer_operations {
    ($(
        $(#[$doc:meta])*
        $name:ident, $try_name:ident ($($arg:ident: $type:ty),+) = $operation:expr;
    )+) => {
        impl<I: Copy> ComposedLayout<I> {$(
            $(#[$doc])*
            ///
            /// # Panics
            #[doc = concat!("If [`", stringify!($try_name), "`](Self::", stringify!($try_name), ") returns an error.")]
            #[track_caller]
            pub const fn $name(&self, $($arg: &$type),+) -> ComposedLayout<I> {
                match self.$try_name($($arg),+) {
                    Ok(layout) => layout,
                    Err(error) => error.panic(),
                }
            }

            #[doc = concat!(
                "[`", stringify!($name), "`](Self::", stringify!($name), "), or the reason why there is none."
            )]
            ///
            /// # Errors
            /// If the operation on the outer layout returns an error.
            pub const fn $try_name(&self, $($arg: &$type),+) -> Result<ComposedLayout<I>, LayoutError> {
                let outer = tri!($operation(&self.outer, $($arg),+));
                Ok(ComposedLayout { inner: self.inner, offset: self.offset, outer })
            }
        )+}
    };
}
outer_operations! {
    /// The composition of this with a layout: `inner ∘ offset ∘ (outer ∘ layout)`.
    composition, try_composition(layout: Layout) = try_composition;

    /// [`composition_by_mode`](crate::composition_by_mode) of the outer layout.
    composition_by_mode, try_composition_by_mode(tiler: Tiler) = try_composition_by_mode;

    /// [`logical_divide`](crate::logical_divide) of the outer layout.
    logical_divide, try_logical_divide(tiler: Tiler) = try_logical_divide;

    /// [`zipped_divide`](crate::zipped_divide) of the outer layout.
    zipped_divide, try_zipped_divide(tiler: Tiler) = try_zipped_divide;

    /// [`tiled_divide`](crate::tiled_divide) of the outer layout.
    tiled_divide, try_tiled_divide(tiler: Tiler) = try_tiled_divide;

    /// [`flat_divide`](crate::flat_divide) of the outer layout.
    flat_divide, try_flat_divide(tiler: Tiler) = try_flat_divide;

    /// [`logical_product`](crate::logical_product) of the outer layout.
    logical_product, try_logical_product(tiler: Tiler) = try_logical_product;

    /// [`zipped_product`](crate::zipped_product) of the outer layout.
    zipped_product, try_zipped_product(tiler: Tiler) = try_zipped_product;

    /// [`tiled_product`](crate::tiled_product) of the outer layout.
    tiled_product, try_tiled_product(tiler: Tiler) = try_tiled_product;

    /// [`flat_product`](crate::flat_product) of the outer layout.
    flat_product, try_flat_product(tiler: Tiler) = try_flat_product;

    /// [`blocked_product`](crate::blocked_product) of the outer layout.
    blocked_product, try_blocked_product(tiler: Layout) = try_blocked_product;

    /// [`raked_product`](crate::raked_product) of the outer layout.
    raked_product, try_raked_product(tiler: Layout) = try_raked_product;

    /// [`tile_to_shape`](crate::tile_to_shape) of the outer layout: how a swizzled atom becomes a
    /// tile of shared memory.
    ///
    /// ```
    /// use cutlet_layout_core::{ComposedLayout, Swizzle, layout, shape};
    ///
    /// let atom = ComposedLayout::new(Swizzle::new(3, 3, 3), shape!(0), layout!((8, 64):(64, 1)));
    /// let tile = atom.tile_to_shape(&shape!((128, 64)), &shape!((0, 1)));
    /// assert_eq!(tile.to_string(), "Sw<3,3,3> o _0 o (_128,_64):(_64,_1)");
    /// ```
    tile_to_shape, try_tile_to_shape(shape: IntTuple, order: IntTuple) = try_tile_to_shape;

    /// [`coalesce_by_mode`](crate::coalesce_by_mode) of the outer layout.
    coalesce_by_mode, try_coalesce_by_mode(profile: IntTuple) = try_coalesce_by_mode;

    /// [`filter_by_mode`](crate::filter_by_mode) of the outer layout.
    filter_by_mode, try_filter_by_mode(profile: IntTuple) = try_filter_by_mode;

    /// [`Layout::with_shape`] of the outer layout.
    with_shape, try_with_shape(shape: IntTuple) = Layout::try_with_shape;
}

impl<I: Copy> ComposedLayout<I> {
    /// The modes that a coordinate marks with `_`. Their beginning is added to the offset.
    ///
    /// # Panics
    /// If [`try_slice`](Self::try_slice) returns an error.
    #[track_caller]
    pub const fn slice(&self, coord: &IntTuple) -> ComposedLayout<I> {
        match self.try_slice(coord) {
            Ok(layout) => layout,
            Err(error) => error.panic(),
        }
    }

    /// [`slice`](Self::slice), or the reason why there is none.
    ///
    /// # Errors
    /// If [`try_slice_and_offset`] returns an error, or if the offset does not fit 64 bits.
    pub const fn try_slice(&self, coord: &IntTuple) -> Result<ComposedLayout<I>, LayoutError> {
        let (outer, begin) = tri!(try_slice_and_offset(coord, &self.outer));
        let offset = tri!(try_add(&self.offset, &begin));
        Ok(ComposedLayout {
            inner: self.inner,
            offset,
            outer,
        })
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
