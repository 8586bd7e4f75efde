//! Tensors of the same memory in elements of another width.

use super::{Direct, ValueTensor, unwrap};
use crate::composed::recast_offset;
use crate::{ComposedLayout, LayoutError, Swizzle, Transform, try_recast};

/// A number whose bytes may be read as those of any other number.
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

/// An inner transform that can count in elements of another width.
pub trait Recast: Transform + Copy {
    /// The transform of the same memory in elements of another width, in bits.
    ///
    /// # Errors
    /// If an element would be torn.
    fn try_recast(&self, old_bits: i64, new_bits: i64) -> Result<Self, LayoutError>;
}

impl Recast for Direct {
    fn try_recast(&self, _: i64, _: i64) -> Result<Direct, LayoutError> {
        Ok(Direct)
    }
}

impl Recast for Swizzle {
    fn try_recast(&self, old_bits: i64, new_bits: i64) -> Result<Swizzle, LayoutError> {
        Swizzle::try_recast(*self, old_bits, new_bits)
    }
}

impl<'a, T: Number, I: Recast> ValueTensor<&'a [T], I> {
    /// The same memory in elements of another type: the layout is upcast for a wider one and
    /// downcast for a narrower one, and a swizzle is recast too.
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
    /// If an element would be torn, or the memory is not aligned for the new type.
    #[track_caller]
    pub fn recast<U: Number>(self) -> ValueTensor<&'a [U], I> {
        let layout = unwrap(recast_layout::<T, U, I>(&self.layout));
        // SAFETY: numbers have no padding, and any bytes are a number.
        let (before, elements, _) = unsafe { self.engine.align_to::<U>() };
        assert!(
            before.is_empty(),
            "recast: the memory does not begin at a multiple of the new type's alignment: align it"
        );
        ValueTensor::composed(elements, layout)
    }
}

impl<'a, T: Number, I: Recast> ValueTensor<&'a mut [T], I> {
    /// The same memory in elements of another type, to write; as [`recast`](ValueTensor::recast).
    ///
    /// # Panics
    /// If an element would be torn, or the memory is not aligned for the new type.
    #[track_caller]
    pub fn recast_mut<U: Number>(self) -> ValueTensor<&'a mut [U], I> {
        let layout = unwrap(recast_layout::<T, U, I>(&self.layout));
        // SAFETY: numbers have no padding, and any bytes are a number.
        let (before, elements, _) = unsafe { self.engine.align_to_mut::<U>() };
        assert!(
            before.is_empty(),
            "recast: the memory does not begin at a multiple of the new type's alignment: align it"
        );
        ValueTensor::composed(elements, layout)
    }
}

fn recast_layout<T, U, I: Recast>(
    layout: &ComposedLayout<I>,
) -> Result<ComposedLayout<I>, LayoutError> {
    let (old, new) = (size_of::<T>() as i64 * 8, size_of::<U>() as i64 * 8);
    Ok(ComposedLayout::new(
        layout.inner().try_recast(old, new)?,
        recast_offset(layout.offset(), old, new)?,
        try_recast(layout.outer(), old, new)?,
    ))
}
