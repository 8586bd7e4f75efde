//! The registry: the interface of kernel families, and the choice of a family for a problem.

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream};

use super::Activation;
use super::operand::Operand;
use super::precision::Precision;
use super::problem::{Problem, ProblemShape};
use crate::{Error, Order, Result};

/// A family of kernels that multiplies matrices of `T` into a C of `D`.
pub trait Family<T: Operand, D: DeviceData>: Sync {
    /// The family's name, as in `CUTLET_FAMILIES`.
    fn name(&self) -> &'static str;

    /// Refuses a device that cannot run the family's kernels.
    fn supports(&self, device: &Device) -> Result<()>;

    /// The names of the family's kernels for operands of these orders, which are at least this precise.
    fn candidates(
        &self,
        a: Order,
        b: Order,
        precision: Precision,
        fused: Fused,
    ) -> Vec<&'static str>;

    /// Plans the problem: with the kernel of this name, or with the one that it estimates to be the fastest. None if it
    /// has no kernel for the problem, or none of the problem's precision.
    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        kernel: Option<&str>,
    ) -> Result<Option<Planned<T, D>>>;
}

/// What the kernels in a list of candidates fuse with the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fused {
    /// Nothing.
    Nothing,
    /// A bias or a residual, and this activation.
    Something(Option<Activation>),
}

/// A family's plan for a problem.
pub struct Planned<T: Operand, D: DeviceData> {
    /// The estimated time, in clocks of a multiprocessor.
    pub clocks: f64,
    /// The launches.
    pub launch: Box<dyn Launch<T, D>>,
}

/// The launches that compute a problem, chosen and prepared.
pub trait Launch<T: Operand, D: DeviceData>: Send + Sync {
    /// Enqueues the launches for a problem of the planned shape.
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()>;
}

/// Plans a problem with the family that estimates the least time.
pub fn plan<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Box<dyn Launch<T, D>>> {
    let mut fastest: Option<Planned<T, D>> = None;
    let (mut refusal, mut refused) = (None, 0);
    for family in families {
        if let Err(error) = family.supports(stream.device()) {
            refusal = Some(error);
            refused += 1;
            continue;
        }
        let Some(planned) = family.plan(stream, problem, kernel)? else {
            continue;
        };
        if fastest.as_ref().is_none_or(|it| planned.clocks < it.clocks) {
            fastest = Some(planned);
        }
    }
    match (fastest, refusal) {
        (Some(planned), _) => Ok(planned.launch),
        (None, Some(refusal)) if refused == families.len() => Err(refusal),
        (None, _) if !problem.rows.are_own() && kernel.is_none() => Err(Error::Arithmetic {
            asked: "a product with rows of a table".to_string(),
            found: "no kernel has it for these element types; use a table of A's type, of i32 for i8",
        }),
        (None, _) if problem.groups.have_sizes() => Err(Error::Arithmetic {
            asked: "a product of groups whose rows are known on the device".to_string(),
            found: "no kernel has it for these element types; use a C of A's type, of i32 for i8",
        }),
        (None, _) if !problem.groups.are_one() => Ok(Box::new(OneByOne {
            families,
            kernel: kernel.map(str::to_string),
        })),
        (None, Some(refusal)) => Err(refusal),
        (None, None) if families.is_empty() => Err(Error::Device {
            asked: "gemm of element types that cutlet has no kernels for",
            found: stream.device().describe().to_string(),
        }),
        (None, None) => Err(Error::Instance {
            asked: kernel.unwrap_or_default().to_string(),
        }),
    }
}

/// The products of a batch, one after the other, where no kernel computes all of them.
struct OneByOne<T: Operand, D: DeviceData> {
    families: &'static [&'static dyn Family<T, D>],
    kernel: Option<String>,
}

impl<T: Operand, D: DeviceData> Launch<T, D> for OneByOne<T, D> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, D>) -> Result<()> {
        let mut planned: Option<(ProblemShape, Box<dyn Launch<T, D>>)> = None;
        for nth in 0..problem.groups.count {
            let problem = problem.nth(nth)?;
            let shape = problem.shape();
            // The alignment changes from one product to the next, unless they are multiples of it apart.
            let launch = match planned.take() {
                Some((of, launch)) if of == shape => launch,
                _ => plan(self.families, stream, &problem, self.kernel.as_deref())?,
            };
            launch.launch(stream, problem)?;
            planned = Some((shape, launch));
        }
        Ok(())
    }
}
