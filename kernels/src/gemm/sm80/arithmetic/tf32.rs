//! f32 by tf32: rounded, or as the sum of two.

use cutlet_device::fma;
use cutlet_device::sm80::Mma1688Tf32;
use cutlet_device::tile::MnMajor;
use cutlet_layout_core::{Fragment, L, M as Mode};

use super::{
    Arithmetic, BlockOfC, ByElements, ByMatrices, ThreadsOfC, ValuesOfC, add_halves, by_elements,
    by_halves,
};
use crate::gemm::sm80::config::PairSwizzle;

by_halves! {
    Mma1688Tf32: Self, f32 as u32 => f32, MnMajor, step 8, [u32; 4], 1, steps apart false,
        prepare rounded, add (_part, sums, a, b) add_halves::<Self, _>(sums, a, b);
    Tf32x3: Mma1688Tf32, f32 as u32 => f32, MnMajor, step 8, InTwo, 3, steps apart true,
        prepare InTwo::new, add (part, sums, a, b) match part {
            // The small products first: their sum is rounded less.
            0 => add_halves::<Mma1688Tf32, _>(sums, a.small, b.big),
            1 => add_halves::<Mma1688Tf32, _>(sums, a.big, b.small),
            _ => add_halves::<Mma1688Tf32, _>(sums, a.big, b.big),
        };
}

impl ByMatrices for Mma1688Tf32 {}
impl ByMatrices for Tf32x3 {}

by_elements! {
    // The k of `ldmatrix`.
    Mma1688Tf32: u32, swizzle PairSwizzle, k [1, 4], f32::to_bits;
    Tf32x3: u32, swizzle PairSwizzle, k [1, 4], f32::to_bits;
}

/// The nearest numbers of tf32.
#[inline(always)]
fn rounded([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    [round(a), round(b), round(c), round(d)]
}

/// The number rounded to tf32, ties away from zero. The instruction ignores the bits that tf32 lacks.
///
/// Half of the last place of tf32 is added, which keeps NaN and infinities. `cvt.rna` would take longer than the
/// product.
#[inline(always)]
fn round(number: u32) -> u32 {
    let power = f32::from_bits(number & SIGN_AND_EXPONENT);
    fma(power, HALF_OF_TF32S_LAST_PLACE, f32::from_bits(number)).to_bits()
}

/// The bits of an `f32` besides its fraction. Alone, they are a power of two, 0 or infinity.
const SIGN_AND_EXPONENT: u32 = 0xFF80_0000;
/// Half of the last place of tf32's fraction, which has 10 bits.
const HALF_OF_TF32S_LAST_PLACE: f32 = 1.0 / 2048.0;

/// Products of `f32`, each of which is taken as the sum of two tf32: a big one, and a small one, which is what the big
/// one lacks. The product of the small ones is left out.
///
/// Tensor cores round sums towards zero. So they add the products of one step, and f32 additions add the steps.
#[derive(Clone, Copy, Debug)]
pub struct Tf32x3;

/// The big and the small numbers of tf32 of a load.
#[derive(Clone, Copy, Debug)]
pub struct InTwo {
    big: [u32; 4],
    small: [u32; 4],
}

impl InTwo {
    #[inline(always)]
    fn new([a, b, c, d]: [u32; 4]) -> Self {
        let big = [big(a), big(b), big(c), big(d)];
        Self {
            big,
            small: [
                small(a, big[0]),
                small(b, big[1]),
                small(c, big[2]),
                small(d, big[3]),
            ],
        }
    }
}

/// The bits of an `f32` that tf32 lacks.
const BELOW_TF32: u32 = 0x1FFF;

/// The nearest number of tf32, ties away from zero. Of a NaN, any number: what it lacks is NaN.
#[inline(always)]
fn big(number: u32) -> u32 {
    number.wrapping_add(BELOW_TF32.div_ceil(2)) & !BELOW_TF32
}

/// What `big` lacks of a number. It has at most 12 bits, and the instruction ignores those that tf32 lacks.
#[inline(always)]
fn small(number: u32, big: u32) -> u32 {
    (f32::from_bits(number) - f32::from_bits(big)).to_bits()
}
