//! Division: a layout split into a tile and the layout of all tiles.

use crate::by_layout::ByLayout;
use crate::by_tiler::{by_mode, unzip, zipped_to_flat, zipped_to_tiled};
use crate::error::{LayoutError, tri, twin};
use crate::{Layout, Tiler};

twin! {
    /// Splits a layout into `(tile, rest)`: the elements that the tiler points to, and the layout
    /// of the tiles. A tuple divides mode by mode: `((TileM,RestM), (TileN,RestN), L, …)`.
    ///
    /// Every element is in a tile: the last tile may reach beyond the layout. The exception is a
    /// tile with holes that its repetitions do not fill, such as `(2,2):(1,3)`: the elements in the
    /// holes are in no tile.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, logical_divide, tile};
    ///
    /// let a = layout!((4, 2, 3):(2, 1, 8));
    /// assert_eq!(logical_divide(&a, &tile!(4:2)).to_string(), "((_2,_2),(_2,_3)):((_4,_1),(_2,_8))");
    /// ```
    logical_divide = try_logical_divide(layout: &Layout, tiler: &Tiler) -> Layout;

    /// [`logical_divide`] with the tiles gathered in one mode and the rests in another:
    /// `((TileM,TileN), (RestM,RestN,L,…))`. A mode whose tiler is `_` is its own tile as a whole, and
    /// its rest is `_1:_0`. So mode 0 is always the [`composition_by_mode`] with the tiler.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, tile, zipped_divide};
    ///
    /// let a = layout!((9, (4, 8)):(59, (13, 1)));
    /// let zd = zipped_divide(&a, &tile!(<3:3, (2, 4):(1, 8)>));
    /// assert_eq!(zd.to_string(), "((_3,(_2,_4)),(_3,(_2,_2))):((_177,(_13,_2)),(_59,(_26,_1)))");
    /// ```
    zipped_divide = try_zipped_divide(layout: &Layout, tiler: &Tiler) -> Layout;

    /// [`zipped_divide`] with the rests as modes of their own: `((TileM,TileN), RestM, RestN, L, …)`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, tile, tiled_divide};
    ///
    /// let td = tiled_divide(&layout!((8, 6):(1, 8)), &tile!(<4, 2>));
    /// assert_eq!(td.to_string(), "((_4,_2),_2,_3):((_1,_8),_4,_16)");
    /// ```
    tiled_divide = try_tiled_divide(layout: &Layout, tiler: &Tiler) -> Layout;

    /// [`zipped_divide`] with tiles and rests as modes of their own:
    /// `(TileM, TileN, RestM, RestN, L, …)`.
    ///
    /// ```
    /// use cutlet_layout_core::{flat_divide, layout, tile};
    ///
    /// let fd = flat_divide(&layout!((8, 6):(1, 8)), &tile!(<4, 2>));
    /// assert_eq!(fd.to_string(), "(_4,_2,_2,_3):(_1,_8,_4,_16)");
    /// ```
    flat_divide = try_flat_divide(layout: &Layout, tiler: &Tiler) -> Layout;

    /// The composition of each mode with its tiler: the tile without the rest. Modes past the tiler
    /// are dropped: the result is mode 0 of the [`zipped_divide`].
    ///
    /// ```
    /// use cutlet_layout_core::{composition_by_mode, layout, tile};
    ///
    /// let a = layout!((12, (4, 8)):(59, (13, 1)));
    /// assert_eq!(composition_by_mode(&a, &tile!(<3:4, 8:2>)).to_string(), "(_3,(_2,_4)):(_236,(_26,_1))");
    /// assert_eq!(composition_by_mode(&a, &tile!(<3:4>)).to_string(), "(_3):(_236)");
    /// ```
    composition_by_mode = try_composition_by_mode(layout: &Layout, tiler: &Tiler) -> Layout;
}

/// [`logical_divide`], or the reason why there is none.
///
/// # Errors
/// If [`try_composition`](crate::try_composition) or [`try_complement`](crate::try_complement)
/// returns an error, or the tiler has more modes than the layout.
pub const fn try_logical_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    by_mode(ByLayout::Divide, layout, tiler)
}

/// [`zipped_divide`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_divide`] returns an error.
pub const fn try_zipped_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    unzip(ByLayout::Divide, layout, tiler)
}

/// [`tiled_divide`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_divide`] returns an error.
pub const fn try_tiled_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    zipped_to_tiled(&tri!(try_zipped_divide(layout, tiler)))
}

/// [`flat_divide`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_divide`] returns an error.
pub const fn try_flat_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    zipped_to_flat(&tri!(try_zipped_divide(layout, tiler)))
}

/// [`composition_by_mode`], or the reason why there is none.
///
/// # Errors
/// If [`try_composition`](crate::try_composition) returns an error, or the tiler has more modes
/// than the layout.
pub const fn try_composition_by_mode(
    layout: &Layout,
    tiler: &Tiler,
) -> Result<Layout, LayoutError> {
    by_mode(ByLayout::Compose, layout, tiler)
}
