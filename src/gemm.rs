//! GEMM: from the matrices of a call to the launch of a kernel.
//!
//! A [`description`] says what is multiplied, and a [`problem`] is its checked form. The [`registry`] asks the [`families`] of kernels for the element types.
//! Each estimates the times of its kernels, Hopper's by a [model with a fitted correction](choice). A kernel of a
//! [`tuning_file`] is chosen before theirs. The result is a [`Plan`], which is launched. A stream [keeps](plan_cache) what
//! was chosen. [`epilogue`] describes what is fused with the product. If a kernel cannot fuse it, a second kernel makes C
//! of the GEMM's [`partials`].

mod block_scales;
pub(crate) mod choice;
mod description;
mod element_type;
mod epilogue;
mod families;
mod gated;
mod gathered;
mod group_sizes;
mod indexed_rows;
mod linear;
mod normalised;
mod operand;
mod outer_mode;
mod outer_scales;
mod partials;
mod plan;
mod plan_cache;
mod precision;
mod problem;
mod quantized;
mod races;
mod registry;
mod scales;
mod tuning_file;

use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_host::Stream;
use half::{bf16, f16};

pub use cutlet_kernels::gemm::epilogue::BiasAlong;
pub use description::Gemm;
pub(crate) use description::Operands;
pub use element_type::ElementType;
pub use epilogue::{Activation, Bias};
pub use families::{EpiloguePlan, KernelFamily};
pub use group_sizes::{GroupEnds, GroupRows};
pub use indexed_rows::{IndexedRows, RowIndices};
pub use linear::Linear;
pub use operand::{BlockScaledOperand, Operand, ScaledOperand};
pub(crate) use outer_mode::OuterMode;
pub use plan::Plan;
pub use precision::Precision;
pub use problem::BetaKind;
pub use scales::ScalesKind;
pub use tuning_file::problem_key::ProblemKey;
pub use tuning_file::recorder::recorded_problems;
pub use tuning_file::{DeviceRates, Tuning, TuningEntry};

use crate::{IntoTensor, IntoTensorMut, Result};

/// `C = alpha·A·B + beta·C`, on the stream's device.
///
/// A is m×k, B is k×n, C is m×n: tensors of two modes, of which one is contiguous and the other has any stride. If
/// `beta` is 0, C is not read and may hold anything. A and B are read even if `alpha` is 0, so that a NaN in them
/// reaches C. C may have another type than A and B: see [`Element`]. `alpha`, `beta` and the accumulators are of
/// [`Operand::Factor`]: `f32`, but `f64` for `f64` and `i32` for `i8`. [`Gemm`] fuses a bias, a residual and an
/// activation with the product, and has the precisions of `f32` products.
///
/// Modes behind the first two are a batch: A is (M, K, L), B is (K, N, L) and C is (M, N, L), where L is one mode, a
/// tuple or several modes. There is a product for each of its coordinates. An A or a B without L is the same in all
/// products. One launch computes all of them if L is a single stride in each operand and C has the type that kernels
/// write: that of A, `i32` for `i8`, or `bf16` for 8-bit floats. For another C, each product takes a launch.
///
/// No tensor is empty, but a [`Matrix`](crate::Matrix) may be. With m = 0 or n = 0, nothing is done. With k = 0, C is
/// scaled.
///
/// # Errors
/// - Kernels read no tensor of the layout: neither rows nor columns are contiguous, or L has several strides.
///   [`contract`](fn@crate::contract) multiplies tensors of any layout.
/// - Extents disagree.
/// - An operand is on another device or bound to another stream. The address ranges of C and of A or B overlap.
/// - The device has no kernels for the element types, or no memory left for copies and partial output.
///
/// ```
/// use cutlet::{Device, DeviceTensor, gemm};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let b = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 0.0, 2.0], [2, 2])?;
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// gemm(&stream, 1.0, &a, &b, 0.0, &mut c)?;
/// assert_eq!(c.download(&stream)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
///
/// A batch, of which B is the same in all products:
///
/// ```
/// use cutlet::{Device, DeviceTensor, gemm, layout};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32; 10 * 2 * 3], layout!((2, 3, 10):(3, 1, 6)))?;
/// let b = DeviceTensor::upload(&stream, &[2.0f32; 3 * 4], [3, 4])?;
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 4, 10):(4, 1, 8)))?;
/// gemm(&stream, 1.0, &a, &b, 0.0, &mut c)?;
/// assert_eq!(c.download(&stream)?, [6.0; 10 * 2 * 4]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm<'a, T: Element<D>, D: DeviceData>(
    stream: &Stream,
    alpha: T::Factor,
    a: impl IntoTensor<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
    beta: T::Factor,
    c: impl IntoTensorMut<'a, Element = D>,
) -> Result<()> {
    Gemm::new(a, b, c).alpha(alpha).beta(beta).run(stream)
}

/// An element type of A and B in [`gemm`], which multiplies them into a C of `D`.
///
/// | A and B | C | where |
/// |---|---|---|
/// | `f32` | `f32`, `bf16`, `f16` | on GPUs from Ampere on, by CUDA cores exactly, and by tensor cores in the lower [`Precision`]s |
/// | `bf16`, `f16` | `bf16`, `f16`, `f32` | on the tensor cores of GPUs from Ampere on. Hopper has kernels of its own |
/// | [`F8E4M3`](crate::F8E4M3), [`F8E5M2`](crate::F8E5M2), [one and the other](Gemm::mixed) | `bf16`, `f16`, `f32` | on Hopper's tensor cores |
/// | [`F8E4M3`](crate::F8E4M3) | `F8E4M3`, [quantised](Gemm::quantized) | on Hopper's tensor cores |
/// | `f64` | `f64` | on the tensor cores of GPUs from Ampere on |
/// | `i8` | `i32`, `bf16`, `f16`, `f32` | on the tensor cores of GPUs from Ampere on. Hopper has kernels of its own |
///
/// [`Gemm::families`] lists what a device runs. The arithmetic is in the type of the accumulators, [`Operand::Factor`].
///
/// A C of at most four rows or columns may be computed on CUDA cores if A is row-major and B is column-major.
///
/// If C has another type than A and B, the accumulators go to scratch memory, and a second kernel makes C, but for an
/// `i32` C of `i8` and a `bf16` C of 8-bit floats.
///
/// On Hopper, a `bf16` or `f16` C of `i8`, or a `bf16` C of 8-bit floats, needs no second kernel if all of this holds:
///
/// - `beta` is 0, and nothing but [scales](Gemm::outer_scales) is fused.
/// - C's rows start at multiples of 16 bytes, and have a multiple of 16 bytes.
///
/// On Hopper, an `f32` C of 16-bit A and B needs no second kernel if all of this holds:
///
/// - `beta` is 0, or 1 as for gradients that are accumulated.
/// - Nothing is fused, and k is not split.
/// - C's rows have an even number of elements and start at multiples of 8 bytes (of a column-major C, its columns).
///
/// A GPU that adds to such a C in place treats subnormal numbers in it as 0.
pub trait Element<D: DeviceData = Self>: sealed::Families<D> {}
impl Element for f32 {}
impl Element<bf16> for f32 {}
impl Element<f16> for f32 {}
impl Element for bf16 {}
impl Element<f16> for bf16 {}
impl Element<f32> for bf16 {}
impl Element for f16 {}
impl Element<bf16> for f16 {}
impl Element<f32> for f16 {}
impl Element<bf16> for F8E4M3 {}
impl Element<f16> for F8E4M3 {}
impl Element<f32> for F8E4M3 {}
impl Element for F8E4M3 {}
impl Element<bf16> for F8E5M2 {}
impl Element<f16> for F8E5M2 {}
impl Element<f32> for F8E5M2 {}
impl Element<bf16> for MixedF8<F8E4M3, F8E5M2> {}
impl Element<f16> for MixedF8<F8E4M3, F8E5M2> {}
impl Element<f32> for MixedF8<F8E4M3, F8E5M2> {}
impl Element<bf16> for MixedF8<F8E5M2, F8E4M3> {}
impl Element<f16> for MixedF8<F8E5M2, F8E4M3> {}
impl Element<f32> for MixedF8<F8E5M2, F8E4M3> {}
impl Element for f64 {}
impl Element<i32> for i8 {}
impl Element<bf16> for i8 {}
impl Element<f16> for i8 {}
impl Element<f32> for i8 {}

mod sealed {
    use super::element_type::ElementType;
    use super::problem::Problem;
    use super::registry::{self, Choice, Family, LaunchPlan};
    use super::{DeviceData, Operand, Result, Stream};

    /// The families of kernels that multiply matrices of this type into a C of `D`.
    pub trait Families<D: DeviceData>: Operand {
        fn families() -> &'static [&'static dyn Family<Self, D>];

        /// This type, and `D`.
        const TYPES: [ElementType; 2];

        fn plan(
            stream: &Stream,
            problem: &Problem<'_, Self, D>,
            choice: Choice<'_>,
        ) -> Result<LaunchPlan<Self, D>> {
            registry::plan(Self::families(), Self::TYPES, stream, problem, choice)
        }
    }
}
