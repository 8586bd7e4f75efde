//! The complement of a layout: the layout of the repetitions that fill its gaps.

use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::flat_modes::{Knowledge, Modes};
use crate::text::Text;
use crate::{CAPACITY, Int, IntTuple, Layout};

twin! {
    /// The layout `R` of the indices at which copies of `layout` begin, so that together they fill
    /// the indices up to `cotarget`. `R` is ordered: its strides are positive and increasing. The
    /// only index that it shares with `layout` is 0.
    ///
    /// The last extent is rounded up: `cosize((layout, R))` is at least the size of `cotarget`. If
    /// nothing fits a gap of the layout exactly, the gap stays open.
    ///
    /// Only the size of `cotarget` decides the result's values. A tuple of static and dynamic
    /// integers such as `(_4,7)` keeps more of the result static than `28` does.
    ///
    /// ```
    /// use cutlet_layout_core::{complement, layout, shape};
    ///
    /// assert_eq!(complement(&layout!(4:2), &shape!(24)).to_string(), "(_2,_3):(_1,_8)");
    /// assert_eq!(complement(&layout!((2, 2):(1, 6)), &shape!(24)).to_string(), "(_3,_2):(_2,_12)");
    /// assert_eq!(complement(&layout!(2:2), &shape!(9)).to_string(), "(_2,_3):(_1,_4)");
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
    let mut modes = Modes::EMPTY;
    tri!(complement_modes(layout, &extents, &mut modes));
    modes.to_layout()
}

/// Writes the modes of the complement, at least one, to the empty list `out`.
pub(crate) const fn complement_modes(
    layout: &Layout,
    cotarget: &Extents,
    out: &mut Modes,
) -> Result<(), LayoutError> {
    let mut by_values = simplified(layout, Knowledge::Values);
    let moving = by_values.len;
    tri!(fill(layout, cotarget, &mut by_values, out));
    if layout.is_static() {
        return Ok(());
    }
    // CuTe looks at static integers only; its form is taken if it is the same function. Values
    // simplify all that static integers do, so equally many modes are the same modes.
    let mut by_statics = simplified(layout, Knowledge::Static);
    if by_statics.len == moving {
        return Ok(());
    }
    let mut as_cute = Modes::EMPTY;
    if fill(layout, cotarget, &mut by_statics, &mut as_cute).is_ok()
        && as_cute.computes_the_same(out, 0)
    {
        *out = as_cute;
    }
    Ok(())
}

/// The complement's modes, as few as all values allow. Dynamic integers do not keep any.
pub(crate) const fn fewest_complement_modes(
    layout: &Layout,
    cotarget: &Extents,
    out: &mut Modes,
) -> Result<(), LayoutError> {
    let mut by_values = simplified(layout, Knowledge::Values);
    fill(layout, cotarget, &mut by_values, out)
}

/// The modes of nonzero stride, as few as `knowledge` allows.
const fn simplified(layout: &Layout, knowledge: Knowledge) -> Modes {
    let mut modes = layout.modes();
    modes.drop_repetitions(knowledge);
    modes.coalesce(knowledge);
    modes
}

/// Writes the modes that fill the gaps of a layout's simplified modes. Empties `modes`.
const fn fill(
    layout: &Layout,
    cotarget: &Extents,
    modes: &mut Modes,
    out: &mut Modes,
) -> Result<(), LayoutError> {
    let mut step = Int::ONE;
    // The cosize of the modes so far together with what fills their gaps. It is less than `step` if
    // the last mode's stride leaves a gap that nothing fits.
    let mut cosize: i64 = 1;
    while modes.len > 0 {
        let smallest = smallest_stride(modes);
        let (shape, stride) = (modes.shape[smallest], modes.stride[smallest]);
        modes.remove(smallest);
        if !stride.basis().is_none() {
            let why = "strides in basis directions have no order: give plain ones";
            return Err(refused(layout, cotarget, ErrorKind::Invalid, why));
        }
        if stride.value() < 0 {
            let why = "a negative stride has no complement: give strides of at least 0";
            return Err(refused(layout, cotarget, ErrorKind::Invalid, why));
        }
        if stride.value() < step.value() {
            return Err(overlap(layout, shape, stride, step));
        }
        let (Some(gap), Some(end)) = (stride.checked_div(step), stride.checked_mul(shape)) else {
            return Err(overflow(layout, cotarget));
        };
        cosize += (gap.value() - 1) * step.value() + (shape.value() - 1) * stride.value();
        out.push(gap, step);
        step = end;
    }
    tri!(push_rest(out, layout, cotarget, step, cosize));
    out.coalesce(Knowledge::Static);
    if out.len == 0 {
        out.push(Int::ONE, Int::ZERO);
    }
    Ok(())
}

/// The extents of a cotarget. Neighbours are multiplied together if both are static or both are
/// dynamic.
pub(crate) struct Extents {
    extents: [Int; CAPACITY],
    len: usize,
}

impl Extents {
    /// One extent.
    pub(crate) const fn of(extent: Int) -> Extents {
        let mut extents = [Int::ZERO; CAPACITY];
        extents[0] = extent;
        Extents { extents, len: 1 }
    }

    /// The extents of a coalesced layout.
    pub(crate) const fn of_layout(layout: &Layout) -> Extents {
        let size = layout.size_int();
        let mut alike = true;
        let mut i = 0;
        while i < layout.num_leaves() {
            alike = alike && layout.leaf_shape(i).is_static() == size.is_static();
            i += 1;
        }
        // There is one extent, however the layout is coalesced.
        if alike {
            return Extents::of(size);
        }
        let modes = Modes::coalesced(layout, Knowledge::Static);
        let mut extents = Extents::of(modes.shape[0]);
        i = 1;
        while i < modes.len {
            extents.push(modes.shape[i]);
            i += 1;
        }
        extents
    }

    const fn push(&mut self, extent: Int) {
        let last = self.extents[self.len - 1];
        if last.is_static() == extent.is_static() {
            self.extents[self.len - 1] = product(last, extent);
        } else {
            self.extents[self.len] = extent;
            self.len += 1;
        }
    }

    const fn total(&self) -> Int {
        let mut total = self.extents[0];
        let mut i = 1;
        while i < self.len {
            total = product(total, self.extents[i]);
            i += 1;
        }
        total
    }
}

/// The product of extents whose size is known to fit 64 bits.
const fn product(a: Int, b: Int) -> Int {
    match a.checked_mul(b) {
        Some(product) => product,
        None => unreachable!(),
    }
}

/// The extents of a cotarget.
const fn extents_of(layout: &Layout, cotarget: &IntTuple) -> Result<Extents, LayoutError> {
    let mut extents = Extents::of(Int::ZERO);
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
        if i == 0 {
            extents = Extents::of(extent);
        } else {
            extents.push(extent);
        }
        i += 1;
    }
    if i == 0 {
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
    text.str(
        ": the cotarget is no shape: extents must be at least 1, and the size must fit 64 bits",
    );
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

/// Adds the modes that repeat everything so far until the cotarget is reached. A repetition is
/// `step` long, and its cosize is `cosize`.
const fn push_rest(
    result: &mut Modes,
    layout: &Layout,
    cotarget: &Extents,
    step: Int,
    cosize: i64,
) -> Result<(), LayoutError> {
    let is_full = cosize == step.value();
    if cotarget.len > 1
        && is_full
        && let Some(divided) = divided_exactly(cotarget, step)
    {
        let mut stride = step;
        let mut i = 0;
        while i < divided.len {
            let extent = divided.extents[i];
            tri!(push_extent(result, layout, cotarget, extent, stride));
            stride = match stride.checked_mul(extent) {
                Some(next) => next,
                // The end of the last mode is not a stride of the result.
                None if i + 1 == divided.len => stride,
                None => return Err(overflow(layout, cotarget)),
            };
            i += 1;
        }
        return Ok(());
    }
    let total = cotarget.total();
    let Some(extent) = total.checked_ceil_div(step) else {
        return Err(overflow(layout, cotarget));
    };
    let last = (extent.value() - 1) * step.value();
    let extent = if is_full || total.value() - last <= cosize {
        extent
    } else {
        // The last repetition ends in a gap. One more reaches the cotarget.
        match extent.checked_add(Int::ONE) {
            Some(extent) => extent,
            None => return Err(overflow(layout, cotarget)),
        }
    };
    push_extent(result, layout, cotarget, extent, step)
}

const fn push_extent(
    result: &mut Modes,
    layout: &Layout,
    cotarget: &Extents,
    extent: Int,
    stride: Int,
) -> Result<(), LayoutError> {
    if result.len == CAPACITY {
        let why = "the result needs more leaves than a layout holds (CAPACITY): coalesce the layout first";
        return Err(refused(layout, cotarget, ErrorKind::Capacity, why));
    }
    if !extent.is_constant(1) {
        result.push(extent, stride);
    }
    Ok(())
}

/// The extents divided by `step` from the left, if each division comes out even.
const fn divided_exactly(extents: &Extents, step: Int) -> Option<Extents> {
    let mut divided = Extents::of(Int::ONE);
    let mut rest = step;
    let mut i = 0;
    while i < extents.len {
        let extent = extents.extents[i];
        let even = extent.value() % rest.value() == 0 || rest.value() % extent.value() == 0;
        let (true, Some(quotient), Some(next)) = (
            even,
            extent.checked_ceil_div(rest),
            rest.checked_ceil_div(extent),
        ) else {
            return None;
        };
        if i == 0 {
            divided = Extents::of(quotient);
        } else {
            divided.push(quotient);
        }
        rest = next;
        i += 1;
    }
    if rest.value() == 1 {
        Some(divided)
    } else {
        None
    }
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
    text.str(" indices, which its other modes already span: give it a stride of at least ")
        .int(step);
    LayoutError::new(ErrorKind::Overlap, &text)
}

const fn overflow(layout: &Layout, cotarget: &Extents) -> LayoutError {
    refused(
        layout,
        cotarget,
        ErrorKind::Overflow,
        "a stride of the result does not fit 64 bits",
    )
}

const fn refused(layout: &Layout, cotarget: &Extents, kind: ErrorKind, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str("complement: ")
        .layout(layout)
        .str(" in ")
        .number(cotarget.total().value())
        .str(": ")
        .str(why);
    LayoutError::new(kind, &text)
}
