//! Partial sums: the numbers that matrix instructions accumulate, and that several threads may have parts of.

use crate::DeviceData;

/// A number of 4 bytes that is a partial sum: `f32`, or `i32`, which wraps around.
pub trait PartialSum: DeviceData + Default {
    /// `self + other`.
    ///
    /// ```
    /// use cutlet_device::PartialSum;
    ///
    /// assert_eq!(1.0f32.plus(2.0), 3.0);
    /// assert_eq!(i32::MAX.plus(1), i32::MIN);
    /// ```
    fn plus(self, other: Self) -> Self;

    /// The nearest `f32`, ties to even.
    ///
    /// ```
    /// use cutlet_device::PartialSum;
    ///
    /// assert_eq!(((1 << 24) + 1).to_f32(), 16_777_216.0);
    /// ```
    fn to_f32(self) -> f32;

    /// The bits.
    fn to_bits(self) -> u32;

    /// The number with these bits.
    fn from_bits(bits: u32) -> Self;
}

impl PartialSum for f32 {
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn to_bits(self) -> u32 {
        f32::to_bits(self)
    }

    #[inline(always)]
    fn from_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
}

impl PartialSum for i32 {
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }

    #[inline(always)]
    fn to_bits(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn from_bits(bits: u32) -> i32 {
        bits as i32
    }
}
