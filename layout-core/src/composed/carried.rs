//! A swizzle before a layout, as another swizzle behind it.

use crate::{Layout, Swizzle};

/// Why no swizzle does behind a layout what another does before it.
pub(super) enum Uncarried {
    /// The layout does not permute bits.
    Scattered,
    /// Only a part of the swizzled bits is in the layout's domain.
    PartOfBits,
    /// The swizzled bits are no neighbours behind the layout.
    Apart,
}

impl Uncarried {
    pub(super) const fn of_layout(&self) -> &'static str {
        match self {
            Uncarried::Scattered => {
                "the layout does not permute bits: give extents and strides that are powers of 2"
            }
            Uncarried::PartOfBits => {
                "the swizzle permutes coordinates beyond the layout's size: give a larger layout"
            }
            Uncarried::Apart => {
                "the layout takes the swizzled bits apart: no swizzle does the same behind it"
            }
        }
    }

    pub(super) const fn of_inverse(&self) -> &'static str {
        match self {
            Uncarried::Scattered => {
                "the inverse of its outer layout does not permute bits: give extents and strides that are powers of 2"
            }
            Uncarried::PartOfBits => {
                "it has only a part of the swizzled bits: give a larger outer layout"
            }
            Uncarried::Apart => {
                "its outer layout takes the swizzled bits apart: no swizzle undoes it"
            }
        }
    }
}

/// The swizzle `S` with `S(layout(c)) = layout(swizzle(c))` for every coordinate `c` of a layout.
pub(super) const fn carried(swizzle: Swizzle, layout: &Layout) -> Result<Swizzle, Uncarried> {
    let size = layout.size();
    let (source, target) = (swizzle.source_mask(), swizzle.target_mask());
    // All coordinates below the lowest bit that is read stay as they are.
    if source == 0 || size <= lowest(source) {
        return Ok(Swizzle::new(0, 0, 0));
    }
    if !permutes_bits(layout) {
        return Err(Uncarried::Scattered);
    }
    if size <= source || size <= target {
        return Err(Uncarried::PartOfBits);
    }
    match moved(swizzle, layout) {
        Some(swizzle) => Ok(swizzle),
        None => Err(Uncarried::Apart),
    }
}

/// Whether a layout moves each bit of its 1-D coordinate to another place, or drops it.
const fn permutes_bits(layout: &Layout) -> bool {
    let mut bits: i64 = 0;
    let mut i = 0;
    while i < layout.num_leaves() {
        let (extent, stride) = (layout.leaf_shape(i).value(), layout.leaf_stride(i).value());
        if !(extent as u64).is_power_of_two() {
            return false;
        }
        if extent > 1 && stride != 0 {
            let span = match (extent - 1).checked_mul(stride) {
                Some(span) => span,
                None => return false,
            };
            if stride < 0 || !(stride as u64).is_power_of_two() || bits & span != 0 {
                return false;
            }
            bits |= span;
        }
        i += 1;
    }
    true
}

/// The swizzle `S` with `S(layout(i)) = layout(swizzle(i))`, for a layout that permutes bits.
const fn moved(swizzle: Swizzle, layout: &Layout) -> Option<Swizzle> {
    let (low_source, low_target) = (lowest(swizzle.source_mask()), lowest(swizzle.target_mask()));
    if layout.at(swizzle.target_mask()) == 0 {
        // The changed bits are dropped.
        return Some(Swizzle::new(0, 0, 0));
    }
    let (source, target) = (layout.at(low_source), layout.at(low_target));
    if source == 0 || target == 0 {
        return None;
    }
    let mut i = 1;
    while i < swizzle.bits() {
        let neighbours =
            layout.at(low_source << i) == source << i && layout.at(low_target << i) == target << i;
        if !neighbours {
            return None;
        }
        i += 1;
    }
    let (source, target) = (
        source.trailing_zeros() as i64,
        target.trailing_zeros() as i64,
    );
    let base = if source < target { source } else { target };
    match Swizzle::try_new(swizzle.bits() as i64, base, source - target) {
        Ok(swizzle) => Some(swizzle),
        Err(_) => None,
    }
}

/// The lowest bit of a mask.
pub(super) const fn lowest(mask: i64) -> i64 {
    mask & -mask
}
