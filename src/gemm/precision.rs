//! The precision of products of f32.

use std::fmt;

use cutlet_kernels::gemm::simt::instances::F32;

use super::operand::Operand;
use crate::{Error, Result};

/// How exactly a GEMM multiplies operands of `f32`, or adds products of 8-bit floats. It is an option of
/// [`Gemm`](crate::Gemm::precision).
///
/// Operands of other types are always multiplied exactly. Sums are in f32 but for
/// [`FastAccumulation`](Self::FastAccumulation).
///
/// | precision | bits of an operand that count | error of C, for random matrices |
/// |---|---|---|
/// | [`Exact`](Self::Exact) | all 24 | that of f32 sums |
/// | [`Tf32`](Self::Tf32) | 11 | about 3·10⁻⁴ of C's entries, for any k |
/// | [`Tf32x3`](Self::Tf32x3) | about 22, and all 24 for k below 128 | about that of f32 sums |
///
/// | precision of 8-bit floats | bits of sums that count |
/// |---|---|
/// | [`Exact`](Self::Exact) | of the products of 128 of k, 14; of their sum, all 24 |
/// | [`FastAccumulation`](Self::FastAccumulation) | 14 |
///
/// A precision is a lower bound. Where no tensor cores or no kernels for them are there, products are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Operands are multiplied as they are.
    #[default]
    Exact,
    /// Operands are rounded to tf32, which has 10 bits of mantissa and f32's exponents. The error of an operand is at
    /// most 2⁻¹¹ of it.
    Tf32,
    /// An operand is the sum of two numbers of tf32, and a product is the sum of three products of them. The product of
    /// the two small numbers is left out. The error of a product is at most about 2⁻²⁰ of it.
    ///
    /// The error of C is no larger than that of one multiply-add in f32 after the other on the same inputs, if more than a
    /// few products make up each sum. So with k below 128, products are exact, and by the kernels of f32 (the feature
    /// `simt`), unless another kernel is [named](crate::Gemm::instance). From there on, inputs of a wide range, as normal
    /// deviates times 2⁻³⁰ to 2³⁰, have up to 1.5 times the error of f32, and less than f32 from about k = 1000 on.
    ///
    /// It takes three times the products of [`Tf32`](Self::Tf32). Some operands are no such sum: infinities, NaN, those
    /// from 2¹¹⁴ (2·10³⁴) on, and those below 2⁻¹⁰² (2·10⁻³¹) but 0, because the second number is some 2⁻¹¹ of the
    /// first.
    ///
    /// | instruction | such operands |
    /// |---|---|
    /// | `wgmma`, on Hopper | are multiplied in f32, with the 31 others beside them along k, which takes longer |
    /// | `mma.sync`, since Ampere | count with fewer bits below 2⁻¹⁰⁴, down to those of [`Tf32`](Self::Tf32); may make entries of C NaN if they are infinite, or above 3.4·10³⁸ |
    ///
    /// Hopper has both. Its `wgmma` multiplies single products into a C of f32, where that is faster.
    Tf32x3,
    /// Products of 8-bit floats are added as Hopper's tensor cores add them: sums keep 14 bits, and the error grows with
    /// k. PyTorch calls it `use_fast_accum`.
    FastAccumulation,
}

/// From so many k on, operands are multiplied by three products of tf32. Each of these products has an error of 10⁻⁷. In
/// f32, the error of a sum begins with less and grows with k. Of normal deviates it is the larger one from k = 48 on, and
/// about 1.5 times as large at 128.
const LEAST_K_OF_TF32X3: usize = 128;

impl Precision {
    /// The precision that kernels for so many k are chosen by, which a [`ProblemKey`](crate::ProblemKey) has. A build
    /// without kernels of f32 has three products of tf32 for any k.
    ///
    /// ```
    /// use cutlet::Precision;
    /// assert_eq!(Precision::Tf32.for_k(64), Precision::Tf32);
    /// assert_eq!(Precision::Tf32x3.for_k(128), Precision::Tf32x3);
    /// ```
    pub fn for_k(self, k: usize) -> Self {
        match self {
            Precision::Tf32x3 if k < LEAST_K_OF_TF32X3 && !F32.is_empty() => Precision::Exact,
            Precision::Exact
            | Precision::Tf32
            | Precision::Tf32x3
            | Precision::FastAccumulation => self,
        }
    }

    /// Refuses a precision of other operands.
    pub(super) fn check<T: Operand>(self) -> Result<()> {
        let found = match self {
            Precision::Exact => return Ok(()),
            Precision::Tf32 | Precision::Tf32x3 if T::IS_F32 => return Ok(()),
            Precision::FastAccumulation if T::IS_FP8 => return Ok(()),
            Precision::Tf32 | Precision::Tf32x3 => {
                "it is for operands of f32 alone, and others are multiplied exactly; leave it out"
            }
            Precision::FastAccumulation => {
                "it is for operands of 8-bit floats alone, and sums of others are in f32; leave it out"
            }
        };
        Err(Error::Arithmetic {
            asked: format!("the precision {self}"),
            found,
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Precision::Exact => "exact",
            Precision::Tf32 => "tf32",
            Precision::Tf32x3 => "3xtf32",
            Precision::FastAccumulation => "fast-accumulation",
        })
    }
}
