//! Products: a layout repeated in the order of another.

use crate::by_layout::{ByLayout, multiply_by_layout};
use crate::by_tiler::{by_mode, unzip, zipped_to_flat, zipped_to_tiled};
use crate::coalesce::try_coalesce_by_mode;
use crate::error::{LayoutError, tri, twin};
use crate::int_tuple::mismatch;
use crate::layout::LayoutBuilder;
use crate::major::try_ordered_layout;
use crate::{Int, IntTuple, Layout, Tiler};

twin! {
    /// `(A, A* ∘ B)`: the layout, and its repetitions in the order of the tiler. A tuple multiplies
    /// mode by mode: `((M,TileM), (N,TileN), L, …)`.
    ///
    /// No two blocks overlap. If the block's gaps hold fewer repetitions than the tiler asks for,
    /// the product is refused; CuTe lets blocks overlap there.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, logical_product, tile};
    ///
    /// let r = logical_product(&layout!((2, 2):(4, 1)), &tile!(6:1));
    /// assert_eq!(r.to_string(), "((_2,_2),(_2,_3)):((_4,_1),(_2,_8))");
    /// ```
    logical_product = try_logical_product(block: &Layout, tiler: &Tiler) -> Layout;

    /// [`logical_product`] with the blocks gathered in one mode and the repetitions in another:
    /// `((M,N), (TileM,TileN,L,…))`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, tile, zipped_product};
    ///
    /// let r = zipped_product(&layout!((2, 4):(1, 2)), &tile!(<3:1, 2:1>));
    /// assert_eq!(r.to_string(), "((_2,_4),(_3,_2)):((_1,_2),(_2,_1))");
    /// ```
    zipped_product = try_zipped_product(block: &Layout, tiler: &Tiler) -> Layout;

    /// [`zipped_product`] with the repetitions as modes of their own: `((M,N), TileM, TileN, L, …)`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, tile, tiled_product};
    ///
    /// let r = tiled_product(&layout!((2, 2):(1, 2)), &tile!((3, 2):(1, 3)));
    /// assert_eq!(r.to_string(), "((_2,_2),_3,_2):((_1,_2),_4,_12)");
    /// ```
    tiled_product = try_tiled_product(block: &Layout, tiler: &Tiler) -> Layout;

    /// [`zipped_product`] with blocks and repetitions as modes of their own:
    /// `(M, N, TileM, TileN, L, …)`.
    ///
    /// ```
    /// use cutlet_layout_core::{flat_product, layout, tile};
    ///
    /// let r = flat_product(&layout!((2, 2):(1, 2)), &tile!((3, 2):(1, 3)));
    /// assert_eq!(r.to_string(), "(_2,_2,_3,_2):(_1,_2,_4,_12)");
    /// ```
    flat_product = try_flat_product(block: &Layout, tiler: &Tiler) -> Layout;

    /// Repeats a block over the tiler, mode by mode: each element of the tiler becomes a block. The
    /// modes of the result are coalesced.
    ///
    /// ```
    /// use cutlet_layout_core::{blocked_product, layout};
    ///
    /// let r = blocked_product(&layout!((2, 5):(5, 1)), &layout!((3, 4):(1, 3)));
    /// assert_eq!(r.to_string(), "(_6,(_5,_4)):(_5,(_1,_30))");
    /// ```
    blocked_product = try_blocked_product(block: &Layout, tiler: &Layout) -> Layout;

    /// [`blocked_product`] with the blocks interleaved: each element of the block becomes as many
    /// elements as the tiler has. The modes of the result are coalesced.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, raked_product};
    ///
    /// let r = raked_product(&layout!((2, 5):(5, 1)), &layout!((3, 4):(1, 3)));
    /// assert_eq!(r.to_string(), "((_3,_2),(_4,_5)):((_10,_5),(_30,_1))");
    /// ```
    raked_product = try_raked_product(block: &Layout, tiler: &Layout) -> Layout;

    /// Repeats a block until it fills a shape, along the modes in the given order: `(0, 1)` repeats
    /// along the first mode first, `(1, 0)` along the second.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, shape, tile_to_shape};
    ///
    /// let block = layout!((2, 2):(1, 2));
    /// let r = tile_to_shape(&block, &shape!((4, 6)), &shape!((1, 0)));
    /// assert_eq!(r.to_string(), "((_2,_2),_6):((_1,_12),_2)");
    /// ```
    tile_to_shape = try_tile_to_shape(block: &Layout, shape: &IntTuple, order: &IntTuple) -> Layout;
}

/// [`logical_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_composition`](crate::try_composition) or [`try_complement`](crate::try_complement)
/// returns an error, the tiler maps below 0 or asks for more repetitions than the block's gaps
/// hold, or it has more modes than the block.
pub const fn try_logical_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    by_mode(ByLayout::Multiply, block, tiler)
}

/// [`zipped_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_product`] returns an error.
pub const fn try_zipped_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    unzip(ByLayout::Multiply, block, tiler)
}

/// [`tiled_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_product`] returns an error.
pub const fn try_tiled_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    zipped_to_tiled(&tri!(try_zipped_product(block, tiler)))
}

/// [`flat_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_product`] returns an error.
pub const fn try_flat_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    zipped_to_flat(&tri!(try_zipped_product(block, tiler)))
}

/// [`blocked_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_product`] returns an error.
pub const fn try_blocked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    ranked_product(block, tiler, true)
}

/// [`raked_product`], or the reason why there is none.
///
/// # Errors
/// If [`try_logical_product`] returns an error.
pub const fn try_raked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    ranked_product(block, tiler, false)
}

/// The product of layouts padded to the same rank, with each pair of modes zipped and coalesced.
const fn ranked_product(
    block: &Layout,
    tiler: &Layout,
    block_first: bool,
) -> Result<Layout, LayoutError> {
    let rank = if block.rank() > tiler.rank() {
        block.rank()
    } else {
        tiler.rank()
    };
    let block = tri!(padded(block, rank));
    let tiler = tri!(padded(tiler, rank));
    let product = tri!(multiply_by_layout(&block, &tiler));
    let (blocks, tiles) = (product.mode(0), product.mode(1));
    let mut zipped = LayoutBuilder::new();
    let mut profile = [IntTuple::EMPTY; crate::CAPACITY];
    zipped.open();
    let mut i = 0;
    while i < rank {
        let (a, b) = (blocks.mode(i), tiles.mode(i));
        zipped.open();
        zipped.append(if block_first { &a } else { &b });
        zipped.append(if block_first { &b } else { &a });
        zipped.close();
        profile[i] = IntTuple::int(Int::ONE);
        i += 1;
    }
    zipped.close();
    let profile = IntTuple::tuple(profile.split_at(rank).0);
    try_coalesce_by_mode(&tri!(zipped.finish()), &profile)
}

/// The layout as a tuple, padded to a rank with modes `_1:_0`.
const fn padded(layout: &Layout, rank: usize) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    builder.open();
    builder.append_modes(layout);
    let mut i = layout.rank();
    while i < rank {
        builder.append(&Layout::UNIT);
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// [`tile_to_shape`], or the reason why there is none.
///
/// # Errors
/// If the block has more modes than the shape, an extent of the block does not divide the shape's,
/// the shape and the order have different ranks, or [`try_blocked_product`] returns an error.
pub const fn try_tile_to_shape(
    block: &Layout,
    shape: &IntTuple,
    order: &IntTuple,
) -> Result<Layout, LayoutError> {
    let rank = shape.rank();
    if block.rank() > rank || order.rank() != rank || shape.has_underscore() {
        let why =
            "the block must have at most as many modes as the shape, and the order exactly as many";
        return Err(mismatch(
            "tile_to_shape",
            &block.shape(),
            " to ",
            shape,
            why,
        ));
    }
    let block = tri!(padded(block, rank));
    let mut times = [IntTuple::EMPTY; crate::CAPACITY];
    let mut i = 0;
    while i < rank {
        let extent = match Layout::try_col_major(&shape.mode(i)) {
            Ok(mode) => mode.size_int(),
            Err(error) => return Err(error),
        };
        let have = block.mode(i).size_int();
        if extent.value() % have.value() != 0 {
            let why = "the block's extents must divide the shape's";
            return Err(mismatch(
                "tile_to_shape",
                &block.shape(),
                " to ",
                shape,
                why,
            ));
        }
        times[i] = match extent.checked_div(have) {
            Some(times) => IntTuple::int(times),
            None => unreachable!(),
        };
        i += 1;
    }
    let times = IntTuple::tuple(times.split_at(rank).0);
    let order = if order.is_tuple() {
        *order
    } else {
        IntTuple::tuple(&[*order])
    };
    try_blocked_product(&block, &tri!(try_ordered_layout(&times, &order)))
}
