//! Tensors of the same memory in elements of another width.

use super::{Direct, ValueTensor, unwrap};
use crate::error::ErrorKind;
use crate::text::Text;
use crate::{ComposedLayout, Int, IntTuple, Layout, LayoutError, try_recast};

/// A number whose bytes may be read as any other number's.
///
/// # Safety
/// Any bytes are a valid value, and no byte is padding.
pub unsafe trait Number: Copy + 'static {}

macro_rules! numbers {
    ($($number:ty)+) => {$(
        // SAFETY: every bit pattern is a value, and there is no padding.
        unsafe impl Number for $number {}
    )+};
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl<'a, T: Number> ValueTensor<&'a [T]> {
    /// The same memory in elements of another type: an upcast of the layout for a wider one, a
    /// downcast for a narrower one.
    ///
    /// ```
    /// use cutlet_layout_core::{ValueTensor, layout};
    ///
    /// let memory = [0x0201u16, 0x0403, 0x0605, 0x0807];
    /// let halves = ValueTensor::new(&memory[..], layout!((2, 2):(2, 1)));
    /// let bytes = halves.recast::<u8>();
    /// assert_eq!(bytes.outer().to_string(), "(_2,_4):(_4,_1)");
    /// assert_eq!(bytes[(1, 0)], memory[2].to_ne_bytes()[0]);
    /// ```
    ///
    /// # Panics
    /// If elements would be torn, or the memory is not aligned for the new type.
    #[track_caller]
    pub fn recast<U: Number>(self) -> ValueTensor<&'a [U]> {
        let layout = unwrap(recast_layout::<T, U>(&self.layout));
        // SAFETY: numbers have no padding, and any bytes are a number.
        let (before, elements, _) = unsafe { self.engine.align_to::<U>() };
        assert!(
            before.is_empty(),
            "recast: the memory does not begin at a multiple of the new type's alignment"
        );
        ValueTensor::composed(elements, layout)
    }
}

impl<'a, T: Number> ValueTensor<&'a mut [T]> {
    /// The same memory in elements of another type, to write; as [`recast`](ValueTensor::recast).
    ///
    /// # Panics
    /// If elements would be torn, or the memory is not aligned for the new type.
    #[track_caller]
    pub fn recast_mut<U: Number>(self) -> ValueTensor<&'a mut [U]> {
        let layout = unwrap(recast_layout::<T, U>(&self.layout));
        // SAFETY: numbers have no padding, and any bytes are a number.
        let (before, elements, _) = unsafe { self.engine.align_to_mut::<U>() };
        assert!(
            before.is_empty(),
            "recast: the memory does not begin at a multiple of the new type's alignment"
        );
        ValueTensor::composed(elements, layout)
    }
}

fn recast_layout<T, U>(
    layout: &ComposedLayout<Direct>,
) -> Result<ComposedLayout<Direct>, LayoutError> {
    let (old, new) = (size_of::<T>() as i64 * 8, size_of::<U>() as i64 * 8);
    let outer: Layout = try_recast(layout.outer(), old, new)?;
    let begin = layout.offset().as_int().map(Int::value).unwrap_or(0) * old;
    if begin % new != 0 {
        let mut text = Text::new();
        text.str("recast: the tensor begins at bit ").number(begin);
        text.str(" of its memory, which is inside an element of ")
            .number(new)
            .str(" bits");
        return Err(LayoutError::new(ErrorKind::Mismatch, &text));
    }
    let offset = IntTuple::int(Int::fixed(begin / new));
    Ok(ComposedLayout::new(Direct, offset, outer))
}
