//! What divisions and products by tilers have in common: mode by mode, and gathering the parts.

use crate::composition::try_composition;
use crate::divide::divide_by_layout;
use crate::error::{ErrorKind, LayoutError, tri};
use crate::layout::LayoutBuilder;
use crate::product::multiply_by_layout;
use crate::text::Text;
use crate::{Layout, Tiler};

/// What is done to a mode and its tiler.
#[derive(Clone, Copy)]
pub(crate) enum Splitter {
    Compose,
    Divide,
    Multiply,
}

impl Splitter {
    const fn apply(self, layout: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
        match self {
            Splitter::Compose => try_composition(layout, tiler),
            Splitter::Divide => divide_by_layout(layout, tiler),
            Splitter::Multiply => multiply_by_layout(layout, tiler),
        }
    }
}

/// Applies the splitter at the tiler's layouts, and keeps everything where it is.
pub(crate) const fn by_mode(
    splitter: Splitter,
    layout: &Layout,
    tiler: &Tiler,
) -> Result<Layout, LayoutError> {
    if let Some(tile) = tiler.as_layout() {
        return splitter.apply(layout, tile);
    }
    if !tiler.is_tuple() {
        return Ok(*layout);
    }
    tri!(check_rank(layout, tiler));
    let mut builder = LayoutBuilder::new();
    builder.open();
    let mut i = 0;
    while i < layout.rank() {
        if i < tiler.rank() {
            let mode = tri!(by_mode(splitter, &layout.mode(i), &tiler.mode(i)));
            builder.append(&mode);
        } else {
            builder.append_mode(layout, i);
        }
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// Applies the splitter at the tiler's layouts, and gathers the first halves of the results in
/// mode 0, the second halves and the modes past the tiler in mode 1.
pub(crate) const fn unzip(
    splitter: Splitter,
    layout: &Layout,
    tiler: &Tiler,
) -> Result<Layout, LayoutError> {
    if let Some(tile) = tiler.as_layout() {
        return splitter.apply(layout, tile);
    }
    if !tiler.is_tuple() {
        return Layout::try_concat2(&Layout::UNIT, layout);
    }
    tri!(check_rank(layout, tiler));
    let mut firsts = LayoutBuilder::new();
    let mut seconds = LayoutBuilder::new();
    firsts.open();
    seconds.open();
    let mut i = 0;
    while i < layout.rank() {
        if i < tiler.rank() {
            let split = tri!(unzip(splitter, &layout.mode(i), &tiler.mode(i)));
            firsts.append_mode(&split, 0);
            seconds.append_mode(&split, 1);
        } else {
            seconds.append_mode(layout, i);
        }
        i += 1;
    }
    firsts.close();
    seconds.close();
    tri!(firsts.check());
    tri!(seconds.check());
    Layout::try_concat2(firsts.written(), seconds.written())
}

/// Turns `((a, b), (c, d))` into `((a, b), c, d)`, or into `(a, b, c, d)`.
pub(crate) const fn unpack(zipped: &Layout, both: bool) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    builder.open();
    if both {
        builder.append_modes(&zipped.mode(0));
    } else {
        builder.append_mode(zipped, 0);
    }
    builder.append_modes(&zipped.mode(1));
    builder.close();
    builder.finish()
}

const fn check_rank(layout: &Layout, tiler: &Tiler) -> Result<(), LayoutError> {
    if tiler.rank() <= layout.rank() {
        return Ok(());
    }
    let mut text = Text::new();
    text.str("the tiler has ")
        .number(tiler.rank() as i64)
        .str(" modes, but ")
        .layout(layout);
    text.str(" has only ").number(layout.rank() as i64);
    Err(LayoutError::new(ErrorKind::Mismatch, &text))
}
