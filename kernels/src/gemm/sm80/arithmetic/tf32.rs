//! f32 by tf32: rounded, or as the sum of two.

use cutlet_device::sm80::{Mma1688Tf32, WarpMma};
use cutlet_device::tile::MnMajor;
use cutlet_device::{MmaInstruction, fma};
use cutlet_layout_core::{
    Fragment, L, Layout, M as Mode, M16N8K8Bits32, Mma, StaticLayout, ThreadValue, each,
};

use super::{ByMatrices, ByPairs, TensorCore, atom};
use crate::gemm::multistage::arithmetic::Arithmetic;
use crate::gemm::sm80::config::PairSwizzle;

/// Products of `f32`, each of which is rounded to tf32.
#[derive(Clone, Copy, Debug)]
pub struct Tf32;

/// An atom of f32 by `mma.m16n8k8` of tf32.
macro_rules! by_tf32 {
    ($($atom:ident: $a:ty, $b:ty, $parts:literal, steps apart $adds_steps:literal, prepare $prepare:expr,
        add ($part:ident, $sums:ident, $left:ident, $right:ident) $add:expr;)+) => {$(
        atom! {
            $atom: f32 => f32, [16, 8, 8] as M16N8K8Bits32, A [u32; 4], B Pair, of elements by f32::to_bits
        }

        impl TensorCore for $atom {
            type LinesOfMn = MnMajor;
        }

        impl Arithmetic for $atom {
            type OperandA = $a;
            type OperandB = $b;
            type Parts = Mode<$parts, 1>;
            const ADDS_STEPS: bool = $adds_steps;
            const ORDER_OF_K: Layout = <L!(8:1)>::LAYOUT;

            #[inline(always)]
            fn prepare_a(registers: [u32; 4]) -> $a {
                $prepare(registers)
            }

            #[inline(always)]
            fn prepare_b(Pair(first, second): Pair) -> $b {
                $prepare([first, second])
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn add(
                $part: usize,
                $sums: &mut Fragment<f32, Self::Values>,
                $left: $a,
                $right: $b,
            ) {
                $add
            }
        }

        impl ByMatrices for $atom {}

        impl ByPairs for $atom {
            type SwizzleOfMn<const MN: usize, const K: usize> = PairSwizzle<f32, MnMajor, MN, K>;
        }
    )+};
}
by_tf32! {
    Tf32: [u32; 4], [u32; 2], 1, steps apart false, prepare rounded,
        add (_part, sums, a, b) Mma1688Tf32::mma(sums, a, b);
    Tf32x3: InTwo<4>, InTwo<2>, 3, steps apart true, prepare InTwo::new,
        add (part, sums, a, b) match part {
            // The small products first: their sum is rounded less.
            0 => Mma1688Tf32::mma(sums, a.small, b.big),
            1 => Mma1688Tf32::mma(sums, a.big, b.small),
            _ => Mma1688Tf32::mma(sums, a.big, b.big),
        };
}

/// The registers of B. Two numbers, which the compiler keeps apart, where it packs an array of them into 64 bits from
/// one step to the next.
#[derive(Clone, Copy, Debug)]
pub struct Pair(u32, u32);

impl From<[u32; 2]> for Pair {
    #[inline(always)]
    fn from([first, second]: [u32; 2]) -> Self {
        Pair(first, second)
    }
}

/// The nearest numbers of tf32.
#[inline(always)]
fn rounded<const N: usize>(registers: [u32; N]) -> [u32; N] {
    registers.map(round)
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

/// The big and the small numbers of tf32 in registers of an operand.
#[derive(Clone, Copy, Debug)]
pub struct InTwo<const N: usize> {
    big: [u32; N],
    small: [u32; N],
}

impl<const N: usize> InTwo<N> {
    #[inline(always)]
    fn new(registers: [u32; N]) -> Self {
        let big = registers.map(big);
        Self {
            big,
            small: core::array::from_fn(|n| small(registers[n], big[n])),
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
