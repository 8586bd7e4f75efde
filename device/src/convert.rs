//! Conversions between `f32` and the 16-bit floats, by the GPU's instructions.
//!
//! The conversions of the `half` crate work in a kernel too, but take many instructions.

use crate::Shuffle;
use half::{bf16, f16};

use crate::DeviceData;

/// A float type that kernels compute with as `f32`: `f32` itself, `f16`, `bf16`.
///
/// ```
/// use cutlet_device::Float;
/// use half::bf16;
///
/// let sum = bf16::from_f32(1.5).to_f32() + 1.0 / 512.0;
/// assert_eq!(bf16::pair_from_f32([sum, 2.0]), [bf16::from_f32(1.5), bf16::from_f32(2.0)]);
/// assert_eq!(bf16::from_low_bits(0xFFFF_3F80), bf16::ONE);
/// ```
pub trait Float: DeviceData + Shuffle {
    /// The same value as `f32`.
    fn to_f32(self) -> f32;

    /// The nearest value to `value`, ties to even.
    fn from_f32(value: f32) -> Self;

    /// [`from_f32`](Self::from_f32) of two values, by one instruction if there is one.
    fn pair_from_f32(values: [f32; 2]) -> [Self; 2];

    /// The value whose bits are the lowest ones of a register. The others do not matter.
    fn from_low_bits(register: u32) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn pair_from_f32(values: [f32; 2]) -> [Self; 2] {
        values
    }

    #[inline(always)]
    fn from_low_bits(register: u32) -> Self {
        f32::from_bits(register)
    }
}

impl Float for f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        imp::f16_to_f32(self)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        imp::f16_from_f32(value)
    }

    #[inline(always)]
    fn pair_from_f32(values: [f32; 2]) -> [Self; 2] {
        imp::f16_pair(values)
    }

    #[inline(always)]
    fn from_low_bits(register: u32) -> Self {
        f16::from_bits(register as u16)
    }
}

impl Float for bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        imp::bf16_to_f32(self)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        imp::bf16_from_f32(value)
    }

    #[inline(always)]
    fn pair_from_f32(values: [f32; 2]) -> [Self; 2] {
        imp::bf16_pair(values)
    }

    #[inline(always)]
    fn from_low_bits(register: u32) -> Self {
        bf16::from_bits(register as u16)
    }
}

/// A 16-bit float, of which a register holds a pair. Matrix instructions of 16-bit operands read such registers.
///
/// ```
/// use cutlet_device::Float16;
/// use half::bf16;
///
/// let pair = bf16::pack_f32([1.0, -2.0]);
/// assert_eq!(pair, 0xC000_3F80);
/// assert_eq!(bf16::unpack_f32(pair), [1.0, -2.0]);
/// ```
pub trait Float16: Float {
    /// Packs two values into a register, the first one in the lower half.
    fn pack(values: [Self; 2]) -> u32;

    /// The two values of a register.
    fn unpack(pair: u32) -> [Self; 2];

    /// Rounds two numbers to nearest, ties to even, and packs them, by one instruction.
    #[inline(always)]
    fn pack_f32(values: [f32; 2]) -> u32 {
        Self::pack(Self::pair_from_f32(values))
    }

    /// The two values of a register as `f32`.
    #[inline(always)]
    fn unpack_f32(pair: u32) -> [f32; 2] {
        let [low, high] = Self::unpack(pair);
        [low.to_f32(), high.to_f32()]
    }
}

macro_rules! float16 {
    ($($type:ident),*) => {$(
        impl Float16 for $type {
            #[inline(always)]
            fn pack([low, high]: [Self; 2]) -> u32 {
                u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
            }

            #[inline(always)]
            fn unpack(pair: u32) -> [Self; 2] {
                [Self::from_bits(pair as u16), Self::from_bits((pair >> 16) as u16)]
            }
        }
    )*};
}
float16!(bf16, f16);

/// A bf16 is the upper half of an f32. It takes a shift for the first bf16 of a pair, and a mask for the second.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90")))]
#[inline(always)]
fn upper_half_of_f32(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use half::{bf16, f16};

    macro_rules! widen {
        ($type:ty, $one:ident, $ptx:literal) => {
            #[inline(always)]
            pub fn $one(value: $type) -> f32 {
                let result;
                // SAFETY: arithmetic.
                unsafe {
                    asm!(concat!("cvt.f32.", $ptx, " {}, {};"), out(reg32) result,
                        in(reg16) value.to_bits(), options(pure, nomem, nostack));
                }
                result
            }
        };
    }
    widen!(f16, f16_to_f32, "f16");
    // On Hopper this instruction is a shift too, and its PTX has the form of f16's.
    #[cfg(target_feature = "sm_90")]
    widen!(bf16, bf16_to_f32, "bf16");
    #[cfg(not(target_feature = "sm_90"))]
    pub(super) use super::upper_half_of_f32 as bf16_to_f32;

    macro_rules! narrow {
        ($type:ty, $one:ident, $pair:ident, $ptx:literal) => {
            #[inline(always)]
            pub fn $one(value: f32) -> $type {
                let bits: u16;
                // SAFETY: arithmetic.
                unsafe {
                    asm!(concat!("cvt.rn.", $ptx, ".f32 {}, {};"), out(reg16) bits, in(reg32) value,
                        options(pure, nomem, nostack));
                }
                <$type>::from_bits(bits)
            }

            #[inline(always)]
            pub fn $pair([low, high]: [f32; 2]) -> [$type; 2] {
                let bits: u32;
                // SAFETY: arithmetic. The upper half is the first operand.
                unsafe {
                    asm!(concat!("cvt.rn.", $ptx, "x2.f32 {}, {}, {};"), out(reg32) bits,
                        in(reg32) high, in(reg32) low, options(pure, nomem, nostack));
                }
                [<$type>::from_bits(bits as u16), <$type>::from_bits((bits >> 16) as u16)]
            }
        };
    }
    narrow!(f16, f16_from_f32, f16_pair, "f16");
    narrow!(bf16, bf16_from_f32, bf16_pair, "bf16");
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use half::{bf16, f16};

    pub(super) use super::upper_half_of_f32 as bf16_to_f32;

    pub fn f16_to_f32(value: f16) -> f32 {
        value.to_f32()
    }

    pub fn f16_from_f32(value: f32) -> f16 {
        f16::from_f32(value)
    }

    pub fn f16_pair(values: [f32; 2]) -> [f16; 2] {
        values.map(f16::from_f32)
    }

    pub fn bf16_from_f32(value: f32) -> bf16 {
        bf16::from_f32(value)
    }

    pub fn bf16_pair(values: [f32; 2]) -> [bf16; 2] {
        values.map(bf16::from_f32)
    }
}
