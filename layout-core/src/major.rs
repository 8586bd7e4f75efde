//! Compact strides for a shape: column-major, row-major, in an order, and identity.

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::int_tuple::{TupleBuilder, mismatch};
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

/// The strides that enumerate a shape from the left, in steps of `current`: extents of a static 1
/// get a static 0, as in CuTe.
const fn try_compact(
    shape: &IntTuple,
    current: Int,
    from_left: bool,
) -> Result<IntTuple, LayoutError> {
    let n = shape.num_leaves();
    let mut stride = [Int::ZERO; crate::CAPACITY];
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
                "`_` is no extent",
            ));
        }
        let extent = shape.leaf(i);
        if !extent.is_constant(1) {
            stride[i] = step;
            step = match step.checked_mul(extent) {
                Some(next) => next,
                None => {
                    let mut text = Text::new();
                    text.str("compact: the size of ")
                        .tuple(shape)
                        .str(" does not fit 64 bits");
                    return Err(LayoutError::new(ErrorKind::Overflow, &text));
                }
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
/// If an extent is below 1, the size does not fit 64 bits, or the shape is nested deeper than
/// [`Basis::MAX_DEPTH`].
#[track_caller]
pub const fn identity(shape: &IntTuple) -> Layout {
    or_panic(try_identity(shape))
}

/// [`identity`], or the reason why not.
///
/// # Errors
/// If an extent is below 1, the size does not fit 64 bits, or the shape is nested deeper than
/// [`Basis::MAX_DEPTH`].
pub const fn try_identity(shape: &IntTuple) -> Result<Layout, LayoutError> {
    if shape.depth() > Basis::MAX_DEPTH {
        let mut text = Text::new();
        text.str("identity: ")
            .tuple(shape)
            .str(" is nested deeper than a basis, ");
        text.number(Basis::MAX_DEPTH as i64)
            .str(" levels: flatten it");
        return Err(LayoutError::new(ErrorKind::Capacity, &text));
    }
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
