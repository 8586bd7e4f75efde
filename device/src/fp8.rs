//! The 8-bit floats of matrix instructions: e4m3 and e5m2.

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
        /// Shifts the exponent from the bias of f32 to that of e4m3, subnormal numbers included.
        const BIAS: f32 = f32::from_bits(7 << 23);
        let scaled = (value.abs() * BIAS).to_bits();
        // Rounds to even at bit 20.
        let magnitude = (scaled + 0x7_ffff + ((scaled >> 20) & 1)) >> 20;
        let sign = (value.to_bits() >> 24) & 0x80;
        Self((sign | magnitude) as u8)
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

#[cfg(test)]
mod tests {
    use super::*;

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
