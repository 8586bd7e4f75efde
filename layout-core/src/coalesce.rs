//! Simplifying a layout without changing it as a function of 1-D coordinates.

use crate::error::{LayoutError, or_panic, tri};
use crate::layout::LayoutBuilder;
use crate::{CAPACITY, Int, IntTuple, Layout};

/// A flat list of modes.
#[derive(Clone, Copy)]
pub(crate) struct Modes {
    pub(crate) shape: [Int; CAPACITY],
    pub(crate) stride: [Int; CAPACITY],
    pub(crate) len: usize,
}

impl Modes {
    pub(crate) const EMPTY: Modes = Modes {
        shape: [Int::ONE; CAPACITY],
        stride: [Int::ZERO; CAPACITY],
        len: 0,
    };

    /// Adds a mode. Callers add no more than a layout's leaves.
    pub(crate) const fn push(&mut self, shape: Int, stride: Int) {
        self.shape[self.len] = shape;
        self.stride[self.len] = stride;
        self.len += 1;
    }

    /// A mode on its own for a single one, a tuple otherwise, `_1:_0` for none.
    pub(crate) const fn to_layout(&self) -> Result<Layout, LayoutError> {
        if self.len == 0 {
            return Ok(Layout::UNIT);
        }
        let mut builder = LayoutBuilder::new();
        if self.len > 1 {
            builder.open();
        }
        let mut i = 0;
        while i < self.len {
            builder.leaf(self.shape[i], self.stride[i]);
            i += 1;
        }
        if self.len > 1 {
            builder.close();
        }
        builder.finish()
    }
}

/// How much of what is known about integers a simplification may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Only static integers, so that the result's shape depends on static values alone.
    Static,
    /// Every value.
    Values,
}

const fn is_one(shape: Int, knowledge: Knowledge) -> bool {
    shape.value() == 1 && (shape.is_static() || matches!(knowledge, Knowledge::Values))
}

/// Whether `shape * stride == next`, as far as is known.
const fn continues(shape: Int, stride: Int, next: Int, knowledge: Knowledge) -> bool {
    let Some(end) = shape.value().checked_mul(stride.value()) else {
        return false;
    };
    let known = matches!(knowledge, Knowledge::Values)
        || (next.is_static()
            && (stride.is_constant(0) || (shape.is_static() && stride.is_static())));
    // A stride of 0 goes nowhere, in whichever direction.
    let direction = stride.basis().eq(next.basis()) || (end == 0 && next.value() == 0);
    known && direction && end == next.value()
}

/// The fewest modes that compute the same function. From the right, as CuTe does it, which shows
/// in how dynamic modes are left over.
pub(crate) const fn coalesced(layout: &Layout, knowledge: Knowledge) -> Modes {
    let mut reversed = Modes::EMPTY;
    let mut i = layout.num_leaves();
    while i > 0 {
        i -= 1;
        let shape = layout.leaf_shape(i);
        let stride = layout.leaf_stride(i);
        if is_one(shape, knowledge) {
            continue;
        }
        if reversed.len > 0 {
            let next = reversed.len - 1;
            let may_merge =
                matches!(knowledge, Knowledge::Values) || reversed.shape[next].is_static();
            if may_merge && continues(shape, stride, reversed.stride[next], knowledge) {
                reversed.shape[next] = match shape.checked_mul(reversed.shape[next]) {
                    Some(product) => product,
                    None => unreachable!(),
                };
                reversed.stride[next] = stride;
                continue;
            }
        }
        reversed.push(shape, stride);
    }
    let mut modes = Modes::EMPTY;
    let mut i = reversed.len;
    while i > 0 {
        i -= 1;
        modes.push(reversed.shape[i], reversed.stride[i]);
    }
    modes
}

/// The simplest layout that computes the same function of 1-D coordinates.
///
/// The result has the same size and is at most one level deep. Modes of extent `_1` are dropped,
/// and modes that continue each other are merged, as far as static integers show that they can
/// be: dynamic ones are kept, so that a layout's form depends on static integers only.
///
/// ```
/// use cutlet_layout_core::{coalesce, layout};
///
/// assert_eq!(coalesce(&layout!((2, (1, 6)):(1, (6, 2)))).to_string(), "_12:_1");
/// ```
pub const fn coalesce(layout: &Layout) -> Layout {
    or_panic(coalesced(layout, Knowledge::Static).to_layout())
}

/// [`coalesce`] applied to the modes of a layout at the leaves of a profile; only the profile's
/// parentheses matter. Modes past the profile are kept as they are.
///
/// ```
/// use cutlet_layout_core::{coalesce_by_mode, layout, shape};
///
/// let a = layout!((2, (1, 6)):(1, (6, 2)));
/// assert_eq!(coalesce_by_mode(&a, &shape!((1, 1))).to_string(), "(_2,_6):(_1,_2)");
/// ```
///
/// # Panics
/// As [`try_coalesce_by_mode`] refuses.
#[track_caller]
pub const fn coalesce_by_mode(layout: &Layout, profile: &IntTuple) -> Layout {
    or_panic(try_coalesce_by_mode(layout, profile))
}

/// [`coalesce_by_mode`], or the reason why not.
///
/// # Errors
/// If the profile has more modes than the layout, at any level.
pub const fn try_coalesce_by_mode(
    layout: &Layout,
    profile: &IntTuple,
) -> Result<Layout, LayoutError> {
    by_mode(layout, profile, false)
}

const fn by_mode(
    layout: &Layout,
    profile: &IntTuple,
    filtered: bool,
) -> Result<Layout, LayoutError> {
    if !profile.is_tuple() {
        let layout = if filtered {
            filter_zeros(layout)
        } else {
            *layout
        };
        return coalesced(&layout, Knowledge::Static).to_layout();
    }
    let rank = profile.rank();
    if rank > layout.rank() {
        return Err(crate::int_tuple::mismatch(
            "coalesce",
            &layout.shape(),
            " by ",
            profile,
            "the profile has more modes than the layout",
        ));
    }
    let mut builder = LayoutBuilder::new();
    builder.open();
    let mut i = 0;
    while i < layout.rank() {
        if i < rank {
            let mode = tri!(by_mode(&layout.mode(i), &profile.mode(i), filtered));
            builder.append(&mode);
        } else {
            builder.append(&layout.mode(i));
        }
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// The layout with every mode of stride `_0` shrunk to extent `_1`: what repeats is dropped, the
/// parentheses stay.
///
/// ```
/// use cutlet_layout_core::{filter_zeros, layout};
///
/// assert_eq!(filter_zeros(&layout!((4, 8):(0, 1))).to_string(), "(_1,_8):(_0,_1)");
/// ```
pub const fn filter_zeros(layout: &Layout) -> Layout {
    let mut builder = LayoutBuilder::new();
    let mut i = 0;
    while i < layout.num_leaves() {
        builder.opens(layout.profile().opens(i));
        let stride = layout.leaf_stride(i);
        let repeats = stride.is_static() && stride.value() == 0;
        builder.leaf(
            if repeats {
                Int::ONE
            } else {
                layout.leaf_shape(i)
            },
            stride,
        );
        builder.closes(layout.profile().closes(i));
        i += 1;
    }
    or_panic(builder.finish())
}

/// The layout without modes of stride `_0` and extent `_1`, coalesced; `_1:_0` when nothing is
/// left.
///
/// ```
/// use cutlet_layout_core::{filter, layout};
///
/// assert_eq!(filter(&layout!((2, (3, 4)):(1, (0, 2)))).to_string(), "_8:_1");
/// ```
pub const fn filter(layout: &Layout) -> Layout {
    coalesce(&filter_zeros(layout))
}

/// [`filter`] applied to the modes of a layout at the leaves of a profile.
///
/// # Panics
/// As [`try_filter_by_mode`] refuses.
#[track_caller]
pub const fn filter_by_mode(layout: &Layout, profile: &IntTuple) -> Layout {
    or_panic(try_filter_by_mode(layout, profile))
}

/// [`filter_by_mode`], or the reason why not.
///
/// # Errors
/// If the profile has more modes than the layout, at any level.
pub const fn try_filter_by_mode(
    layout: &Layout,
    profile: &IntTuple,
) -> Result<Layout, LayoutError> {
    by_mode(layout, profile, true)
}
