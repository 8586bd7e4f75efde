//! Plans: a GEMM is checked and its kernel chosen once, and then it is launched again and again.

use std::fmt;

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream};

use super::operand::Operand;
use super::problem::{Problem, ProblemShape};
use super::registry::{Choice, Chosen};
use super::{Element, Gemm};
use crate::{Error, Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Result};

/// A GEMM whose kernel is chosen and whose launch is prepared. [`Gemm::plan`] makes it.
///
/// A plan holds no matrices. It runs on all matrices with the extents, orders, leading dimensions and alignments of
/// those that it was made for. A run with the addresses of an earlier run reuses its tensor maps, which saves time on the
/// host.
///
/// Calls without a plan, such as [`Gemm::run`], keep their plans in the stream, and find them there when a problem is
/// like an earlier one. A plan of your own saves the search, and can be made before the first call. It holds the kernel
/// that was chosen, whatever is [installed](crate::Tuning::install) later.
///
/// ```
/// use cutlet::{Device, Gemm, Matrix, MatrixMut};
///
/// let stream = Device::auto().stream()?;
/// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
/// let b = stream.upload(&[1.0f32, 0.0, 0.0, 2.0])?;
/// let mut c = stream.zeroed::<f32>(4)?;
/// let (a, b) = (Matrix::row_major(&a, 2, 2)?, Matrix::row_major(&b, 2, 2)?);
///
/// let gemm = Gemm::new();
/// let plan = gemm.plan(&stream, a, b, 0.0, MatrixMut::row_major(&mut c, 2, 2)?)?;
/// for _ in 0..3 {
///     let c = MatrixMut::row_major(&mut c, 2, 2)?;
///     plan.run(&gemm, &stream, 1.0, a, b, 0.0, c)?;
/// }
/// assert_eq!(stream.download(&c)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub struct Plan<T: Operand, D: DeviceData = T> {
    device: Device,
    shape: ProblemShape,
    /// None if C has no elements.
    chosen: Option<Chosen<T, D>>,
}

impl<T: Operand, D: DeviceData> fmt::Debug for Plan<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape.extents;
        write!(f, "Plan({m}×{n}×{k} on {})", self.device.name())
    }
}

/// Chooses the kernel for a problem. None if C has no elements.
pub(super) fn choose<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    choice: Choice<'_>,
) -> Result<Option<Chosen<T, D>>> {
    match problem.is_empty() {
        true => Ok(None),
        false => T::plan(stream, problem, choice).map(Some),
    }
}

impl<T: Element<D>, D: DeviceData> Plan<T, D> {
    /// The plan for a problem, with the kernel that is chosen.
    pub(super) fn new(
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        choice: Choice<'_>,
    ) -> Result<Self> {
        Ok(Plan {
            device: stream.device().clone(),
            shape: problem.shape(),
            chosen: choose(stream, problem, choice)?,
        })
    }

    /// The name of the kernel instance that multiplies. None if C has no elements, and for batches that several
    /// launches compute.
    pub fn kernel(&self) -> Option<&'static str> {
        self.chosen.as_ref()?.kernel
    }

    /// `C = activation(alpha·A·B + beta·R + bias)`, with the bias, the residual, the activation and the
    /// precision of `gemm`.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the shape of the matrices is not the plan's. `beta` counts as 0, as 1 or
    /// as any other number, and this kind of `beta` must be the plan's, too. Otherwise as [`Gemm::run`].
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's")]
    pub fn run(
        &self,
        gemm: &Gemm<'_, D>,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        self.check_device(stream)?;
        let problem = gemm.problem(stream, alpha, a, b, beta, c)?;
        self.shape.check(&problem.shape())?;
        self.launch(stream, problem)
    }

    /// [`run`](Self::run) for each of a batch of products. [`Gemm::plan_batched`] makes such plans.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, MatrixBatch, MatrixBatchMut, Order};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = stream.upload(&[1.0f32; 3 * 2 * 4])?; // 3 of 2×4
    /// let b = stream.upload(&[0.5f32; 3 * 4 * 5])?; // 3 of 4×5
    /// let mut c = stream.zeroed::<f32>(3 * 2 * 5)?;
    /// let a = MatrixBatch::packed(&a, 3, 2, 4, Order::RowMajor)?;
    /// let b = MatrixBatch::packed(&b, 3, 4, 5, Order::RowMajor)?;
    ///
    /// let gemm = Gemm::new();
    /// let products = MatrixBatchMut::packed(&mut c, 3, 2, 5, Order::RowMajor)?;
    /// let plan = gemm.plan_batched(&stream, a, b, 0.0, products)?;
    /// let products = MatrixBatchMut::packed(&mut c, 3, 2, 5, Order::RowMajor)?;
    /// plan.run_batched(&gemm, &stream, 1.0, a, b, 0.0, products)?;
    /// assert_eq!(stream.download(&c)?, [2.0; 30]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run) and [`Gemm::run_batched`].
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's")]
    pub fn run_batched(
        &self,
        gemm: &Gemm<'_, D>,
        stream: &Stream,
        alpha: T::Factor,
        a: MatrixBatch<'_, T>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<()> {
        self.check_device(stream)?;
        let problem = gemm.batch(stream, alpha, a, b, beta, c)?;
        self.shape.check(&problem.shape())?;
        self.launch(stream, problem)
    }

    /// Refuses a stream of another device than the plan's.
    fn check_device(&self, stream: &Stream) -> Result<()> {
        if stream.device() == &self.device {
            return Ok(());
        }
        Err(Error::Host(cutlet_host::Error::WrongDevice {
            what: "gemm: the plan".to_string(),
            found: self.device.name().to_string(),
            expected: stream.device().name().to_string(),
        }))
    }

    /// Launches a problem of the plan's shape.
    pub(super) fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        match &self.chosen {
            Some(chosen) => chosen.launch.launch(stream, problem),
            None => Ok(()),
        }
    }
}
