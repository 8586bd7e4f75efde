//! Simplifying a layout without changing it as a function of 1-D coordinates.

use crate::error::{LayoutError, or_panic, tri};
use crate::flat_modes::Knowledge;
use crate::layout::LayoutBuilder;
use crate::{Int, IntTuple, Layout};

/// The simplest layout that computes the same function of 1-D coordinates.
///
/// The result has the same size and at most one level of parentheses. Modes of extent `_1` are
/// dropped, and modes that continue each other are merged. Only static integers decide about both,
/// so the form of the result does not depend on dynamic values.
///
/// ```
/// use cutlet_layout_core::{coalesce, layout};
///
/// assert_eq!(coalesce(&layout!((2, (1, 6)):(1, (6, 2)))).to_string(), "_12:_1");
/// ```
pub const fn coalesce(layout: &Layout) -> Layout {
    or_panic(layout.modes().to_coalesced())
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
/// If [`try_coalesce_by_mode`] returns an error.
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
        return layout.modes().to_coalesced();
    }
    let rank = profile.rank();
    if rank > layout.rank() {
        return Err(crate::int_tuple::mismatch(
            "coalesce",
            &layout.shape(),
            " by ",
            profile,
            "the profile has more modes than the layout: give one of at most as many",
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

/// The layout with every mode of stride `_0` shrunk to extent `_1`: repetitions are dropped,
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
    let mut modes = layout.modes();
    modes.drop_repetitions(Knowledge::Static);
    or_panic(modes.to_coalesced())
}

/// [`filter`] applied to the modes of a layout at the leaves of a profile.
///
/// # Panics
/// If [`try_filter_by_mode`] returns an error.
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
