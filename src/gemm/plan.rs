//! Plans: a GEMM that was checked and whose kernel was chosen once, to be launched again and again.

use std::fmt;

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream};

use super::problem::{Problem, ProblemShape};
use super::registry::Launch;
use super::{Element, Gemm};
use crate::matrix::on_device;
use crate::{Matrix, MatrixMut, Result};

/// A GEMM whose kernel was chosen, and whose launch was prepared. Made by [`Gemm::plan`].
///
/// A plan holds no matrices. It runs on any that have the extents, orders, leading dimensions and alignments of those that it
/// was made for. A run with the addresses of the run before reuses its tensor maps, which makes it the cheapest for the host.
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
pub struct Plan<T: DeviceData, D: DeviceData = T> {
    device: Device,
    shape: ProblemShape,
    /// None where C has no elements.
    launch: Option<Box<dyn Launch<T, D>>>,
}

impl<T: DeviceData, D: DeviceData> fmt::Debug for Plan<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape.extents;
        write!(f, "Plan({m}×{n}×{k} on {})", self.device.name())
    }
}

impl<T: Element<D>, D: DeviceData> Plan<T, D> {
    /// The plan for a problem, by the kernel of this name or by the fastest.
    pub(super) fn new(
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        kernel: Option<&str>,
    ) -> Result<Self> {
        let launch = match problem.is_empty() {
            true => None,
            false => Some(T::plan(stream, problem, kernel)?),
        };
        Ok(Plan {
            device: stream.device().clone(),
            shape: problem.shape(),
            launch,
        })
    }

    /// `C = activation(alpha·A·B + beta·R + bias)`, with the bias, the residual and the activation of `gemm`.
    ///
    /// # Errors
    /// [`Error::Plan`] if the matrices are not of the shape that the plan was made for, or `beta` is another one of 0, 1 and
    /// other numbers; else as [`Gemm::run`].
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's")]
    pub fn run(
        &self,
        gemm: &Gemm<'_, D>,
        stream: &Stream,
        alpha: f32,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: f32,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let problem = Problem::new(&self.device, alpha, a, b, beta, c, gemm.epilogue)?;
        on_device(
            "gemm",
            &self.device,
            &[("the stream", Some(stream.device()))],
        )?;
        self.shape.check(&problem.shape())?;
        self.launch(stream, problem)
    }

    /// Launches a problem of the plan's shape.
    pub(super) fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        match &self.launch {
            Some(launch) => launch.launch(stream, problem),
            None => Ok(()),
        }
    }
}
