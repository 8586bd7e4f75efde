//! Layouts in units of wider or narrower elements.

use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::{Int, Layout};

twin! {
    /// The layout in units of `n` old elements: strides are divided by `n`, and modes of a stride
    /// that divides `n` get shorter. A mode that is only a part of a new element becomes one whole
    /// element: `2:1` in units of 4 is `1:1`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, upcast};
    ///
    /// assert_eq!(upcast(&layout!((8, 4):(1, 8)), 2).to_string(), "(_4,_4):(_1,_4)");
    /// assert_eq!(upcast(&layout!(2:1), 4).to_string(), "_1:_1");
    /// ```
    upcast = try_upcast(layout: &Layout, n: i64) -> Layout;

    /// The layout in units of an `n`-th of an old element. The first mode of stride 1 gets longer;
    /// the strides of all others are multiplied by `n`.
    ///
    /// ```
    /// use cutlet_layout_core::{downcast, layout};
    ///
    /// assert_eq!(downcast(&layout!((4, 4):(1, 4)), 2).to_string(), "(_8,_4):(_1,_8)");
    /// ```
    downcast = try_downcast(layout: &Layout, n: i64) -> Layout;

    /// The layout of the same memory in elements of another width, in bits. Parts of elements are
    /// rounded up, as by [`upcast`].
    ///
    /// ```
    /// use cutlet_layout_core::{layout, recast};
    ///
    /// assert_eq!(recast(&layout!((8, 4):(1, 8)), 16, 32).to_string(), "(_4,_4):(_1,_4)");
    /// assert_eq!(recast(&layout!((8, 4):(1, 8)), 32, 16).to_string(), "(_16,_4):(_1,_16)");
    /// ```
    recast = try_recast(layout: &Layout, old_bits: i64, new_bits: i64) -> Layout;
}

/// [`upcast`], or the reason why there is none.
///
/// # Errors
/// If `n` is below 1, a stride neither divides `n` nor is divided by it, or a mode is neither a whole
/// number of new elements nor a whole part of one.
pub const fn try_upcast(layout: &Layout, n: i64) -> Result<Layout, LayoutError> {
    if n < 1 {
        return Err(refused(
            "upcast",
            layout,
            n,
            "the factor is below 1: give at least 1",
        ));
    }
    let mut builder = LayoutBuilder::new();
    let mut i = 0;
    while i < layout.num_leaves() {
        let (shape, stride) = (layout.leaf_shape(i), layout.leaf_stride(i));
        let step = stride.value().unsigned_abs();
        let factor = n.unsigned_abs();
        builder.opens(layout.profile().opens(i));
        if step.is_multiple_of(factor) {
            builder.leaf(shape, scaled(stride, stride.value() / n));
        } else if factor.is_multiple_of(step) {
            let per_element = (factor / step) as i64;
            let extent = shape.value();
            if extent % per_element != 0 && per_element % extent != 0 {
                let why = "a mode is not a whole number of the new elements: choose a factor that divides it";
                return Err(refused("upcast", layout, n, why));
            }
            let shorter = (extent - 1) / per_element + 1;
            let is_static = shape.is_static() && stride.is_static();
            builder.leaf(
                Int::dynamic(shorter).with_static(is_static),
                scaled(stride, stride.value().signum()),
            );
        } else {
            let why = "a stride and the factor do not divide each other: choose a factor that does";
            return Err(refused("upcast", layout, n, why));
        }
        builder.closes(layout.profile().closes(i));
        i += 1;
    }
    builder.finish()
}

/// An integer with another value, but the same direction and staticness.
const fn scaled(int: Int, value: i64) -> Int {
    Int::dynamic(value)
        .with_static(int.is_static())
        .along(int.basis())
}

/// [`downcast`], or the reason why there is none.
///
/// # Errors
/// If `n` is below 1, no mode has stride 1 (elements are then not adjacent, and their parts have no
/// position), or the result does not fit 64 bits.
pub const fn try_downcast(layout: &Layout, n: i64) -> Result<Layout, LayoutError> {
    if n < 1 {
        return Err(refused(
            "downcast",
            layout,
            n,
            "the factor is below 1: give at least 1",
        ));
    }
    let factor = Int::fixed(n);
    let mut has_adjacent = false;
    let mut builder = LayoutBuilder::new();
    let mut i = 0;
    while i < layout.num_leaves() {
        let (shape, stride) = (layout.leaf_shape(i), layout.leaf_stride(i));
        // The parts of an element are counted once: by the first mode of stride 1.
        let adjacent = !has_adjacent && (stride.value() == 1 || stride.value() == -1);
        has_adjacent = has_adjacent || adjacent;
        let scaled = if adjacent {
            shape.checked_mul(factor)
        } else {
            stride.checked_mul(factor)
        };
        let Some(scaled) = scaled else {
            return Err(refused(
                "downcast",
                layout,
                n,
                "the result does not fit 64 bits",
            ));
        };
        builder.opens(layout.profile().opens(i));
        builder.leaf(
            if adjacent { scaled } else { shape },
            if adjacent { stride } else { scaled },
        );
        builder.closes(layout.profile().closes(i));
        i += 1;
    }
    if !has_adjacent && n > 1 {
        let why = "no stride is 1, so the parts of an element have no position: use a layout with adjacent elements";
        return Err(refused("downcast", layout, n, why));
    }
    builder.finish()
}

/// [`recast`], or the reason why there is none.
///
/// # Errors
/// If a width is below 1, or [`try_upcast`] or [`try_downcast`] returns an error.
pub const fn try_recast(
    layout: &Layout,
    old_bits: i64,
    new_bits: i64,
) -> Result<Layout, LayoutError> {
    if old_bits < 1 || new_bits < 1 {
        return Err(refused(
            "recast",
            layout,
            new_bits,
            "an element width is below 1 bit: give at least 1",
        ));
    }
    let common = crate::gcd(Int::fixed(old_bits), Int::fixed(new_bits)).value();
    let (wider, narrower) = (new_bits / common, old_bits / common);
    let layout = if wider > 1 {
        tri!(try_upcast(layout, wider))
    } else {
        *layout
    };
    if narrower > 1 {
        try_downcast(&layout, narrower)
    } else {
        Ok(layout)
    }
}

const fn refused(operation: &str, layout: &Layout, n: i64, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str(operation)
        .str(": ")
        .layout(layout)
        .str(" by ")
        .number(n)
        .str(": ")
        .str(why);
    LayoutError::new(ErrorKind::Mismatch, &text)
}
