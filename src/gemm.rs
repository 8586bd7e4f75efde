//! GEMM: from the matrices of a call to the launch of a kernel.
//!
//! A [`description`] says what is multiplied, and a [`problem`] is its checked form. The [`registry`] asks the [`families`] of kernels for the element types.
//! Each estimates the times of its kernels, Hopper's by a [model with a fitted correction](choice). A kernel of a
//! [`tuning_file`] is chosen before theirs. The result is a [`Plan`], which is launched. A stream [keeps](plan_cache) what
//! was chosen. [`epilogue`] describes what is fused with the product. If a kernel cannot fuse it, a second kernel makes C
//! of the GEMM's [`partials`].

pub(crate) mod choice;
mod description;
mod element_type;
mod epilogue;
mod families;
mod gated;
mod group_sizes;
mod indexed_rows;
mod operand;
mod outer_mode;
mod partials;
mod plan;
mod plan_cache;
mod precision;
mod problem;
mod races;
mod registry;
mod tuning_file;

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use half::{bf16, f16};

pub use cutlet_kernels::gemm::epilogue::BiasAlong;
pub use description::Gemm;
pub use element_type::ElementType;
pub use epilogue::{Activation, Bias};
pub use families::{EpiloguePlan, KernelFamily};
pub use group_sizes::{GroupEnds, GroupRows};
pub use indexed_rows::{IndexedRows, RowIndices};
pub use operand::Operand;
pub(crate) use outer_mode::OuterMode;
pub use plan::Plan;
pub use precision::Precision;
pub use problem::BetaKind;
pub use tuning_file::problem_key::ProblemKey;
pub use tuning_file::recorder::recorded_problems;
pub use tuning_file::{DeviceRates, Tuning, TuningEntry};

use crate::{Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Result};

/// `C = alpha·A·B + beta·C`, on the stream's device.
///
/// A is m×k, B is k×n, C is m×n. Each is row- or column-major with any leading dimension. If `beta` is 0, C is not read
/// and may hold anything. With m = 0 or n = 0, nothing is done. With k = 0, C is scaled. A and B are read even if
/// `alpha` is 0, so that a NaN in them reaches C. C may have another type than A and B: see [`Element`]. `alpha`,
/// `beta` and the accumulators are of [`Operand::Factor`]: `f32`, but `f64` for `f64` and `i32` for `i8`. [`Gemm`]
/// fuses a bias, a residual and an activation with the product, and has the precisions of `f32` products.
///
/// # Errors
/// If extents disagree, if a matrix is on another device or bound to another stream, or if the address ranges of C and
/// of A or B overlap. If the device has no kernels for the element types, or no memory left for copies and partial
/// output.
///
/// ```
/// use cutlet::{Device, Matrix, MatrixMut, gemm};
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
/// let b = stream.upload(&[1.0f32, 0.0, 0.0, 2.0])?;
/// let mut c = stream.zeroed::<f32>(4)?;
/// gemm(
///     &stream,
///     1.0,
///     Matrix::row_major(&a, 2, 2)?,
///     Matrix::row_major(&b, 2, 2)?,
///     0.0,
///     MatrixMut::row_major(&mut c, 2, 2)?,
/// )?;
/// assert_eq!(stream.download(&c)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    alpha: T::Factor,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    beta: T::Factor,
    c: MatrixMut<'_, D>,
) -> Result<()> {
    Gemm::new(a, b, c).alpha(alpha).beta(beta).run(stream)
}

/// [`gemm`] for each of a batch of products: `C[i] = alpha·A[i]·B[i] + beta·C[i]`.
///
/// All products have the same extents, orders and leading dimensions, and the matrices of an operand lie at equal
/// distances. One launch computes all of them if C has the type that kernels write: that of A, or `i32` for `i8`. Other
/// batches take a launch for each product.
///
/// # Errors
/// As [`gemm`]. Also if the batches have different lengths.
///
/// ```
/// use cutlet::{Device, MatrixBatch, MatrixBatchMut, Order, gemm_batched};
///
/// let stream = Device::auto().stream()?;
/// let a = stream.upload(&[1.0f32; 10 * 2 * 3])?;
/// let b = stream.upload(&[2.0f32; 10 * 3 * 4])?;
/// let mut c = stream.zeroed::<f32>(10 * 2 * 4)?;
/// gemm_batched(
///     &stream,
///     1.0,
///     MatrixBatch::packed(&a, 10, 2, 3, Order::RowMajor)?,
///     MatrixBatch::packed(&b, 10, 3, 4, Order::RowMajor)?,
///     0.0,
///     MatrixBatchMut::packed(&mut c, 10, 2, 4, Order::RowMajor)?,
/// )?;
/// assert_eq!(stream.download(&c)?, [6.0; 10 * 2 * 4]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm_batched<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    alpha: T::Factor,
    a: MatrixBatch<'_, T>,
    b: MatrixBatch<'_, T>,
    beta: T::Factor,
    c: MatrixBatchMut<'_, D>,
) -> Result<()> {
    Gemm::new(a, b, c).alpha(alpha).beta(beta).run(stream)
}

/// An element type of A and B in [`gemm`], which multiplies them into a C of `D`.
///
/// | A and B | C | where |
/// |---|---|---|
/// | `f32` | `f32`, `bf16`, `f16` | on GPUs from Ampere on, by CUDA cores exactly, and by tensor cores in the lower [`Precision`]s |
/// | `bf16`, `f16` | `bf16`, `f16`, `f32` | on the tensor cores of GPUs from Ampere on. Hopper has kernels of its own |
/// | `f64` | `f64` | on the tensor cores of GPUs from Ampere on |
/// | `i8` | `i32` | on the tensor cores of GPUs from Ampere on |
///
/// [`Gemm::families`] lists what a device runs. The arithmetic is in the type of the accumulators, [`Operand::Factor`].
///
/// A C of at most four rows or columns may be computed on CUDA cores if A is row-major and B is column-major.
///
/// If C has another type than A and B, the accumulators go to scratch memory, and a second kernel makes C. On Hopper,
/// an `f32` C of 16-bit A and B needs no second kernel if all of this holds:
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
impl Element for f64 {}
impl Element<i32> for i8 {}

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
