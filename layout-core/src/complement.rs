//! The complement of a layout: the layout of its repetitions that fills what it leaves out.

use crate::coalesce::{Knowledge, Modes, coalesced};
use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::text::Text;
use crate::{Int, IntTuple, Layout, filter};

twin! {
    /// The layout `R` that completes `layout` towards `cotarget`: it is ordered (its strides are
    /// positive and increasing) and steps over everything that `layout` maps to.
    ///
    /// Between the layout's modes extents are rounded down, and at its end up to the cotarget, or
    /// down where it would reach beyond the next multiple of the layout's cosize: divisions, which
    /// must keep every element, round up there too.
    ///
    /// Only the size of `cotarget` matters for the result's values; a tuple of static and dynamic
    /// integers such as `(_4,7)` lets more of the result stay static than `28` does.
    ///
    /// ```
    /// use cutlet_layout_core::{complement, layout, shape};
    ///
    /// assert_eq!(complement(&layout!(4:2), &shape!(24)).to_string(), "(_2,_3):(_1,_8)");
    /// assert_eq!(complement(&layout!((2, 2):(1, 6)), &shape!(24)).to_string(), "(_3,_2):(_2,_12)");
    /// ```
    complement = try_complement(layout: &Layout, cotarget: &IntTuple) -> Layout;
}

/// [`complement`], or the reason why there is none.
///
/// # Errors
/// If two modes of the layout overlap or interleave, a stride is negative or in a basis
/// direction, or a stride of the result does not fit 64 bits.
pub const fn try_complement(layout: &Layout, cotarget: &IntTuple) -> Result<Layout, LayoutError> {
    let covering = tri!(covering_complement(layout, cotarget));
    let cosize = filter(layout).cosize();
    let target = cotarget.size();
    let multiples = if target % cosize == 0 {
        target / cosize
    } else {
        target / cosize + 1
    };
    let beyond = match cosize.checked_mul(multiples) {
        Some(bound) => covering.cosize() > bound,
        None => false,
    };
    let last = covering.num_leaves() - 1;
    if !beyond || covering.leaf_shape(last).value() == 1 {
        return Ok(covering);
    }
    let shorter = covering.leaf_shape(last).checked_sub(Int::ONE);
    let Some(shorter) = shorter else {
        unreachable!()
    };
    let mut modes = Modes::EMPTY;
    let mut i = 0;
    while i <= last {
        let shape = if i == last {
            shorter
        } else {
            covering.leaf_shape(i)
        };
        modes.push(shape, covering.leaf_stride(i));
        i += 1;
    }
    coalesced(&tri!(modes.to_layout()), Knowledge::Static).to_layout()
}

/// The complement that repeats the layout until all of the cotarget is reached.
pub(crate) const fn covering_complement(
    layout: &Layout,
    cotarget: &IntTuple,
) -> Result<Layout, LayoutError> {
    if cotarget.has_underscore() || cotarget.num_leaves() == 0 {
        return Err(refused(
            layout,
            cotarget,
            ErrorKind::Mismatch,
            "the cotarget is a shape",
        ));
    }
    let target = tri!(sized_layout(layout, cotarget));
    let mut modes = coalesced(&filter(layout), Knowledge::Static);
    drop_trivial(&mut modes);
    let mut result = Modes::EMPTY;
    let mut step = Int::ONE;
    while modes.len > 0 {
        let (shape, stride) = take_smallest_stride(&mut modes);
        if !stride.basis().is_none() {
            let why = "strides in basis directions have no order";
            return Err(refused(layout, cotarget, ErrorKind::Invalid, why));
        }
        if stride.value() < 0 {
            let why = "a negative stride has no complement above 0";
            return Err(refused(layout, cotarget, ErrorKind::Invalid, why));
        }
        if stride.value() < step.value() {
            return Err(overlap(layout, shape, stride, step));
        }
        let (Some(gap), Some(end)) = (stride.checked_div(step), stride.checked_mul(shape)) else {
            return Err(overflow(layout, cotarget));
        };
        result.push(gap, step);
        step = end;
    }
    tri!(push_rest(&mut result, layout, cotarget, &target, step));
    coalesced(&tri!(result.to_layout()), Knowledge::Static).to_layout()
}

/// The cotarget as a layout, for its extents alone.
const fn sized_layout(layout: &Layout, cotarget: &IntTuple) -> Result<Layout, LayoutError> {
    match Layout::try_col_major(cotarget) {
        Ok(sized) => Ok(sized),
        Err(_) => {
            let why = "the cotarget's integers are at least 1 and its size fits 64 bits";
            Err(refused(layout, cotarget, ErrorKind::Invalid, why))
        }
    }
}

/// Drops dynamic modes that turn out to have extent 1 or stride 0: they fill nothing.
const fn drop_trivial(modes: &mut Modes) {
    let mut kept = Modes::EMPTY;
    let mut i = 0;
    while i < modes.len {
        if modes.shape[i].value() > 1 && modes.stride[i].value() != 0 {
            kept.push(modes.shape[i], modes.stride[i]);
        }
        i += 1;
    }
    *modes = kept;
}

const fn take_smallest_stride(modes: &mut Modes) -> (Int, Int) {
    let mut smallest = 0;
    let mut i = 1;
    while i < modes.len {
        if modes.stride[i].value() < modes.stride[smallest].value() {
            smallest = i;
        }
        i += 1;
    }
    let mode = (modes.shape[smallest], modes.stride[smallest]);
    modes.len -= 1;
    i = smallest;
    while i < modes.len {
        modes.shape[i] = modes.shape[i + 1];
        modes.stride[i] = modes.stride[i + 1];
        i += 1;
    }
    mode
}

/// Repeats what there is up to the cotarget: `ceil_div(cotarget, step)` times.
const fn push_rest(
    result: &mut Modes,
    layout: &Layout,
    cotarget: &IntTuple,
    target: &Layout,
    step: Int,
) -> Result<(), LayoutError> {
    let mut extents = merge_alike(target);
    if extents.len > 1 && !divide_exactly(&mut extents, step) {
        extents = Modes::EMPTY;
        extents.push(target.size_int(), Int::ZERO);
    }
    if extents.len == 1 {
        extents.shape[0] = match extents.shape[0].checked_ceil_div(step) {
            Some(extent) => extent,
            None => return Err(overflow(layout, cotarget)),
        };
    }
    let mut stride = step;
    let mut i = 0;
    while i < extents.len {
        if result.len == crate::CAPACITY {
            let why = "the result needs more leaves than a layout holds";
            return Err(refused(layout, cotarget, ErrorKind::Capacity, why));
        }
        let extent = extents.shape[i];
        if !extent.is_constant(1) {
            result.push(extent, stride);
            stride = match stride.checked_mul(extent) {
                Some(next) => next,
                // The last mode's end is not a stride of the result.
                None if i + 1 == extents.len => stride,
                None => return Err(overflow(layout, cotarget)),
            };
        }
        i += 1;
    }
    Ok(())
}

/// The extents with static neighbours multiplied together, and dynamic ones likewise.
const fn merge_alike(target: &Layout) -> Modes {
    let mut extents = Modes::EMPTY;
    let mut i = 0;
    while i < target.num_leaves() {
        let extent = target.leaf_shape(i);
        if extents.len > 0 && extents.shape[extents.len - 1].is_static() == extent.is_static() {
            let last = extents.len - 1;
            extents.shape[last] = match extents.shape[last].checked_mul(extent) {
                Some(product) => product,
                None => unreachable!(),
            };
        } else {
            extents.push(extent, Int::ZERO);
        }
        i += 1;
    }
    extents
}

/// Divides the extents by `step` from the left, if each division comes out even.
const fn divide_exactly(extents: &mut Modes, step: Int) -> bool {
    let mut rest = step;
    let mut i = 0;
    while i < extents.len {
        let extent = extents.shape[i];
        let even = extent.value() % rest.value() == 0 || rest.value() % extent.value() == 0;
        let (true, Some(quotient), Some(next)) = (
            even,
            extent.checked_ceil_div(rest),
            rest.checked_ceil_div(extent),
        ) else {
            return false;
        };
        extents.shape[i] = quotient;
        rest = next;
        i += 1;
    }
    rest.value() == 1
}

const fn overlap(layout: &Layout, shape: Int, stride: Int, step: Int) -> LayoutError {
    let mut text = Text::new();
    text.str("complement: ")
        .layout(layout)
        .str(" overlaps itself: its mode ")
        .int(shape);
    text.str(":")
        .int(stride)
        .str(" begins inside the first ")
        .int(step);
    text.str(" indices, which its other modes already span");
    LayoutError::new(ErrorKind::Overlap, &text)
}

const fn overflow(layout: &Layout, cotarget: &IntTuple) -> LayoutError {
    refused(
        layout,
        cotarget,
        ErrorKind::Overflow,
        "a stride of the result does not fit 64 bits",
    )
}

const fn refused(layout: &Layout, cotarget: &IntTuple, kind: ErrorKind, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str("complement: ")
        .layout(layout)
        .str(" in ")
        .tuple(cotarget)
        .str(": ")
        .str(why);
    LayoutError::new(kind, &text)
}
