//! The registry: the interface of kernel families, and the choice of a family for a problem.

use cutlet_device::{DeviceData, Kernel};
use cutlet_host::{Backend, Device, Stream};

use super::choice::decomposition::Decomposition;
use super::element_type::ElementType;
use super::indexed_rows::Rows;
use super::normalised::NormalisedLaunch;
use super::operand::Operand;
use super::precision::Precision;
use super::problem::{Problem, ProblemShape};
use super::scales::ScalesKind;
use super::tuning_file::installed;
use super::{Activation, gated, gathered};
use crate::{Error, Order, Result};

/// A family of kernels that multiplies matrices of `T` into a C of `D`.
pub trait Family<T: Operand, D: DeviceData>: Sync {
    /// The family's name.
    fn name(&self) -> &'static str;

    /// Whether the family has kernels for products of all extents.
    fn is_general(&self) -> bool {
        true
    }

    /// Whether some of the family's kernels fuse gates.
    fn fuses_gates(&self) -> bool {
        false
    }

    /// Whether some of the family's kernels sum over an outer mode of k.
    fn sums_outer_k(&self) -> bool {
        false
    }

    /// Refuses a device that cannot run the family's kernels.
    fn supports(&self, device: &Device) -> Result<()>;

    /// The names of the family's kernels that the query asks for.
    fn candidates(&self, query: KernelQuery) -> Vec<&'static str>;

    /// The decompositions in which the kernel of this name may solve the problem, besides the one that is estimated to
    /// be the fastest.
    fn decompositions(
        &self,
        _: &Stream,
        _: &Problem<'_, T, D>,
        _kernel: &str,
    ) -> Vec<Decomposition> {
        Vec::new()
    }

    /// Plans the problem: with the kernel of this name, or with the one that it estimates to be the fastest. None if it
    /// has no kernel for the problem, or none of the problem's precision.
    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<T, D>>>;

    /// Plans a problem whose A is normalised first, if the family has a kernel that does both.
    fn plan_normalised(
        &self,
        _: &Stream,
        _: &Problem<'_, T, D>,
    ) -> Result<Option<Box<dyn NormalisedLaunch<T, D>>>> {
        Ok(None)
    }
}

/// What is asked of the kernels in a list of candidates.
#[derive(Clone, Copy, Debug)]
pub struct KernelQuery {
    /// Where they run: not all have a body for the CPU.
    pub backend: Backend,
    /// The orders of A and B.
    pub orders: [Order; 2],
    /// The least precision.
    pub precision: Precision,
    /// What they fuse with the product.
    pub fused: Fused,
    /// Whether they compute all products of a batch in one launch.
    pub of_batches: bool,
    /// Whose rows they find by indices.
    pub indexed: IndexedOperand,
    /// Which scales they have.
    pub scales: ScalesKind,
}

/// Whether the backend has the kernel's code.
pub fn has_code<A>(backend: Backend, kernel: &Kernel<A>) -> bool {
    backend == Backend::Gpu || kernel.body().is_some()
}

/// The matrix whose rows are those of a table that indices name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexedOperand {
    None,
    A,
    C,
}

impl KernelQuery {
    /// Those that may solve a problem and fuse this.
    pub fn of<T: Operand, D: DeviceData>(
        device: &Device,
        problem: &Problem<'_, T, D>,
        fused: Fused,
    ) -> Self {
        KernelQuery {
            backend: device.backend(),
            orders: [problem.a.order(), problem.b.order()],
            precision: problem.least_precision(None),
            fused,
            of_batches: !problem.groups.are_one(),
            indexed: match problem.rows {
                Rows::Own => IndexedOperand::None,
                Rows::OfA(_) => IndexedOperand::A,
                Rows::OfC(_) => IndexedOperand::C,
            },
            scales: problem.scales.kind(),
        }
    }
}

/// The names of the kernels of the device's families that the problem's element types, orders, precision and epilogue
/// ask for. Alignment and extents may still rule out some of them.
pub fn names<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    device: &Device,
    problem: &Problem<'_, T, D>,
) -> Vec<&'static str> {
    let something = Fused::Something(problem.epilogue.activation);
    let lists = match (problem.epilogue.gate.is_some(), problem.epilogue.are_none()) {
        (true, _) => vec![Fused::Swiglu],
        (false, true) => vec![Fused::Nothing],
        (false, false) => vec![Fused::Nothing, something],
    };
    let runs = families
        .iter()
        .filter(|family| family.supports(device).is_ok());
    let mut names: Vec<_> = runs
        .flat_map(|family| {
            let of_list = |&fused| family.candidates(KernelQuery::of(device, problem, fused));
            lists.iter().flat_map(of_list).collect::<Vec<_>>()
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What the kernels in a list of candidates fuse with the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fused {
    /// Nothing.
    Nothing,
    /// A bias or a residual, and this activation.
    Something(Option<Activation>),
    /// The gates of SwiGLU.
    Swiglu,
}

/// What chooses the kernel of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The tunings of the process. Where they do not have the problem, the families' estimates.
    Tuned,
    /// The families' estimates.
    Estimated,
    /// The caller, by the kernel's name.
    Named(&'a str),
}

/// What is launched for a problem, and how long it is estimated to take.
pub struct LaunchPlan<T: Operand, D: DeviceData> {
    /// The name of the kernel that multiplies. None if several kernels do, or none.
    pub kernel: Option<&'static str>,
    /// The estimated time.
    pub microseconds: f64,
    launches: Box<dyn Launch<T, D>>,
}

/// The launches that compute a problem, chosen and prepared.
pub trait Launch<T: Operand, D: DeviceData>: Send + Sync {
    /// Enqueues the launches for a problem of the planned shape.
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()>;
}

impl<T: Operand, D: DeviceData> LaunchPlan<T, D> {
    /// The launches with this kernel.
    pub fn new(
        kernel: &'static str,
        microseconds: f64,
        launches: impl Launch<T, D> + 'static,
    ) -> Self {
        LaunchPlan {
            kernel: Some(kernel),
            microseconds,
            launches: Box::new(launches),
        }
    }

    /// Launches of several kernels, which are taken where no kernel does all.
    pub fn of_several(launches: impl Launch<T, D> + 'static) -> Self {
        Self::of_several_in(f64::INFINITY, launches)
    }

    /// Launches of several kernels that are estimated to take this time.
    pub fn of_several_in(microseconds: f64, launches: impl Launch<T, D> + 'static) -> Self {
        LaunchPlan {
            kernel: None,
            microseconds,
            launches: Box::new(launches),
        }
    }

    /// This plan, or another one that is estimated to be faster. An alternative that can't be planned is none.
    pub fn or_faster(self, other: Result<Self>) -> Self {
        match other {
            Ok(other) if other.microseconds < self.microseconds => other,
            _ => self,
        }
    }

    /// Enqueues the launches for a problem of the planned shape.
    pub fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        problem.use_in(stream)?;
        problem.expect_no_races(stream)?;
        self.launches.launch(stream, problem)
    }
}

/// Plans a problem of these types of A and B, and of C.
pub fn plan<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    types: [ElementType; 2],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    choice: Choice<'_>,
) -> Result<LaunchPlan<T, D>> {
    if choice == Choice::Tuned
        && let Some(tuned) = tuned(families, types, stream, problem)
    {
        return Ok(tuned);
    }
    let kernel = match choice {
        Choice::Named(name) => Some(name),
        Choice::Tuned | Choice::Estimated => None,
    };
    let unknown = || {
        Err(Error::Instance {
            asked: kernel.unwrap_or_default().to_string(),
            names: names(families, stream.device(), problem),
        })
    };
    // What each row is made of is known on the device alone, so that only a gather before the product can take the
    // kernel's place.
    let needs_one_launch = !problem.rows.are_own() || problem.groups.have_sizes();
    // A named kernel gathers rows itself, or multiplies those that were gathered.
    let may_gather = || kernel.is_none() || names(families, stream.device(), problem).is_empty();
    let mut found = fastest(families, stream, problem, kernel)?;
    let general = families.iter().filter(|family| family.is_general());
    let all_refuse = found.refusals.len() == general.count();
    match (found.fastest, found.refusals.pop()) {
        (Some(plan), _) if problem.epilogue.gate.is_some() && kernel.is_none() => Ok(
            gated::faster(plan, families, types, stream, problem, choice),
        ),
        (Some(plan), _) => Ok(plan),
        (None, Some(refusal)) if all_refuse => Err(refusal),
        (None, _) if problem.outer_k.count > 1 => Err(Error::Arithmetic {
            asked: "a product that sums over two modes of k".to_string(),
            found: "no kernel has it for these element types, extents and strides",
        }),
        (None, _) if problem.epilogue.gate.is_some() => {
            gated::plan(families, types, stream, problem, choice)
        }
        (None, _) if gathered::takes(problem) && may_gather() => {
            Ok(gathered::plan(Planner::new(families, types, choice)))
        }
        (None, _) if needs_one_launch && kernel.is_some() => unknown(),
        (None, _) if !problem.rows.are_own() => Err(Error::Arithmetic {
            asked: "a product with rows of a table".to_string(),
            found: "no kernel has it for these element types; use a table of A's type, of i32 for i8",
        }),
        (None, _) if problem.groups.have_sizes() => Err(Error::Arithmetic {
            asked: "a product of groups whose rows are known on the device".to_string(),
            found: "no kernel has it for these element types; use a C of A's type, of i32 for i8, and of bf16 for \
                    8-bit floats, whose operands are K-major at multiples of 16 bytes",
        }),
        (None, _) if !problem.groups.are_one() => {
            let planner = Planner::new(families, types, choice);
            Ok(LaunchPlan::of_several(OneByOne(planner)))
        }
        (None, Some(refusal)) => Err(refusal),
        (None, None) if families.is_empty() => Err(Error::Device {
            asked: "gemm of element types that cutlet has no kernels for",
            found: stream.device().describe().to_string(),
        }),
        (None, None) => unknown(),
    }
}

/// The plan with the kernel that was measured to be the fastest. None if the problem was not measured, or if the kernel
/// does not solve it here: then the families' estimates choose, as without a tuning.
fn tuned<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    types: [ElementType; 2],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
) -> Option<LaunchPlan<T, D>> {
    let kernel = installed::kernel_for(stream.device(), types, problem)?;
    let found = fastest(families, stream, problem, Some(&kernel));
    found.ok()?.fastest
}

/// The answers of the families that were asked for a plan.
struct Found<T: Operand, D: DeviceData> {
    /// The plan of the family that estimates the least time.
    fastest: Option<LaunchPlan<T, D>>,
    /// Those of general families that the device cannot run.
    refusals: Vec<Error>,
}

/// Asks all families. With a name, only the kernel of this name is a candidate.
fn fastest<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Found<T, D>> {
    let mut found = Found {
        fastest: None,
        refusals: Vec::new(),
    };
    let is_gated = problem.epilogue.gate.is_some();
    let has_outer_k = problem.outer_k.count > 1;
    for family in families {
        if let Err(error) = family.supports(stream.device()) {
            if family.is_general() {
                found.refusals.push(error);
            }
            continue;
        }
        if is_gated && !family.fuses_gates() || has_outer_k && !family.sums_outer_k() {
            continue;
        }
        let Some(plan) = family.plan(stream, problem, kernel)? else {
            continue;
        };
        let fastest = &mut found.fastest;
        if fastest
            .as_ref()
            .is_none_or(|it| plan.microseconds < it.microseconds)
        {
            *fastest = Some(plan);
        }
    }
    Ok(found)
}

/// What plans products when they are launched.
pub struct Planner<T: Operand, D: DeviceData> {
    families: &'static [&'static dyn Family<T, D>],
    types: [ElementType; 2],
    /// The kernel that the caller named.
    kernel: Option<String>,
    /// Whether tunings choose, if no kernel is named.
    is_tuned: bool,
}

impl<T: Operand, D: DeviceData> Planner<T, D> {
    fn new(
        families: &'static [&'static dyn Family<T, D>],
        types: [ElementType; 2],
        choice: Choice<'_>,
    ) -> Self {
        Planner {
            families,
            types,
            kernel: match choice {
                Choice::Named(name) => Some(name.to_string()),
                Choice::Tuned | Choice::Estimated => None,
            },
            is_tuned: choice == Choice::Tuned,
        }
    }

    /// Plans a product.
    pub fn plan(&self, stream: &Stream, problem: &Problem<'_, T, D>) -> Result<LaunchPlan<T, D>> {
        let choice = match &self.kernel {
            Some(name) => Choice::Named(name),
            None if self.is_tuned => Choice::Tuned,
            None => Choice::Estimated,
        };
        plan(self.families, self.types, stream, problem, choice)
    }
}

/// The products of a batch, one after the other, where no kernel computes all of them.
struct OneByOne<T: Operand, D: DeviceData>(Planner<T, D>);

impl<T: Operand, D: DeviceData> Launch<T, D> for OneByOne<T, D> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, D>) -> Result<()> {
        let Self(planner) = self;
        let mut planned: Option<(ProblemShape, LaunchPlan<T, D>)> = None;
        for nth in 0..problem.groups.count() {
            let problem = problem.nth(nth)?;
            let shape = problem.shape();
            // The alignment changes from one product to the next, unless they are multiples of it apart.
            let next = match planned.take() {
                Some((of, next)) if of == shape => next,
                _ => planner.plan(stream, &problem)?,
            };
            next.launch(stream, problem)?;
            planned = Some((shape, next));
        }
        Ok(())
    }
}
