//! Composition, division and product of a layout by one layout. By a tiler, each of them runs mode by mode
//! ([`by_tiler`](crate::by_tiler)).

use crate::complement::{Extents, complement_modes, fewest_complement_modes, try_complement};
use crate::error::{ErrorKind, LayoutError, tri};
use crate::flat_modes::Modes;
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::{Int, IntTuple, Layout, try_composition};

/// One of the three operations.
#[derive(Clone, Copy)]
pub(crate) enum ByLayout {
    Compose,
    Divide,
    Multiply,
}

impl ByLayout {
    /// Whether a mode whose tiler is `_` is a first half as a whole. In a division it is: such a
    /// mode is its own tile, so that mode 0 of a `zipped_divide` is the composition with the tiler.
    /// In a product it is a second half, as in pycute.
    pub(crate) const fn keeps_first(self) -> bool {
        match self {
            ByLayout::Compose | ByLayout::Divide => true,
            ByLayout::Multiply => false,
        }
    }

    pub(crate) const fn apply(
        self,
        layout: &Layout,
        tiler: &Layout,
    ) -> Result<Layout, LayoutError> {
        match self {
            ByLayout::Compose => try_composition(layout, tiler),
            ByLayout::Divide => divide_by_layout(layout, tiler),
            ByLayout::Multiply => multiply_by_layout(layout, tiler),
        }
    }
}

/// `A ∘ (B, B*)`: a tile, and the layout of its repetitions.
const fn divide_by_layout(layout: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let extents = Extents::of_layout(layout);
    let mut rest = Modes::EMPTY;
    tri!(complement_modes(tiler, &extents, &mut rest));
    let divided = divide_with(layout, tiler, &rest);
    if tiler.is_static() || divided.is_ok() {
        return divided;
    }
    // A tiler with a dynamic extent of 1 has a complement of more modes than its values need. These
    // may not compose, although fewer do.
    let mut fewest = Modes::EMPTY;
    tri!(fewest_complement_modes(tiler, &extents, &mut fewest));
    match divide_with(layout, tiler, &fewest) {
        Ok(divided) => Ok(divided),
        Err(_) => divided,
    }
}

/// `A ∘ (B, rest)`.
const fn divide_with(layout: &Layout, tiler: &Layout, rest: &Modes) -> Result<Layout, LayoutError> {
    let mut both = LayoutBuilder::new();
    both.open();
    both.append(tiler);
    both.append_list(rest);
    both.close();
    tri!(both.check());
    try_composition(layout, both.written())
}

/// `(A, A* ∘ B)`: a block, and the layout of its repetitions.
pub(crate) const fn multiply_by_layout(
    block: &Layout,
    tiler: &Layout,
) -> Result<Layout, LayoutError> {
    let target = tri!(product_target(block, tiler));
    let complement = tri!(try_complement(block, &IntTuple::int(target)));
    Layout::try_concat2(block, &tri!(repetitions(block, &complement, tiler)))
}

/// The cotarget of `A*` in a product: the size of A times the cosize of B.
pub(crate) const fn product_target(block: &Layout, tiler: &Layout) -> Result<Int, LayoutError> {
    let mut why = "";
    let mut i = 0;
    while why.is_empty() && i < tiler.num_leaves() {
        let stride = tiler.leaf_stride(i);
        if stride.value() != 0 && !stride.basis().is_none() {
            why = "the tiler has strides in basis directions: give plain ones";
        } else if stride.value() < 0 && tiler.leaf_shape(i).value() > 1 {
            why = "the tiler maps below 0: give strides of at least 0";
        }
        i += 1;
    }
    if !why.is_empty() {
        let mut text = Text::new();
        text.str("product: ")
            .layout(block)
            .str(" by ")
            .layout(tiler);
        text.str(": ").str(why);
        return Err(LayoutError::new(ErrorKind::Mismatch, &text));
    }
    if let Some(target) = block.size_int().checked_mul(tiler.cosize_int()) {
        return Ok(target);
    }
    let mut text = Text::new();
    text.str("product: the size of ")
        .layout(block)
        .str(" times the cosize of ")
        .layout(tiler);
    text.str(" does not fit 64 bits");
    Err(LayoutError::new(ErrorKind::Overflow, &text))
}

/// `A* ∘ B`, where `complement` is A*. Beyond its size, A* continues by its last stride. That stride steps
/// over all of A, unless A's outermost mode left no gap.
pub(crate) const fn repetitions(
    block: &Layout,
    complement: &Layout,
    tiler: &Layout,
) -> Result<Layout, LayoutError> {
    // A dynamic extent of 1 has no repetitions, like a static one, which the complement does not have.
    let mut last = 0;
    let mut i = 0;
    while i < complement.num_leaves() {
        if complement.leaf_shape(i).value() > 1 {
            last = complement.leaf_stride(i).value();
        }
        i += 1;
    }
    if tiler.cosize() > complement.size() && last < block.cosize() {
        let mut text = Text::new();
        text.str("product: ")
            .layout(block)
            .str(" by ")
            .layout(tiler)
            .str(": the tiler's cosize asks for ")
            .number(tiler.cosize());
        text.str(" repetitions, but only ")
            .number(complement.size())
            .str(" fit without overlap: give a tiler of a smaller cosize");
        return Err(LayoutError::new(ErrorKind::Overlap, &text));
    }
    try_composition(complement, tiler)
}
