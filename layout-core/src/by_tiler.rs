//! Composition, division and product of a layout by a tiler: mode by mode, with the parts left in place or gathered.

use crate::by_layout::ByLayout;
use crate::error::{ErrorKind, LayoutError, tri};
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::tiler::ModeKind;
use crate::{Layout, Tiler};

/// Applies the operation at each layout of the tiler, and leaves the results in place. Modes past
/// the tiler are kept, but a composition drops them.
pub(crate) const fn by_mode(
    operation: ByLayout,
    layout: &Layout,
    tiler: &Tiler,
) -> Result<Layout, LayoutError> {
    if let Some(tile) = tiler.as_layout() {
        return operation.apply(layout, tile);
    }
    if !tiler.is_tuple() {
        return Ok(*layout);
    }
    tri!(check_rank(layout, tiler));
    let mut builder = LayoutBuilder::new();
    let modes = match operation {
        ByLayout::Compose => tiler.rank(),
        ByLayout::Divide | ByLayout::Multiply => layout.rank(),
    };
    builder.open();
    let mut i = 0;
    while i < modes {
        let mut tile = LayoutBuilder::new();
        let split = match mode_kind(tiler, i, &mut tile) {
            ModeKind::Layout => operation.apply(&layout.mode(i), tile.written()),
            ModeKind::Tuple => by_mode(operation, &layout.mode(i), &tiler.mode(i)),
            ModeKind::Underscore => {
                builder.append_mode(layout, i);
                i += 1;
                continue;
            }
        };
        // By reference: a layout is a kilobyte, and a move of it is measurable.
        match &split {
            Ok(mode) => builder.append(mode),
            Err(error) => return Err(*error),
        }
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// The kind of mode `i` of a tuple of tilers. A mode past the tuple is kept, as for `_`.
const fn mode_kind(tiler: &Tiler, i: usize, tile: &mut LayoutBuilder) -> ModeKind {
    if i < tiler.rank() {
        tiler.mode_kind(i, tile)
    } else {
        ModeKind::Underscore
    }
}

/// Applies the operation at each layout of the tiler. Gathers the first halves of the results in
/// mode 0, and the second halves and the modes past the tiler in mode 1. A mode whose tiler is `_`
/// is one of the two halves as a whole, and the other half is `_1:_0`.
pub(crate) const fn unzip(
    operation: ByLayout,
    layout: &Layout,
    tiler: &Tiler,
) -> Result<Layout, LayoutError> {
    if let Some(tile) = tiler.as_layout() {
        return operation.apply(layout, tile);
    }
    if !tiler.is_tuple() {
        return match operation.keeps_first() {
            true => Layout::try_concat2(layout, &Layout::UNIT),
            false => Layout::try_concat2(&Layout::UNIT, layout),
        };
    }
    tri!(check_rank(layout, tiler));
    let mut firsts = LayoutBuilder::new();
    let mut seconds = LayoutBuilder::new();
    firsts.open();
    seconds.open();
    let mut i = 0;
    while i < layout.rank() {
        let mut tile = LayoutBuilder::new();
        let split = match mode_kind(tiler, i, &mut tile) {
            ModeKind::Layout => operation.apply(&layout.mode(i), tile.written()),
            ModeKind::Tuple => unzip(operation, &layout.mode(i), &tiler.mode(i)),
            ModeKind::Underscore => {
                if i < tiler.rank() && operation.keeps_first() {
                    firsts.append_mode(layout, i);
                    seconds.append(&Layout::UNIT);
                } else {
                    if i < tiler.rank() {
                        firsts.append(&Layout::UNIT);
                    }
                    seconds.append_mode(layout, i);
                }
                i += 1;
                continue;
            }
        };
        match &split {
            Ok(split) => {
                firsts.append_mode(split, 0);
                seconds.append_mode(split, 1);
            }
            Err(error) => return Err(*error),
        }
        i += 1;
    }
    firsts.close();
    seconds.close();
    tri!(firsts.check());
    tri!(seconds.check());
    Layout::try_concat2(firsts.written(), seconds.written())
}

/// Turns the zipped `((a, b), (c, d))` into the tiled `((a, b), c, d)`.
pub(crate) const fn zipped_to_tiled(zipped: &Layout) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    builder.open();
    builder.append_mode(zipped, 0);
    builder.append_modes(&zipped.mode(1));
    builder.close();
    builder.finish()
}

/// Turns the zipped `((a, b), (c, d))` into the flat `(a, b, c, d)`.
pub(crate) const fn zipped_to_flat(zipped: &Layout) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    builder.open();
    builder.append_modes(&zipped.mode(0));
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
    text.str(" has only ")
        .number(layout.rank() as i64)
        .str(": give a tiler of at most as many");
    Err(LayoutError::new(ErrorKind::Mismatch, &text))
}
