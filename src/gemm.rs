//! GEMM: from the matrices of a call to the launch of a kernel.
//!
//! The steps, each in its place: [`gemm`] makes a [`problem`], which is checked; the [`registry`] asks the [`families`] of
//! kernels for the element types, each of which [tunes](tune) its choice; and the [`Plan`] that comes out is launched. What is
//! fused with the product is said in [`epilogue`]. Where a kernel cannot fuse it, a second kernel makes C of the GEMM's
//! [`partials`].

mod epilogue;
mod families;
mod partials;
mod plan;
mod problem;
mod registry;
mod tune;

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use half::{bf16, f16};

pub use epilogue::{Activation, Bias};
pub use families::EpiloguePlan;
pub use plan::Plan;

use crate::{Matrix, MatrixMut, Order, Result};
use epilogue::EpilogueArgs;
use problem::Problem;
use registry::{Family, Fused, Launch};

/// `C = alpha·A·B + beta·C`, on the stream's device.
///
/// A is m×k, B is k×n, C is m×n, each row- or column-major with any leading dimension. Where `beta`
/// is 0, C is not read, so that it may hold anything. A problem with m = 0 or n = 0 does nothing;
/// one with k = 0 scales C. A and B are read whatever `alpha` is, so that a NaN in them reaches C. Sums are in f32, and C
/// may be of another type than A and B: see [`Element`]. [`Gemm`] fuses a bias, a residual and an activation with the
/// product.
///
/// # Errors
/// If extents disagree, the matrices are not on the stream's device, A or B has elements between the first and the last of
/// C's, or the device has no kernels for their elements, or no memory left for copies and sums.
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
    alpha: f32,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    beta: f32,
    c: MatrixMut<'_, D>,
) -> Result<()> {
    Gemm::new().run(stream, alpha, a, b, beta, c)
}

/// [`gemm`] with options: `C = activation(alpha·A·B + beta·R + bias)`, where R is a residual, or C
/// as it was.
///
/// What is added is of C's element type, `D`; the arithmetic is in f32, and C is rounded once. Only
/// [`Activation::Gelu`] is less exact.
///
/// The kernel that multiplies does all of it, on Hopper's tensor cores, where
///
/// - A and B lie along k,
/// - C is of their type and row-major, and its rows take a multiple of 16 bytes and start at one,
/// - a bias for columns starts at a multiple of two elements,
/// - a residual is row-major, and its rows start at multiples of two elements,
///
/// or the same with rows and columns exchanged. Elsewhere, and where that is faster, as for few tiles with a long k, a
/// second kernel does it, in another pass over C.
///
/// A linear layer with GELU, in bf16:
///
/// ```
/// use cutlet::{Activation, Bias, Device, Gemm, Matrix, MatrixMut};
/// use half::bf16;
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let (batch, inputs, outputs) = (3, 8, 16);
/// let x = stream.upload(&vec![bf16::from_f32(0.5); batch * inputs])?;
/// let weights = stream.upload(&vec![bf16::from_f32(0.25); outputs * inputs])?;
/// let bias = stream.upload(&vec![bf16::from_f32(2.0); outputs])?;
/// let mut y = stream.zeroed::<bf16>(batch * outputs)?;
/// Gemm::new()
///     .bias(Bias::columns(&bias))
///     .activation(Activation::Gelu)
///     .run(
///         &stream,
///         1.0,
///         Matrix::row_major(&x, batch, inputs)?,
///         // One row of weights for each output: the transposed matrix, column-major.
///         Matrix::row_major(&weights, outputs, inputs)?.transposed(),
///         0.0,
///         MatrixMut::row_major(&mut y, batch, outputs)?,
///     )?;
/// assert_eq!(stream.download(&y)?[0], bf16::from_f32(2.9963627)); // gelu(1 + 2)
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Gemm<'a, D: DeviceData> {
    instance: Option<&'a str>,
    epilogue: EpilogueArgs<'a, D>,
}

impl<'a, D: DeviceData> Gemm<'a, D> {
    /// As [`gemm`] does it.
    pub fn new() -> Self {
        Gemm {
            instance: None,
            epilogue: EpilogueArgs::default(),
        }
    }

    /// With the kernel instance of this name, one of [`instances`](Gemm::instances) or, where something is fused and C is
    /// of A's type, of [`fused_instances`](Gemm::fused_instances), instead of the one that the problem's shape suggests: to
    /// compare them.
    ///
    /// A packed matrix of one row counts as row-major there, one of one column as column-major.
    pub fn instance(self, name: &'a str) -> Self {
        Gemm {
            instance: Some(name),
            ..self
        }
    }

    /// With a number added to each row or column of the product.
    pub fn bias(mut self, bias: Bias<'a, D>) -> Self {
        self.epilogue.bias = Some(bias);
        self
    }

    /// With `beta` times this matrix, of C's extents and any order, added to the product instead of
    /// `beta` times C as it was. Where `beta` is 0, it is not read.
    pub fn residual(mut self, residual: Matrix<'a, D>) -> Self {
        self.epilogue.residual = Some(residual);
        self
    }

    /// With this function applied to everything else.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.epilogue.activation = Some(activation);
        self
    }

    /// `C = activation(alpha·A·B + beta·R + bias)`: see [`gemm`].
    ///
    /// # Errors
    /// As [`gemm`]; if the bias has not as many elements as C has rows or columns, or the residual
    /// other extents than C; if C overlaps one of them; and if there is no instance of the name
    /// asked for, or it is one for another problem.
    pub fn run<T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: f32,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: f32,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let problem = Problem::new(stream.device(), alpha, a, b, beta, c, self.epilogue)?;
        Plan::new(stream, &problem, self.instance)?.launch(stream, problem)
    }

    /// A [`Plan`] for matrices like these: their elements are neither read nor written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn plan<T: Element<D>>(
        &self,
        stream: &Stream,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: f32,
        c: MatrixMut<'_, D>,
    ) -> Result<Plan<T, D>> {
        let problem = Problem::new(stream.device(), 1.0, a, b, beta, c, self.epilogue)?;
        Plan::new(stream, &problem, self.instance)
    }
}

/// The lists do not depend on C's elements: `f32` stands for any, so that none need be named.
impl Gemm<'_, f32> {
    /// The names of the kernel instances that multiply matrices of `T` in these orders into a
    /// row-major one of `T`, without a bias, a residual or an activation.
    pub fn instances<T: Element>(a: Order, b: Order) -> Vec<&'static str> {
        candidates::<T>(a, b, Fused::Nothing)
    }

    /// The names of those that fuse them, with this activation, where C is of `T`, too.
    pub fn fused_instances<T: Element>(
        a: Order,
        b: Order,
        activation: Option<Activation>,
    ) -> Vec<&'static str> {
        candidates::<T>(a, b, Fused::Something(activation))
    }
}

/// The names of all families' kernels for these orders.
fn candidates<T: Element>(a: Order, b: Order, fused: Fused) -> Vec<&'static str> {
    let families = T::families().iter();
    let names = families.flat_map(|family| family.candidates(a, b, fused));
    names.collect()
}

impl<D: DeviceData> Default for Gemm<'_, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: DeviceData> Clone for Gemm<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: DeviceData> Copy for Gemm<'_, D> {}

/// An element type of A and B in [`gemm`], which multiplies them into a C of `D`.
///
/// | A and B | C | where |
/// |---|---|---|
/// | `f32` | `f32`, `bf16`, `f16` | on GPUs from Ampere on, by one kernel with tiles of 128×128, made for large problems |
/// | `bf16`, `f16` | `bf16`, `f16`, `f32` | on Hopper's tensor cores |
///
/// A C of another type than A and B takes a second pass over it: the sums, in f32, are in scratch memory before. Not so an
/// `f32` C of 16-bit A and B with `beta = 0` or `beta = 1`, as gradients are added up, and nothing fused, where there are
/// tiles enough that none's steps are split, rows of an even number of elements, and 8 bytes divide where they start (of
/// a column-major C, its columns). A GPU that adds to such a C in place takes its subnormal numbers for 0.
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

mod sealed {
    use super::{DeviceData, Family, Launch, Problem, Result, Stream, registry};

    /// The families of kernels that multiply matrices of this type into a C of `D`.
    pub trait Families<D: DeviceData>: DeviceData {
        fn families() -> &'static [&'static dyn Family<Self, D>];

        fn plan(
            stream: &Stream,
            problem: &Problem<'_, Self, D>,
            kernel: Option<&str>,
        ) -> Result<Box<dyn Launch<Self, D>>> {
            registry::plan(Self::families(), stream, problem, kernel)
        }
    }
}
