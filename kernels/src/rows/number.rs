//! Element types of operations that compute in f32.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{DeviceData, Float};
use cutlet_layout_core::{Fragment, FragmentLayout, each};
use half::{bf16, f16};

/// An element type whose values an operation computes with as f32.
pub trait Number: DeviceData + Default {
    /// The same value as `f32`.
    fn widen(self) -> f32;
    /// The nearest value, ties to even.
    fn narrow(value: f32) -> Self;

    /// The nearest values, by one instruction where there is one.
    #[inline(always)]
    fn narrow_pair(values: [f32; 2]) -> [Self; 2] {
        values.map(Self::narrow)
    }
}

/// The nearest values to those of a thread. They are converted in pairs: a conversion of one value takes the GPU several
/// times as long as one of two.
#[inline(always)]
pub fn narrowed<T: Number, L: FragmentLayout>(values: &Fragment<f32, L>) -> Fragment<T, L> {
    const { assert!(L::SIZE.is_multiple_of(2), "values are converted in pairs") };
    let mut narrow = Fragment::filled(T::default());
    each::<L>(|v| {
        if v % 2 == 1 {
            let pair = T::narrow_pair([values.get(v - 1), values.get(v)]);
            narrow.set(v - 1, pair[0]);
            narrow.set(v, pair[1]);
        }
    });
    narrow
}

macro_rules! floats {
    ($($type:ty)+) => {$(
        impl Number for $type {
            #[inline(always)]
            fn widen(self) -> f32 {
                Float::to_f32(self)
            }

            #[inline(always)]
            fn narrow(value: f32) -> Self {
                Float::from_f32(value)
            }

            #[inline(always)]
            fn narrow_pair(values: [f32; 2]) -> [Self; 2] {
                Float::pair_from_f32(values)
            }
        }
    )+};
}
floats!(f32 f16 bf16);

/// What lies beyond the largest number, infinities included, becomes that number. NaN stays NaN.
impl Number for F8E4M3 {
    #[inline(always)]
    fn widen(self) -> f32 {
        /// Shifts the exponent from the bias of e4m3 to that of f32, subnormal numbers included.
        const BIAS: f32 = f32::from_bits((127 + 120) << 23);
        let bits = u32::from(self.to_bits());
        let magnitude = match bits & 0x7f {
            0x7f => f32::NAN,
            finite => f32::from_bits(finite << 20) * BIAS,
        };
        f32::from_bits(magnitude.to_bits() | (bits & 0x80) << 24)
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        const LARGEST: f32 = 448.0;
        /// The exponents of f32, that of the smallest normal number, and what a mantissa of 3 bits loses.
        const EXPONENTS: u32 = 0xff << 23;
        const LEAST: u32 = (127 - 6) << 23;
        const LOST: u32 = 20 << 23;
        /// Shifts the exponent from the bias of f32 to that of e4m3, subnormal numbers included.
        const BIAS: f32 = f32::from_bits((127 - 120) << 23);
        let magnitude = value.abs().min(LARGEST);
        // A sum with this power of two is rounded to the bits of e4m3. It takes half as many instructions as
        // `F8E4M3::from_f32`.
        let power = f32::from_bits((magnitude.to_bits() & EXPONENTS).max(LEAST) + LOST);
        let rounded = (magnitude + power) - power;
        let sign = (value.to_bits() >> 24) & 0x80;
        match value.is_nan() {
            true => F8E4M3::from_bits(0x7f),
            false => F8E4M3::from_bits((sign | (rounded * BIAS).to_bits() >> 20) as u8),
        }
    }

    #[inline(always)]
    fn narrow_pair(values: [f32; 2]) -> [Self; 2] {
        F8E4M3::pair_from_f32(values).unwrap_or_else(|| values.map(Self::narrow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_e4m3_widen_and_narrow() {
        for bits in 0..=u8::MAX {
            let number = F8E4M3::from_bits(bits);
            let (wide, expected) = (number.widen(), number.to_f32());
            assert!(
                wide == expected || wide.is_nan() && expected.is_nan(),
                "{bits}: {wide}, not {expected}"
            );
            if !wide.is_nan() {
                assert_eq!(F8E4M3::narrow(wide), number);
            }
        }
        // Numbers around each one of e4m3, and halfway between two.
        for bits in 0..0x7e {
            let [this, next] = [bits, bits + 1].map(|bits| F8E4M3::from_bits(bits).to_f32());
            let middle = 0.5 * (this + next);
            for value in [middle.next_down(), middle, middle.next_up(), -middle] {
                assert_eq!(F8E4M3::narrow(value), F8E4M3::from_f32(value), "{value}");
            }
        }
        assert_eq!(F8E4M3::narrow(1e9).to_f32(), 448.0);
        assert_eq!(F8E4M3::narrow(f32::NEG_INFINITY).to_f32(), -448.0);
        assert!(F8E4M3::narrow(f32::NAN).to_f32().is_nan());
        // Half of the way to the smallest number, which is odd.
        assert_eq!(F8E4M3::narrow(2f32.powi(-10)).to_f32(), 0.0);
    }
}
