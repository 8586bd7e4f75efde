//! The operations on a composed layout that act on its outer layout and its offset.

use super::{ComposedLayout, try_add};
use crate::error::{LayoutError, tri};
use crate::{
    IntTuple, Layout, Tiler, coalesce, try_blocked_product, try_coalesce_by_mode, try_composition,
    try_composition_by_mode, try_filter_by_mode, try_flat_divide, try_flat_product,
    try_logical_divide, try_logical_product, try_raked_product, try_slice_and_offset,
    try_tile_to_shape, try_tiled_divide, try_tiled_product, try_zipped_divide, try_zipped_product,
};

/// The operations that act on the outer layout.
macro_rules! outer_operations {
    ($(
        $(#[$doc:meta])*
        $name:ident, $try_name:ident ($($arg:ident: $type:ty),*) = $operation:expr;
    )+) => {
        impl<I: Copy> ComposedLayout<I> {$(
            $(#[$doc])*
            ///
            /// # Panics
            #[doc = concat!("If [`", stringify!($try_name), "`](Self::", stringify!($try_name), ") returns an error.")]
            #[track_caller]
            pub const fn $name(&self, $($arg: $type),*) -> ComposedLayout<I> {
                match self.$try_name($($arg),*) {
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
            pub const fn $try_name(&self, $($arg: $type),*) -> Result<ComposedLayout<I>, LayoutError> {
                Ok(self.with_outer(tri!($operation(&self.outer, $($arg),*))))
            }
        )+}
    };
}
outer_operations! {
    /// The composition of this with a layout: `inner ∘ offset ∘ (outer ∘ layout)`.
    composition, try_composition(layout: &Layout) = try_composition;

    /// [`composition_by_mode`](crate::composition_by_mode) of the outer layout.
    composition_by_mode, try_composition_by_mode(tiler: &Tiler) = try_composition_by_mode;

    /// [`logical_divide`](crate::logical_divide) of the outer layout.
    logical_divide, try_logical_divide(tiler: &Tiler) = try_logical_divide;

    /// [`zipped_divide`](crate::zipped_divide) of the outer layout.
    zipped_divide, try_zipped_divide(tiler: &Tiler) = try_zipped_divide;

    /// [`tiled_divide`](crate::tiled_divide) of the outer layout.
    tiled_divide, try_tiled_divide(tiler: &Tiler) = try_tiled_divide;

    /// [`flat_divide`](crate::flat_divide) of the outer layout.
    flat_divide, try_flat_divide(tiler: &Tiler) = try_flat_divide;

    /// [`logical_product`](crate::logical_product) of the outer layout.
    logical_product, try_logical_product(tiler: &Tiler) = try_logical_product;

    /// [`zipped_product`](crate::zipped_product) of the outer layout.
    zipped_product, try_zipped_product(tiler: &Tiler) = try_zipped_product;

    /// [`tiled_product`](crate::tiled_product) of the outer layout.
    tiled_product, try_tiled_product(tiler: &Tiler) = try_tiled_product;

    /// [`flat_product`](crate::flat_product) of the outer layout.
    flat_product, try_flat_product(tiler: &Tiler) = try_flat_product;

    /// [`blocked_product`](crate::blocked_product) of the outer layout.
    blocked_product, try_blocked_product(tiler: &Layout) = try_blocked_product;

    /// [`raked_product`](crate::raked_product) of the outer layout.
    raked_product, try_raked_product(tiler: &Layout) = try_raked_product;

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
    tile_to_shape, try_tile_to_shape(shape: &IntTuple, order: &IntTuple) = try_tile_to_shape;

    /// [`coalesce_by_mode`](crate::coalesce_by_mode) of the outer layout.
    coalesce_by_mode, try_coalesce_by_mode(profile: &IntTuple) = try_coalesce_by_mode;

    /// [`filter_by_mode`](crate::filter_by_mode) of the outer layout.
    filter_by_mode, try_filter_by_mode(profile: &IntTuple) = try_filter_by_mode;

    /// [`Layout::with_shape`] of the outer layout.
    with_shape, try_with_shape(shape: &IntTuple) = Layout::try_with_shape;

    /// Mode `i`, CuTe's `layout<i>`: the inner transform and the offset of the whole, and mode `i`
    /// of the outer layout.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let tile = Swizzle::new(3, 0, 3).composition(&layout!((8, 4):(4, 1)));
    /// assert_eq!(tile.mode(0).to_string(), "Sw<3,0,3> o _0 o _8:_4");
    /// ```
    mode, try_mode(i: usize) = Layout::try_mode;

    /// The part at a path: `get(&[1, 0])` is mode 0 of mode 1.
    get, try_get(path: &[usize]) = Layout::try_get;

    /// [`Layout::select`] of the outer layout.
    select, try_select(modes: &[usize]) = Layout::try_select;

    /// [`Layout::take`] of the outer layout.
    take, try_take(begin: usize, end: usize) = Layout::try_take;

    /// [`Layout::group`] of the outer layout.
    group, try_group(begin: usize, end: usize) = Layout::try_group;

    /// [`Layout::append`] to the outer layout.
    append, try_append(last: &Layout) = Layout::try_append;

    /// [`Layout::prepend`] to the outer layout.
    prepend, try_prepend(first: &Layout) = Layout::try_prepend;
}

impl<I: Copy> ComposedLayout<I> {
    /// [`Layout::flatten`] of the outer layout.
    pub const fn flatten(&self) -> ComposedLayout<I> {
        self.with_outer(self.outer.flatten())
    }

    /// [`coalesce`](crate::coalesce()) of the outer layout.
    pub const fn coalesce(&self) -> ComposedLayout<I> {
        self.with_outer(coalesce(&self.outer))
    }

    const fn with_outer(&self, outer: Layout) -> ComposedLayout<I> {
        ComposedLayout {
            inner: self.inner,
            offset: self.offset,
            outer,
        }
    }

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
