//! The types that epilogues compute in, and the element types of C that they round to.

use core::fmt::Debug;

use cutlet_device::{DeviceData, Float, Fma, max_nan};
use cutlet_layout_core::{AccessWidth, Fragment, FragmentLayout, Width, each};
use half::{bf16, f16};

use super::{Activation, gelu_exact, silu};
use crate::gelu_erf::gelu_erf;

/// A type of accumulators, in which an epilogue computes: `f32`, `f64` or `i32`.
///
/// | elements | accumulators |
/// |---|---|
/// | `f32`, `bf16`, `f16` | `f32` |
/// | `f64` | `f64` |
/// | `i8` into `i32` | `i32`, which wraps around |
pub trait Accumulator: DeviceData + Debug + Default + PartialEq + Fma {
    /// Accesses to four neighbours, or to two if four have more than 16 bytes. They suit the elements of C, too.
    type Fours: AccessWidth;

    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// `self + other`.
    fn plus(self, other: Self) -> Self;

    /// `self · other`.
    fn times(self, other: Self) -> Self;

    /// The larger of `self` and `floor`. Returns NaN if `self` is NaN.
    fn at_least(self, floor: Self) -> Self;

    /// Whether [`activate`](Self::activate) computes this activation.
    fn has(activation: Activation) -> bool;

    /// Applies an activation. One that the type does not [have](Self::has) leaves the value as it is.
    fn activate(self, activation: Activation) -> Self;
}

impl Accumulator for f32 {
    type Fours = Width<4>;

    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }

    #[inline(always)]
    fn at_least(self, floor: f32) -> f32 {
        max_nan(self, floor)
    }

    fn has(_: Activation) -> bool {
        true
    }

    #[inline(always)]
    fn activate(self, activation: Activation) -> f32 {
        match activation {
            Activation::Relu => self.at_least(0.0),
            // The approximation would not pay: with a branch for each value, instructions are not the bottleneck. C may
            // also be of f32.
            Activation::Gelu => gelu_exact(self),
            Activation::Silu => silu(self),
            Activation::GeluErf => gelu_erf(self),
        }
    }
}

impl Accumulator for f64 {
    type Fours = Width<2>;

    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }

    #[inline(always)]
    fn at_least(self, floor: f64) -> f64 {
        // PTX has no `max.NaN` of f64. A comparison with NaN is false.
        if self < floor { floor } else { self }
    }

    fn has(activation: Activation) -> bool {
        activation == Activation::Relu
    }

    #[inline(always)]
    fn activate(self, activation: Activation) -> f64 {
        match activation {
            Activation::Relu => self.at_least(0.0),
            Activation::Gelu | Activation::Silu | Activation::GeluErf => self,
        }
    }
}

impl Accumulator for i32 {
    type Fours = Width<4>;

    const ZERO: i32 = 0;
    const ONE: i32 = 1;

    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn times(self, other: i32) -> i32 {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn at_least(self, floor: i32) -> i32 {
        self.max(floor)
    }

    fn has(activation: Activation) -> bool {
        activation == Activation::Relu
    }

    #[inline(always)]
    fn activate(self, activation: Activation) -> i32 {
        match activation {
            Activation::Relu => self.at_least(0),
            Activation::Gelu | Activation::Silu | Activation::GeluErf => self,
        }
    }
}

/// A type of accumulators that sums of `S` are converted to, before the epilogue gets them.
pub trait FromSums<S: Copy>: Copy {
    /// The accumulator of a sum, rounded to nearest.
    fn from_sum(sum: S) -> Self;

    /// The accumulators of a thread's sums of several M atoms.
    fn from_sums<L: FragmentLayout, const ATOMS: usize>(
        sums: [Fragment<S, L>; ATOMS],
    ) -> [Fragment<Self, L>; ATOMS];
}

macro_rules! sums_as_they_are {
    ($($number:ty),*) => {$(
        impl FromSums<$number> for $number {
            #[inline(always)]
            fn from_sum(sum: $number) -> $number {
                sum
            }

            #[inline(always)]
            fn from_sums<L: FragmentLayout, const ATOMS: usize>(
                sums: [Fragment<$number, L>; ATOMS],
            ) -> [Fragment<$number, L>; ATOMS] {
                sums
            }
        }
    )*};
}
sums_as_they_are!(f32, i32);

impl FromSums<i32> for f32 {
    #[inline(always)]
    fn from_sum(sum: i32) -> f32 {
        sum as f32
    }

    #[inline(always)]
    fn from_sums<L: FragmentLayout, const ATOMS: usize>(
        sums: [Fragment<i32, L>; ATOMS],
    ) -> [Fragment<f32, L>; ATOMS] {
        let mut accumulators = [Fragment::filled(0.0); ATOMS];
        for (accumulators, sums) in accumulators.iter_mut().zip(&sums) {
            each::<L>(|v| accumulators.set(v, Self::from_sum(sums.get(v))));
        }
        accumulators
    }
}

/// An element type of C, of a bias and of a residual.
pub trait ElementC: DeviceData + Default {
    /// The type of the accumulators, in which it is computed.
    type Acc: Accumulator;

    /// The same value as an accumulator.
    fn widen(self) -> Self::Acc;

    /// The nearest element to an accumulator, ties to even.
    fn narrow(acc: Self::Acc) -> Self;
}

macro_rules! of_f32 {
    ($($float:ty),*) => {$(
        impl ElementC for $float {
            type Acc = f32;

            #[inline(always)]
            fn widen(self) -> f32 {
                Float::to_f32(self)
            }

            #[inline(always)]
            fn narrow(acc: f32) -> Self {
                <$float as Float>::from_f32(acc)
            }
        }
    )*};
}
of_f32!(f32, bf16, f16);

macro_rules! of_itself {
    ($($number:ty),*) => {$(
        impl ElementC for $number {
            type Acc = $number;

            #[inline(always)]
            fn widen(self) -> $number {
                self
            }

            #[inline(always)]
            fn narrow(acc: $number) -> $number {
                acc
            }
        }
    )*};
}
of_itself!(f64, i32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relu_is_of_every_accumulator() {
        let relu = Activation::Relu;
        assert!(f32::has(relu) && f64::has(relu) && i32::has(relu));
        assert_eq!([-2.0f32, 3.0].map(|x| x.activate(relu)), [0.0, 3.0]);
        assert_eq!([-2.0f64, 3.0].map(|x| x.activate(relu)), [0.0, 3.0]);
        assert_eq!([-2, 3].map(|x: i32| x.activate(relu)), [0, 3]);
        assert!(f32::NAN.activate(relu).is_nan() && f64::NAN.activate(relu).is_nan());
        assert!(!f64::has(Activation::Gelu) && !f64::has(Activation::GeluErf));
        assert!(!i32::has(Activation::Silu));
    }

    #[test]
    fn integers_wrap_around() {
        assert_eq!(i32::MAX.plus(1), i32::MIN);
        assert_eq!(i32::MAX.times(2), -2);
        assert_eq!(cutlet_device::fma(i32::MAX, 2, 3), 1);
    }
}
