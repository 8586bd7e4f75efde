//! Slicing: fixing some coordinates of a layout and keeping the modes marked `_`.

use crate::coordinate::Sum;
use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::int_tuple::mismatch;
use crate::layout::LayoutBuilder;
use crate::{IntTuple, Layout};

twin! {
    /// The modes that a coordinate marks with `_`, as a layout that begins at 0.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, shape, slice};
    ///
    /// let a = layout!((4, (2, 3)):(1, (4, 8)));
    /// assert_eq!(slice(&shape!((2, _)), &a).to_string(), "((_2,_3)):((_4,_8))");
    /// assert_eq!(slice(&shape!((_, (1, _))), &a).to_string(), "(_4,_3):(_1,_8)");
    /// ```
    slice = try_slice(coord: &IntTuple, layout: &Layout) -> Layout;

    /// The modes that a coordinate does not mark with `_`.
    ///
    /// ```
    /// use cutlet_layout_core::{dice, layout, shape};
    ///
    /// let a = layout!((4, (2, 3)):(1, (4, 8)));
    /// assert_eq!(dice(&shape!((2, _)), &a).to_string(), "(_4):(_1)");
    /// ```
    dice = try_dice(coord: &IntTuple, layout: &Layout) -> Layout;

    /// [`slice()`], and the index that it begins at.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, shape, slice_and_offset};
    ///
    /// let (rows, offset) = slice_and_offset(&shape!((7, _)), &layout!((8, 8):(6, 59)));
    /// assert_eq!((rows.to_string().as_str(), offset.to_string().as_str()), ("(_8):(_59)", "_42"));
    /// ```
    slice_and_offset = try_slice_and_offset(coord: &IntTuple, layout: &Layout) -> (Layout, IntTuple);
}

/// [`slice()`], or the reason why there is none.
///
/// # Errors
/// If the coordinate does not fit the shape, or no mode is marked `_`.
pub const fn try_slice(coord: &IntTuple, layout: &Layout) -> Result<Layout, LayoutError> {
    keep(coord, layout, true)
}

/// [`dice`], or the reason why there is none.
///
/// # Errors
/// If the coordinate does not fit the shape, or every mode is marked `_`.
pub const fn try_dice(coord: &IntTuple, layout: &Layout) -> Result<Layout, LayoutError> {
    keep(coord, layout, false)
}

/// [`slice_and_offset`], or the reason why there is none.
///
/// # Errors
/// If [`try_slice`] or [`Layout::try_call`] returns an error.
pub const fn try_slice_and_offset(
    coord: &IntTuple,
    layout: &Layout,
) -> Result<(Layout, IntTuple), LayoutError> {
    let kept = tri!(try_slice(coord, layout));
    let mut sum = Sum::of(layout);
    match sum.add(layout, coord) {
        Ok(()) => Ok((kept, tri!(sum.finish()))),
        Err(why) => Err(mismatch("slice", &layout.shape(), " at ", coord, why)),
    }
}

const fn keep(coord: &IntTuple, layout: &Layout, underscores: bool) -> Result<Layout, LayoutError> {
    let (operation, empty) = if underscores {
        ("slice", "no mode is left: mark at least one with `_`")
    } else {
        ("dice", "no mode is left: give at least one an integer")
    };
    let whole = !coord.is_tuple();
    if whole && coord.has_underscore() == underscores {
        return Ok(*layout);
    }
    let mut builder = LayoutBuilder::new();
    builder.open();
    if !whole && !keep_into(coord, layout, underscores, &mut builder) {
        let why = "the coordinate does not fit the shape: give each tuple the rank of its mode";
        return Err(mismatch(operation, &layout.shape(), " at ", coord, why));
    }
    builder.close();
    match builder.finish() {
        Err(error) if matches!(error.kind(), ErrorKind::Invalid) => {
            Err(mismatch(operation, &layout.shape(), " at ", coord, empty))
        }
        result => result,
    }
}

/// Adds the modes that are kept, those of nested tuples side by side; `false` if the coordinate
/// does not fit.
const fn keep_into(
    coord: &IntTuple,
    layout: &Layout,
    underscores: bool,
    builder: &mut LayoutBuilder,
) -> bool {
    if !coord.is_tuple() {
        if coord.has_underscore() == underscores {
            builder.append(layout);
        }
        return true;
    }
    if layout.profile().is_leaf() || layout.rank() != coord.rank() {
        return false;
    }
    let mut i = 0;
    while i < coord.rank() {
        if !keep_into(&coord.mode(i), &layout.mode(i), underscores, builder) {
            return false;
        }
        i += 1;
    }
    true
}
