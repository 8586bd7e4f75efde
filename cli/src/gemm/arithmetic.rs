//! The arithmetic of a GEMM's element types: their random inputs, their factors, and the reference of an entry.

use std::iter;

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};

use crate::measure::check::Nearest;
use crate::normal::{generator, normal, normal_f64};
use cutlet_cli::cublas;

/// An element type that cutlet and cuBLASLt store and that can be checked.
pub trait Stored: cublas::Element + Nearest {
    /// Random elements: N(0, 1) for floats, −128 to 127 for integers.
    fn random(seed: u64) -> impl Iterator<Item = Self>;
}

macro_rules! normal {
    ($($float:ty),*) => {$(
        impl Stored for $float {
            fn random(seed: u64) -> impl Iterator<Item = Self> {
                normal(seed).map(|x| Self::nearest(x.into()))
            }
        }
    )*};
}
normal!(f32, bf16, f16, F8E4M3, F8E5M2);

impl Stored for f64 {
    fn random(seed: u64) -> impl Iterator<Item = Self> {
        normal_f64(seed)
    }
}

macro_rules! uniform {
    ($($integer:ty),*) => {$(
        impl Stored for $integer {
            fn random(seed: u64) -> impl Iterator<Item = Self> {
                let mut random = generator(seed);
                iter::repeat_with(move || random.i8(..).into())
            }
        }
    )*};
}
uniform!(i8, i32);

/// An element type of A and B, for a C of `D`.
pub trait Element<D: Stored>: cutlet::Element<D, Factor: Factor> + Stored {}
impl<T: cutlet::Element<D, Factor: Factor> + Stored, D: Stored> Element<D> for T {}

/// The type of alpha and beta, in which the product is accumulated.
pub trait Factor: Accumulator {
    /// The factor of this value, or why there is none.
    fn of(value: f64) -> Result<Self, String>;

    /// Its value.
    fn value(self) -> f64;

    /// The reference of `alpha·product + beta·old + bias`, whose `product` is exact, or as exact as f64.
    fn reference(alpha: Self, product: f64, beta: Self, old: f64, bias: f64) -> f64;

    /// What the sum may be besides the reference because a term of it is infinite in this type.
    fn overflows(alpha: Self, product: f64, beta: Self, old: f64) -> Vec<f64>;
}

macro_rules! float {
    ($($float:ty),*) => {$(
        impl Factor for $float {
            fn of(value: f64) -> Result<Self, String> {
                let factor = value as $float;
                match factor.is_finite() && (factor != 0.0 || value == 0.0) {
                    true => Ok(factor),
                    false => Err(format!(
                        "the factor {value:?} was asked for, but factors of these types are 0, or numbers from {:e} to \
                         {:e} and their negatives",
                        <$float>::MIN_POSITIVE,
                        <$float>::MAX
                    )),
                }
            }

            fn value(self) -> f64 {
                self.into()
            }

            fn reference(alpha: Self, product: f64, beta: Self, old: f64, bias: f64) -> f64 {
                let old = if beta == 0.0 { 0.0 } else { beta.value() * old };
                alpha.value() * product + old + bias
            }

            fn overflows(alpha: Self, product: f64, beta: Self, old: f64) -> Vec<f64> {
                let old = if beta == 0.0 { 0.0 } else { beta.value() * old };
                let mut sums: Vec<f64> = [alpha.value() * product, old]
                    .iter()
                    .map(|&term| f64::from(term as $float))
                    .filter(|term| term.is_infinite())
                    .collect();
                if let [one, other] = sums[..]
                    && one != other
                {
                    sums.push(f64::NAN);
                }
                sums
            }
        }
    )*};
}
float!(f32, f64);

impl Factor for i32 {
    fn of(value: f64) -> Result<Self, String> {
        let factor = value as i32;
        match f64::from(factor) == value {
            true => Ok(factor),
            false => Err(format!(
                "the factor {value:?} was asked for, but factors of i8 are whole numbers from {} to {}",
                i32::MIN,
                i32::MAX
            )),
        }
    }

    fn value(self) -> f64 {
        self.into()
    }

    fn reference(alpha: Self, product: f64, beta: Self, old: f64, bias: f64) -> f64 {
        let [product, old, bias] = [product, old, bias].map(|whole| whole as i128);
        let sum = i128::from(alpha) * product + i128::from(beta) * old + bias;
        // The arithmetic is modulo 2³².
        f64::from(sum as i32)
    }

    fn overflows(_: Self, _: f64, _: Self, _: f64) -> Vec<f64> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_integers_are_whole() {
        assert_eq!(i32::of(-3.0), Ok(-3));
        for wrong in [0.5, 2147483648.0, f64::NAN, f64::INFINITY] {
            assert!(i32::of(wrong).unwrap_err().contains("whole numbers"));
        }
        assert_eq!(f32::of(0.1), Ok(0.1));
    }

    #[test]
    fn factors_of_floats_are_finite_and_not_lost() {
        for wrong in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e39, -1e39, 1e-60] {
            assert!(
                f32::of(wrong)
                    .unwrap_err()
                    .contains("1.1754944e-38 to 3.4028235e38")
            );
        }
        assert_eq!(f64::of(1e39), Ok(1e39));
        assert!(f64::of(f64::NAN).is_err());
        assert_eq!([f32::of(0.0), f32::of(-0.0)], [Ok(0.0), Ok(0.0)]);
    }

    #[test]
    fn terms_overflow_in_the_type_of_the_factors() {
        let infinity = f64::INFINITY;
        assert_eq!(f32::overflows(1e38, 10.0, 0.0, f64::NAN), [infinity]);
        assert_eq!(f32::overflows(1.0, 10.0, -1e38, 10.0), [-infinity]);
        assert_eq!(f32::overflows(1e38, 10.0, 1e38, 10.0), [infinity; 2]);
        let both = f32::overflows(-1e38, 10.0, 1e38, 10.0);
        assert_eq!(both[..2], [-infinity, infinity]);
        assert!(both[2].is_nan());
        assert!(f32::overflows(1e38, 1.0, 0.0, f64::NAN).is_empty());
        assert!(f64::overflows(1e38, 10.0, 0.0, 0.0).is_empty());
    }

    #[test]
    fn references_of_integers_wrap_around() {
        assert_eq!(i32::reference(1 << 20, 4096.0, 1, 5.0, 1.0), 6.0);
        assert_eq!(i32::reference(2, 3.0, -1, 4.0, 5.0), 7.0);
        assert_eq!(f64::reference(2.0, 3.0, 0.0, f64::NAN, 5.0), 11.0);
    }

    #[test]
    fn integers_are_uniform_and_wide_floats_have_all_bits() {
        let mut seen = [false; 256];
        for x in i8::random(1).take(1 << 12) {
            seen[usize::from(x.cast_unsigned())] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
        assert!(f64::random(1).take(100).all(|x| f64::from(x as f32) != x));
    }
}
