//! The element types of A and B, each with the type of the factors.

use cutlet_device::DeviceData;
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};

/// An element type of A and B, with the arithmetic that its products are accumulated in.
///
/// | A and B | factors and accumulators |
/// |---|---|
/// | `f32`, `bf16`, `f16` | `f32` |
/// | `f64` | `f64` |
/// | `i8` | `i32`, which wraps around |
pub trait Operand: sealed::Sealed {
    /// The type of alpha and beta, and of the accumulators.
    type Factor: Accumulator;
}

macro_rules! operands {
    ($($element:ty: $factor:ty, $is_f32:literal;)+) => {$(
        impl sealed::Sealed for $element {
            const IS_F32: bool = $is_f32;
        }

        impl Operand for $element {
            type Factor = $factor;
        }
    )+};
}
operands! {
    f32: f32, true;
    bf16: f32, false;
    f16: f32, false;
    f64: f64, false;
    i8: i32, false;
}

mod sealed {
    use super::DeviceData;

    /// What an element type has besides its factors.
    pub trait Sealed: DeviceData {
        /// Whether it is `f32`, whose products have a choice of precisions.
        const IS_F32: bool;
    }
}
