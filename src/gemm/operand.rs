//! The element types of A and B, each with the type of the factors.

use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};

/// An element type of A and B, with the arithmetic that its products are accumulated in.
///
/// | A and B | factors and accumulators |
/// |---|---|
/// | `f32`, `bf16`, `f16`, `F8E4M3`, `F8E5M2`, `MixedF8` | `f32` |
/// | `f64` | `f64` |
/// | `i8` | `i32`, which wraps around |
pub trait Operand: sealed::Sealed {
    /// The type of alpha and beta, and of the accumulators.
    type Factor: Accumulator;
}

macro_rules! operands {
    ($($element:ty: $factor:ty, is f32 $is_f32:literal, fp8 $is_fp8:literal $(, mixed $is_mixed:literal)?;)+) => {$(
        impl sealed::Sealed for $element {
            const IS_F32: bool = $is_f32;
            const IS_FP8: bool = $is_fp8;
            $(const IS_MIXED: bool = $is_mixed;)?
        }

        impl Operand for $element {
            type Factor = $factor;
        }
    )+};
}
operands! {
    f32: f32, is f32 true, fp8 false;
    bf16: f32, is f32 false, fp8 false;
    f16: f32, is f32 false, fp8 false;
    F8E4M3: f32, is f32 false, fp8 true;
    F8E5M2: f32, is f32 false, fp8 true;
    MixedF8<F8E4M3, F8E5M2>: f32, is f32 false, fp8 true, mixed true;
    MixedF8<F8E5M2, F8E4M3>: f32, is f32 false, fp8 true, mixed true;
    f64: f64, is f32 false, fp8 false;
    i8: i32, is f32 false, fp8 false;
}

/// An element type of A and B whose rows and columns may have [scales](crate::Gemm::outer_scales): `i8` and the 8-bit
/// floats.
pub trait ScaledOperand: Operand + sealed::Scaled {}

impl sealed::Scaled for i8 {
    const IS_ALWAYS_SCALED: bool = true;

    fn to_f32(factor: i32) -> f32 {
        factor as f32
    }
}
impl ScaledOperand for i8 {}

/// An element type of A and B whose blocks may have [scales](crate::Gemm::block_scales), too: the 8-bit floats.
pub trait BlockScaledOperand: ScaledOperand {}

macro_rules! scaled_floats {
    ($($element:ty),*) => {$(
        impl sealed::Scaled for $element {
            const IS_ALWAYS_SCALED: bool = false;

            fn to_f32(factor: f32) -> f32 {
                factor
            }
        }
        impl ScaledOperand for $element {}
        impl BlockScaledOperand for $element {}
    )*};
}
scaled_floats!(F8E4M3, F8E5M2, MixedF8<F8E4M3, F8E5M2>, MixedF8<F8E5M2, F8E4M3>);

mod sealed {
    use super::{DeviceData, Operand};

    /// What an element type with scales has besides its factors.
    pub trait Scaled: Operand {
        /// Whether a C of floats always takes kernels that scale, because other kernels write sums of another type.
        const IS_ALWAYS_SCALED: bool;

        /// A factor in the arithmetic of a C of floats.
        fn to_f32(factor: Self::Factor) -> f32;
    }

    /// What an element type has besides its factors.
    pub trait Sealed: DeviceData {
        /// Whether it is `f32`, whose products have a choice of precisions.
        const IS_F32: bool;
        /// Whether it is an 8-bit float, whose sums have a choice of precisions.
        const IS_FP8: bool;
        /// Whether elements of A and of B have different formats.
        const IS_MIXED: bool = false;
    }
}
