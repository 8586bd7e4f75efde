//! Plans: a GEMM is checked and its kernel chosen once, and then it is launched again and again.

use std::fmt;

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream};

use super::operand::Operand;
use super::problem::{Problem, ProblemShape};
use super::registry::{Choice, LaunchPlan};
use super::{Element, Gemm};
use crate::{Error, Result};

/// A GEMM whose kernel is chosen and whose launch is prepared. [`Gemm::plan`] makes it.
///
/// A plan holds no tensors. It runs on all tensors with the layouts and alignments of those that it was made for. A run
/// with the addresses of an earlier run reuses its tensor maps, which saves time on the host.
///
/// Calls without a plan, such as [`Gemm::run`], keep their plans in the stream, and find them there when a problem is
/// like an earlier one. A plan of your own saves the search, and can be made before the first call. It holds the kernel
/// that was chosen, whatever is [installed](crate::Tuning::install) later.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Gemm};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let b = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 0.0, 2.0], [2, 2])?;
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
///
/// let mut gemm = Gemm::new(&a, &b, &mut c);
/// let plan = gemm.plan(&stream)?;
/// for _ in 0..3 {
///     plan.run(&stream, &mut gemm)?;
/// }
/// assert_eq!(c.download(&stream)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub struct Plan<T: Operand, D: DeviceData = T> {
    device: Device,
    shape: ProblemShape,
    /// None if C has no elements.
    chosen: Option<LaunchPlan<T, D>>,
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
) -> Result<Option<LaunchPlan<T, D>>> {
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

    /// Enqueues a GEMM of the plan's shape. Its [`instance`](Gemm::instance) plays no part.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the shape of the matrices is not the plan's. `beta` counts as 0, as 1 or
    /// as any other number, and this kind of `beta` must be the plan's, too. Otherwise as [`Gemm::run`].
    pub fn run(&self, stream: &Stream, gemm: &mut Gemm<'_, T, D>) -> Result<()> {
        self.check_device(stream)?;
        let problem = Problem::new(stream, gemm)?;
        self.shape.check(&problem.shape())?;
        match &self.chosen {
            Some(chosen) => chosen.launch(stream, problem),
            None => Ok(()),
        }
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
}
