//! The 8-bit floats of matrix instructions: e4m3 and e5m2.

use core::fmt;
use core::marker::PhantomData;

use crate::DeviceData;

macro_rules! float8 {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(u8);

        // SAFETY: one byte, of which every bit pattern is a value.
        #[diagnostic::do_not_recommend]
        unsafe impl DeviceData for $name {}

        impl $name {
            /// The float with these bits.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }
        }
    };
}

macro_rules! widens {
    ($($name:ident)+) => {$(
        impl From<$name> for f32 {
            fn from(float: $name) -> f32 {
                float.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(float: $name) -> f64 {
                float.to_f32().into()
            }
        }
    )+};
}
widens!(F8E4M3 F8E5M2);

float8! {
    /// A float with 4 exponent and 3 mantissa bits: up to 448, without infinities.
    F8E4M3
}
float8! {
    /// A float with 5 exponent and 2 mantissa bits: up to 57344, with infinities.
    F8E5M2
}

impl F8E4M3 {
    /// The nearest float to a value from −448 to 448, ties to even.
    #[inline(always)]
    pub const fn from_f32(value: f32) -> Self {
        let sign = (value.to_bits() >> 24) & 0x80;
        Self((sign | narrow(value.abs(), 3, 7)) as u8)
    }

    /// The nearest floats to two values, ties to even, by one instruction. What lies beyond 448 becomes ±448, and NaN
    /// becomes NaN. `None` on GPUs before sm_90, where no instruction is used, and on the CPU.
    #[inline(always)]
    pub fn pair_from_f32(values: [f32; 2]) -> Option<[Self; 2]> {
        imp::e4m3_pair(values).map(|bits| bits.to_le_bytes().map(Self))
    }

    /// The same value as `f32`.
    pub const fn to_f32(self) -> f32 {
        if self.0 & 0x7F == 0x7F {
            return f32::NAN;
        }
        widen(self.0, 3, 7)
    }
}

impl F8E5M2 {
    /// The nearest float, ties to even. What rounds beyond 57344 is infinite, and NaN stays NaN.
    #[inline(always)]
    pub const fn from_f32(value: f32) -> Self {
        /// The bits of infinity. Those of NaN are beyond.
        const INFINITY: u32 = 0x7C;
        let sign = (value.to_bits() >> 24) & 0x80;
        if value.is_nan() {
            return Self((sign | 0x7F) as u8);
        }
        let rounded = narrow(value.abs(), 2, 15);
        let magnitude = if rounded < INFINITY {
            rounded
        } else {
            INFINITY
        };
        Self((sign | magnitude) as u8)
    }

    /// The same value as `f32`.
    pub const fn to_f32(self) -> f32 {
        match self.0 & 0x7F {
            0x7C if self.0 & 0x80 == 0 => f32::INFINITY,
            0x7C => f32::NEG_INFINITY,
            0x7D.. => f32::NAN,
            _ => widen(self.0, 2, 15),
        }
    }
}

/// An 8-bit float of format `A` in a matrix A, and of format `B` in a matrix B: the elements of products of two formats.
///
/// ```
/// use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
///
/// let bits = MixedF8::<F8E4M3, F8E5M2>::from_bits(0x40);
/// assert_eq!(bits.to_bits(), F8E4M3::from_f32(2.0).to_bits());
/// ```
#[repr(transparent)]
pub struct MixedF8<A, B>(u8, PhantomData<fn() -> (A, B)>);

// SAFETY: one byte, of which every bit pattern is a value.
#[diagnostic::do_not_recommend]
unsafe impl<A: DeviceData, B: DeviceData> DeviceData for MixedF8<A, B> {}

impl<A, B> MixedF8<A, B> {
    /// The float with these bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits, PhantomData)
    }

    /// The bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }
}

impl<A, B> Clone for MixedF8<A, B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, B> Copy for MixedF8<A, B> {}

impl<A, B> Default for MixedF8<A, B> {
    #[inline(always)]
    fn default() -> Self {
        Self::from_bits(0)
    }
}

impl<A, B> fmt::Debug for MixedF8<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MixedF8").field(&self.0).finish()
    }
}

/// The bits of the nearest float with `mantissa_bits` mantissa bits to a magnitude, ties to even, of any exponent.
#[inline(always)]
const fn narrow(magnitude: f32, mantissa_bits: u32, bias: u32) -> u32 {
    let smallest_normal = f32::from_bits((128 - bias) << 23);
    if magnitude < smallest_normal {
        // A sum with this number is rounded to a multiple of the smallest float.
        let unit = f32::from_bits((128 - bias + 23 - mantissa_bits) << 23);
        return (magnitude + unit).to_bits() - unit.to_bits();
    }
    let dropped = 23 - mantissa_bits;
    let (bits, half) = (magnitude.to_bits(), 1 << (dropped - 1));
    let rounded = (bits + half - 1 + ((bits >> dropped) & 1)) >> dropped;
    rounded - ((127 - bias) << mantissa_bits)
}

/// The value of a finite 8-bit float with `mantissa_bits` mantissa bits.
const fn widen(bits: u8, mantissa_bits: u32, bias: i32) -> f32 {
    let exponent = ((bits & 0x7F) >> mantissa_bits) as i32;
    let mantissa = (bits & ((1 << mantissa_bits) - 1)) as f32;
    let one = (1u32 << mantissa_bits) as f32;
    let (significand, exponent) = if exponent == 0 {
        (mantissa / one, 1 - bias)
    } else {
        (1.0 + mantissa / one, exponent - bias)
    };
    let scale = f32::from_bits(((exponent + 127) as u32) << 23);
    let magnitude = significand * scale;
    if bits & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use crate::since_sm_90::{is_since_sm_90, since_sm_90};

    #[inline(always)]
    pub fn e4m3_pair([first, second]: [f32; 2]) -> Option<u16> {
        if !is_since_sm_90() {
            return None;
        }
        let mut pair = 0u16;
        // SAFETY: converts numbers.
        unsafe {
            since_sm_90!("cvt.rn.satfinite.e4m3x2.f32 {pair}, {second}, {first};",
                pair = inout(reg16) pair, first = in(reg32) first, second = in(reg32) second,
                options(pure, nomem, nostack, preserves_flags));
        }
        Some(pair)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn e4m3_pair(_: [f32; 2]) -> Option<u16> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e5m2_rounds_to_the_nearest_and_ties_to_even() {
        for bits in 0..=u8::MAX {
            let float = F8E5M2::from_bits(bits);
            let value = float.to_f32();
            match value.is_nan() {
                true => assert!(F8E5M2::from_f32(value).to_f32().is_nan()),
                false => assert_eq!(F8E5M2::from_f32(value), float, "{value}"),
            }
        }
        for bits in 0..0x7B {
            let [low, high] = [bits, bits + 1].map(|it| F8E5M2::from_bits(it).to_f32());
            let middle = (low + high) / 2.0;
            let even = F8E5M2::from_bits(bits + bits % 2);
            assert_eq!(F8E5M2::from_f32(middle), even, "{middle}");
            assert_eq!(F8E5M2::from_f32(middle.next_down()).to_bits(), bits);
            assert_eq!(
                F8E5M2::from_f32(-middle.next_up()).to_bits(),
                0x80 | (bits + 1)
            );
        }
        assert_eq!(F8E5M2::from_f32(61439.0).to_f32(), 57344.0);
        assert_eq!(F8E5M2::from_f32(-61440.0).to_f32(), f32::NEG_INFINITY);
        assert_eq!(F8E5M2::from_f32(f32::INFINITY).to_f32(), f32::INFINITY);
        assert_eq!(F8E5M2::from_f32(f32::MAX).to_f32(), f32::INFINITY);
        assert_eq!(F8E5M2::from_f32(-0.0).to_bits(), 0x80);
        assert!(F8E5M2::from_f32(f32::NAN).to_f32().is_nan());
    }

    #[test]
    fn e4m3_rounds_to_the_nearest_and_ties_to_even() {
        for bits in 0..0x7E {
            let [low, high] = [bits, bits + 1].map(|it| F8E4M3::from_bits(it).to_f32());
            let middle = (low + high) / 2.0;
            assert_eq!(F8E4M3::from_f32(low).to_bits(), bits);
            assert_eq!(F8E4M3::from_f32(middle).to_bits(), bits + bits % 2);
            assert_eq!(F8E4M3::from_f32(middle.next_down()).to_bits(), bits);
            assert_eq!(
                F8E4M3::from_f32(-middle.next_up()).to_bits(),
                0x80 | (bits + 1)
            );
        }
    }

    #[test]
    fn extreme_values_are_right() {
        assert_eq!(F8E4M3::from_bits(0x7E).to_f32(), 448.0);
        assert_eq!(F8E4M3::from_bits(0x01).to_f32(), 2f32.powi(-9));
        assert_eq!(F8E4M3::from_bits(0xB8).to_f32(), -1.0);
        assert!(F8E4M3::from_bits(0xFF).to_f32().is_nan());
        assert_eq!(F8E5M2::from_bits(0x7B).to_f32(), 57344.0);
        assert_eq!(F8E5M2::from_bits(0x01).to_f32(), 2f32.powi(-16));
        assert_eq!(F8E5M2::from_bits(0xFC).to_f32(), f32::NEG_INFINITY);
        assert!(F8E5M2::from_bits(0x7D).to_f32().is_nan());
    }
}
