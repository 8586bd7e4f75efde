//! Compact strides for a shape: column-major, row-major, in an order, and identity.

use crate::by_layout::multiply_by_layout;
use crate::by_tiler::zipped_to_tiled;
use crate::coalesce::filter_zeros;
use crate::error::{ErrorKind, LayoutError, or_panic, tri, twin};
use crate::flat_modes::Knowledge;
use crate::int_tuple::{TupleBuilder, mismatch};
use crate::profile::CAPACITY;
use crate::relations::weakly_congruent;
use crate::text::Text;
use crate::{Basis, Int, IntTuple, Layout};

impl Layout {
    /// The compact layout whose leftmost extent has stride 1: CuTe's `LayoutLeft`, its default.
    ///
    /// ```
    /// use cutlet_layout_core::{Layout, shape};
    ///
    /// assert_eq!(Layout::col_major(&shape!((2, (2, 2)))).to_string(), "(_2,(_2,_2)):(_1,(_2,_4))");
    /// ```
    ///
    /// # Panics
    /// If the size does not fit 64 bits or an extent is below 1.
    #[track_caller]
    pub const fn col_major(shape: &IntTuple) -> Layout {
        or_panic(Layout::try_col_major(shape))
    }

    /// [`col_major`](Self::col_major), or the reason why not.
    ///
    /// # Errors
    /// If the size does not fit 64 bits or an extent is below 1.
    pub const fn try_col_major(shape: &IntTuple) -> Result<Layout, LayoutError> {
        let stride = tri!(try_compact(shape, Int::ONE, true));
        Layout::try_from_shape_stride(shape, &stride)
    }

    /// The compact layout whose rightmost extent has stride 1: CuTe's `LayoutRight`.
    ///
    /// ```
    /// use cutlet_layout_core::{Layout, shape};
    ///
    /// assert_eq!(Layout::row_major(&shape!((2, 4))).to_string(), "(_2,_4):(_4,_1)");
    /// ```
    ///
    /// # Panics
    /// If the size does not fit 64 bits or an extent is below 1.
    #[track_caller]
    pub const fn row_major(shape: &IntTuple) -> Layout {
        or_panic(Layout::try_row_major(shape))
    }

    /// [`row_major`](Self::row_major), or the reason why not.
    ///
    /// # Errors
    /// If the size does not fit 64 bits or an extent is below 1.
    pub const fn try_row_major(shape: &IntTuple) -> Result<Layout, LayoutError> {
        let stride = tri!(try_compact(shape, Int::ONE, false));
        Layout::try_from_shape_stride(shape, &stride)
    }
}

/// The strides that count a shape from the left or from the right, beginning with `current`.
/// Extents of `_1` get the stride `_0`, as in CuTe.
const fn try_compact(
    shape: &IntTuple,
    current: Int,
    from_left: bool,
) -> Result<IntTuple, LayoutError> {
    let n = shape.num_leaves();
    let mut stride = [Int::ZERO; CAPACITY];
    let mut step = current;
    let mut visited = 0;
    while visited < n {
        let i = if from_left { visited } else { n - 1 - visited };
        if shape.is_underscore(i) {
            return Err(mismatch(
                "compact",
                shape,
                " in steps of ",
                &IntTuple::int(current),
                "`_` is not an extent: give an integer",
            ));
        }
        let extent = shape.leaf(i);
        if !extent.is_constant(1) {
            stride[i] = step;
            step = match step.checked_mul(extent) {
                Some(next) => next,
                None => return Err(overflow(shape)),
            };
        }
        visited += 1;
    }
    Ok(IntTuple::from_parts(stride, *shape.profile()))
}

/// The layout that maps each coordinate to itself: strides `1@0`, `1@1`, … congruent with the
/// shape.
///
/// ```
/// use cutlet_layout_core::{identity, shape};
///
/// assert_eq!(identity(&shape!((8, 4))).to_string(), "(_8,_4):(_1@0,_1@1)");
/// assert_eq!(identity(&shape!((8, (2, 2)))).to_string(), "(_8,(_2,_2)):(_1@0,(_1@0@1,_1@1@1))");
/// ```
///
/// # Panics
/// If an extent is below 1, or the size does not fit 64 bits.
#[track_caller]
pub const fn identity(shape: &IntTuple) -> Layout {
    or_panic(try_identity(shape))
}

/// [`identity`], or the reason why not.
///
/// # Errors
/// If an extent is below 1, or the size does not fit 64 bits.
pub const fn try_identity(shape: &IntTuple) -> Result<Layout, LayoutError> {
    let mut stride = TupleBuilder::new();
    let mut counts = [0usize; Basis::MAX_DEPTH + 1];
    let mut depth = 0;
    let mut i = 0;
    while i < shape.num_leaves() {
        let opens = shape.profile().opens(i);
        let mut level = 0;
        while level < opens {
            stride.open();
            depth += 1;
            counts[depth] = 0;
            level += 1;
        }
        let mut basis = Basis::NONE;
        level = 1;
        while level <= depth {
            basis = basis.then(counts[level]);
            level += 1;
        }
        stride.leaf(Int::ONE.along(basis));
        let closes = shape.profile().closes(i);
        level = 0;
        while level < closes {
            stride.close();
            depth -= 1;
            level += 1;
        }
        counts[depth] += 1;
        i += 1;
    }
    Layout::try_from_shape_stride(shape, &tri!(stride.finish()))
}

twin! {
    /// The strides that count a shape colexicographically from `start`: CuTe's
    /// `compact_col_major`. Extents of `_1` get the stride `_0`.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, compact_col_major, shape};
    ///
    /// let strides = compact_col_major(&shape!((3, (2, 4))), Int::fixed(5));
    /// assert_eq!(strides.to_string(), "(_5,(_15,_30))");
    /// ```
    compact_col_major = try_compact_col_major(shape: &IntTuple, start: Int) -> IntTuple;

    /// The strides that count a shape lexicographically from `start`: CuTe's
    /// `compact_row_major`. Extents of `_1` get the stride `_0`.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, compact_row_major, shape};
    ///
    /// let strides = compact_row_major(&shape!((3, (2, 4))), Int::ONE);
    /// assert_eq!(strides.to_string(), "(_8,(_4,_1))");
    /// ```
    compact_row_major = try_compact_row_major(shape: &IntTuple, start: Int) -> IntTuple;

    /// Compact strides for a shape in a given order: the mode with the smallest number gets the
    /// smallest strides, and equal numbers go from the left.
    ///
    /// If static and dynamic numbers are mixed, the dynamic ones come last, from the left, whatever
    /// their values are: this is CuTe's rule, where types alone decide. An order without any static
    /// number would then say nothing, so its values decide.
    ///
    /// ```
    /// use cutlet_layout_core::{compact_order, shape};
    ///
    /// let strides = compact_order(&shape!((2, 2, 2, 2)), &shape!((0, 2, 3, 1)));
    /// assert_eq!(strides.to_string(), "(_1,_4,_8,_2)");
    /// let strides = compact_order(&shape!((8, 64)), &(1, 0).into());
    /// assert_eq!(strides.to_string(), "(_64,_1)");
    /// ```
    compact_order = try_compact_order(shape: &IntTuple, order: &IntTuple) -> IntTuple;

    /// The compact layout of a shape in a given order, with the strides of [`compact_order`].
    ///
    /// ```
    /// use cutlet_layout_core::{ordered_layout, shape};
    ///
    /// let layout = ordered_layout(&shape!((2, 3, 4)), &shape!((2, 0, 1)));
    /// assert_eq!(layout.to_string(), "(_2,_3,_4):(_12,_1,_3)");
    /// ```
    ordered_layout = try_ordered_layout(shape: &IntTuple, order: &IntTuple) -> Layout;

    /// The compact layout of the same shape, with modes in the order of the layout's strides.
    /// Strides of `_0` stay.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, layout_like};
    ///
    /// let like = layout_like(&layout!((2, 2, 2, 2):(0, 2, 4, 1)));
    /// assert_eq!(like.to_string(), "(_2,_2,_2,_2):(_0,_2,_4,_1)");
    /// ```
    layout_like = try_layout_like(layout: &Layout) -> Layout;

    /// [`layout_like`] for a register fragment. Mode 0 holds the values of an atom: it is always
    /// column-major and fastest, and its strides of `_0` stay. The other modes are compact,
    /// including those of stride `_0`. A layout of one mode or of a dynamic shape becomes
    /// column-major. Dynamic strides order no modes, so that a fragment depends on types alone.
    ///
    /// ```
    /// use cutlet_layout_core::{fragment_like, layout};
    ///
    /// let like = fragment_like(&layout!(((2, 2), 3, 4):((8, 64), 512, 1)));
    /// assert_eq!(like.to_string(), "((_2,_2),_3,_4):((_1,_2),_16,_4)");
    /// let like = fragment_like(&layout!(((2, 2), 3, 4):((0, 8), 0, 1)));
    /// assert_eq!(like.to_string(), "((_2,_2),_3,_4):((_0,_1),_2,_6)");
    /// ```
    fragment_like = try_fragment_like(layout: &Layout) -> Layout;
}

/// [`compact_col_major`], or the reason why there is none.
///
/// # Errors
/// If a stride does not fit 64 bits, or the shape has an underscore.
pub const fn try_compact_col_major(shape: &IntTuple, start: Int) -> Result<IntTuple, LayoutError> {
    try_compact(shape, start, true)
}

/// [`compact_row_major`], or the reason why there is none.
///
/// # Errors
/// If a stride does not fit 64 bits, or the shape has an underscore.
pub const fn try_compact_row_major(shape: &IntTuple, start: Int) -> Result<IntTuple, LayoutError> {
    try_compact(shape, start, false)
}

/// [`compact_order`], or the reason why there is none.
///
/// # Errors
/// If the order is not weakly congruent with the shape, or a stride does not fit 64 bits.
pub const fn try_compact_order(
    shape: &IntTuple,
    order: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    compact_in_order(shape, order, deciding(order))
}

/// Compact strides in an order, of which only the deciding numbers are looked at.
const fn compact_in_order(
    shape: &IntTuple,
    order: &IntTuple,
    deciding: Knowledge,
) -> Result<IntTuple, LayoutError> {
    if order.has_underscore() || shape.has_underscore() || !weakly_congruent(order, shape) {
        let why = "the order must have a number for each mode of the shape";
        return Err(mismatch(
            "compact_order",
            shape,
            " in the order ",
            order,
            why,
        ));
    }
    let mut extents = [Int::ONE; CAPACITY];
    let mut first_leaf = [0usize; CAPACITY + 1];
    let modes = order.num_leaves();
    let mut leaf = 0;
    let mut i = 0;
    while i < modes {
        first_leaf[i] = leaf;
        let end = leaf_span(shape, order, i, leaf);
        while leaf < end {
            extents[i] = match extents[i].checked_mul(shape.leaf(leaf)) {
                Some(extent) => extent,
                None => return Err(overflow(shape)),
            };
            leaf += 1;
        }
        i += 1;
    }
    first_leaf[modes] = leaf;

    let mut strides = [Int::ZERO; CAPACITY];
    let mut placed = [false; CAPACITY];
    let mut step = Int::ONE;
    let mut count = 0;
    while count < modes {
        let next = next_in_order(order, deciding, &placed);
        placed[next] = true;
        let mut inner = step;
        let mut j = first_leaf[next];
        while j < first_leaf[next + 1] {
            let extent = shape.leaf(j);
            if !extent.is_constant(1) {
                strides[j] = inner;
                inner = match inner.checked_mul(extent) {
                    Some(inner) => inner,
                    None => return Err(overflow(shape)),
                };
            }
            j += 1;
        }
        step = match step.checked_mul(extents[next]) {
            Some(step) => step,
            None => return Err(overflow(shape)),
        };
        count += 1;
    }
    Ok(IntTuple::from_parts(strides, *shape.profile()))
}

/// The end of the leaves of `shape` under leaf `i` of `order`, given their beginning.
const fn leaf_span(shape: &IntTuple, order: &IntTuple, i: usize, begin: usize) -> usize {
    let mut depth = 0usize;
    let mut leaf = begin;
    let skip = order.profile().opens(i);
    loop {
        let opens = shape.profile().opens(leaf);
        depth += if leaf == begin { opens - skip } else { opens };
        let closes = shape.profile().closes(leaf);
        leaf += 1;
        if closes >= depth {
            return leaf;
        }
        depth -= closes;
    }
}

/// The numbers that decide an order: the static ones, but all if there is no static one.
const fn deciding(order: &IntTuple) -> Knowledge {
    let mut i = 0;
    while i < order.num_leaves() {
        if order.leaf(i).is_static() {
            return Knowledge::Static;
        }
        i += 1;
    }
    Knowledge::Values
}

/// The mode that gets the next strides: the one with the smallest deciding number, then those with
/// other numbers, from the left.
const fn next_in_order(order: &IntTuple, deciding: Knowledge, placed: &[bool; CAPACITY]) -> usize {
    let mut best = CAPACITY;
    let mut i = 0;
    while i < order.num_leaves() {
        if !placed[i] && (best == CAPACITY || is_before(order.leaf(i), order.leaf(best), deciding))
        {
            best = i;
        }
        i += 1;
    }
    best
}

/// Whether a number's mode comes before that of another number, which is further left.
const fn is_before(number: Int, left: Int, deciding: Knowledge) -> bool {
    if matches!(deciding, Knowledge::Static) && !(number.is_static() && left.is_static()) {
        return number.is_static() && !left.is_static();
    }
    number.value() < left.value()
}

/// [`ordered_layout`], or the reason why there is none.
///
/// # Errors
/// If [`try_compact_order`] returns an error, or an extent is below 1.
pub const fn try_ordered_layout(shape: &IntTuple, order: &IntTuple) -> Result<Layout, LayoutError> {
    Layout::try_from_shape_stride(shape, &tri!(try_compact_order(shape, order)))
}

/// [`layout_like`], or the reason why there is none.
///
/// # Errors
/// If a stride does not fit 64 bits.
pub const fn try_layout_like(layout: &Layout) -> Result<Layout, LayoutError> {
    let filtered = filter_zeros(layout);
    let stride = tri!(try_compact_order(&filtered.shape(), &layout.stride()));
    Layout::try_from_shape_stride(&layout.shape(), &stride)
}

/// [`fragment_like`], or the reason why there is none.
///
/// # Errors
/// If a stride does not fit 64 bits.
pub const fn try_fragment_like(layout: &Layout) -> Result<Layout, LayoutError> {
    if layout.rank() < 2 || !layout.shape().is_static() {
        return Layout::try_col_major(&layout.shape());
    }
    let values = layout.mode(0);
    let filtered = filter_zeros(&values);
    let stride = tri!(try_compact(&filtered.shape(), Int::ONE, true));
    let block = tri!(Layout::try_from_shape_stride(&values.shape(), &stride));
    let rest = layout.take(1, layout.rank());
    // Registers are laid out by types alone: dynamic strides order nothing.
    let order = tri!(compact_in_order(
        &rest.shape(),
        &rest.stride(),
        Knowledge::Static
    ));
    let tiles = tri!(Layout::try_from_shape_stride(&rest.shape(), &order));
    zipped_to_tiled(&tri!(multiply_by_layout(&block, &tiles)))
}

const fn overflow(shape: &IntTuple) -> LayoutError {
    let mut text = Text::new();
    text.str("compact: the size of ")
        .tuple(shape)
        .str(" does not fit 64 bits");
    LayoutError::new(ErrorKind::Overflow, &text)
}
