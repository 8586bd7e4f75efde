//! The complement of a layout: the layout of its repetitions that fills what it leaves out.

use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::flat_modes::{Knowledge, Modes};
use crate::text::Text;
use crate::{Int, IntTuple, Layout};

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
    let extents = tri!(extents_of(layout, cotarget));
    let (mut modes, cosize) = tri!(covering_modes(layout, &extents));
    let target = cotarget.size();
    let multiples = target / cosize + if target % cosize == 0 { 0 } else { 1 };
    let last = modes.len - 1;
    let beyond = match cosize.checked_mul(multiples) {
        Some(bound) => end_of(&modes) > bound,
        None => false,
    };
    if beyond && modes.shape[last].value() > 1 {
        modes.shape[last] = match modes.shape[last].checked_sub(Int::ONE) {
            Some(shorter) => shorter,
            None => unreachable!(),
        };
    }
    modes.to_coalesced()
}

/// The complement that repeats the layout until all of the cotarget is reached.
pub(crate) const fn covering_complement(
    layout: &Layout,
    cotarget: &IntTuple,
) -> Result<Layout, LayoutError> {
    tri!(covering_modes(layout, &tri!(extents_of(layout, cotarget))))
        .0
        .to_layout()
}

/// The modes of the covering complement, at least one, and the cosize of the layout. Of the
/// cotarget's modes only the extents count.
pub(crate) const fn covering_modes(
    layout: &Layout,
    cotarget: &Modes,
) -> Result<(Modes, i64), LayoutError> {
    let by_values = tri!(fill(layout, cotarget, Knowledge::Values));
    if !layout.is_static() {
        // What CuTe, which looks at static integers only, makes of it, if that is right.
        match fill(layout, cotarget, Knowledge::Static) {
            Ok(by_statics) if by_statics.0.computes_the_same(&by_values.0) => {
                return Ok(by_statics);
            }
            _ => {}
        }
    }
    Ok(by_values)
}

const fn fill(
    layout: &Layout,
    cotarget: &Modes,
    knowledge: Knowledge,
) -> Result<(Modes, i64), LayoutError> {
    let mut modes = Modes::of(layout);
    modes.drop_repetitions(knowledge);
    modes.coalesce(knowledge);
    let mut result = Modes::EMPTY;
    let mut step = Int::ONE;
    let mut cosize = 1;
    while modes.len > 0 {
        let smallest = smallest_stride(&modes);
        let (shape, stride) = (modes.shape[smallest], modes.stride[smallest]);
        modes.remove(smallest);
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
        cosize += (shape.value() - 1) * stride.value();
    }
    tri!(push_rest(&mut result, layout, cotarget, step));
    result.coalesce(Knowledge::Static);
    if result.len == 0 {
        result.push(Int::ONE, Int::ZERO);
    }
    Ok((result, cosize))
}

/// The cotarget's extents, as modes without strides.
const fn extents_of(layout: &Layout, cotarget: &IntTuple) -> Result<Modes, LayoutError> {
    let mut extents = Modes::EMPTY;
    let mut size: i64 = 1;
    let mut i = 0;
    while i < cotarget.num_leaves() {
        let extent = if cotarget.is_underscore(i) {
            Int::ZERO
        } else {
            cotarget.leaf(i)
        };
        size = match size.checked_mul(extent.value()) {
            Some(size) if extent.value() > 0 && extent.basis().is_none() => size,
            _ => return Err(no_cotarget(layout, cotarget)),
        };
        extents.push(extent, Int::ZERO);
        i += 1;
    }
    if extents.len == 0 {
        Err(no_cotarget(layout, cotarget))
    } else {
        Ok(extents)
    }
}

const fn no_cotarget(layout: &Layout, cotarget: &IntTuple) -> LayoutError {
    let mut text = Text::new();
    text.str("complement: ")
        .layout(layout)
        .str(" in ")
        .tuple(cotarget);
    text.str(": the cotarget is a shape of extents of at least 1, whose size fits 64 bits");
    LayoutError::new(ErrorKind::Invalid, &text)
}

const fn smallest_stride(modes: &Modes) -> usize {
    let mut smallest = 0;
    let mut i = 1;
    while i < modes.len {
        if modes.stride[i].value() < modes.stride[smallest].value() {
            smallest = i;
        }
        i += 1;
    }
    smallest
}

/// The last index that modes lead to, plus one; at most what fits.
const fn end_of(modes: &Modes) -> i64 {
    let mut end: i64 = 1;
    let mut i = 0;
    while i < modes.len {
        let span = (modes.shape[i].value() - 1).saturating_mul(modes.stride[i].value());
        end = end.saturating_add(span);
        i += 1;
    }
    end
}

/// Repeats what there is up to the cotarget: `ceil_div(cotarget, step)` times.
const fn push_rest(
    result: &mut Modes,
    layout: &Layout,
    cotarget: &Modes,
    step: Int,
) -> Result<(), LayoutError> {
    let mut extents = *cotarget;
    merge_extents(&mut extents, true);
    let divided = extents.len > 1 && divides_exactly(&mut extents, step);
    if !divided {
        merge_extents(&mut extents, false);
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

/// Multiplies neighbouring extents together: static ones with static ones only, or all.
const fn merge_extents(extents: &mut Modes, alike_only: bool) {
    let mut merged = 0;
    let mut i = 1;
    while i < extents.len {
        let (last, extent) = (extents.shape[merged], extents.shape[i]);
        if alike_only && last.is_static() != extent.is_static() {
            merged += 1;
            extents.shape[merged] = extent;
        } else {
            extents.shape[merged] = match last.checked_mul(extent) {
                Some(product) => product,
                None => unreachable!(),
            };
        }
        i += 1;
    }
    extents.len = merged + 1;
}

/// Divides the extents by `step` from the left, if each division comes out even.
const fn divides_exactly(extents: &mut Modes, step: Int) -> bool {
    let mut divided = *extents;
    let mut rest = step;
    let mut i = 0;
    while i < divided.len {
        let extent = divided.shape[i];
        let even = extent.value() % rest.value() == 0 || rest.value() % extent.value() == 0;
        let (true, Some(quotient), Some(next)) = (
            even,
            extent.checked_ceil_div(rest),
            rest.checked_ceil_div(extent),
        ) else {
            return false;
        };
        divided.shape[i] = quotient;
        rest = next;
        i += 1;
    }
    if rest.value() != 1 {
        return false;
    }
    *extents = divided;
    merge_extents(extents, true);
    true
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

const fn overflow(layout: &Layout, cotarget: &Modes) -> LayoutError {
    refused(
        layout,
        cotarget,
        ErrorKind::Overflow,
        "a stride of the result does not fit 64 bits",
    )
}

const fn refused(layout: &Layout, cotarget: &Modes, kind: ErrorKind, why: &str) -> LayoutError {
    let mut size: i64 = 1;
    let mut i = 0;
    while i < cotarget.len {
        size = size.saturating_mul(cotarget.shape[i].value());
        i += 1;
    }
    let mut text = Text::new();
    text.str("complement: ")
        .layout(layout)
        .str(" in ")
        .number(size)
        .str(": ")
        .str(why);
    LayoutError::new(kind, &text)
}
