//! GEMM of batches and groups of rows of 8-bit floats, with scales of rows and columns or with one factor.

use std::ptr;

use cutlet_host::Stream;
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{Scale, Then};
use cutlet_kernels::gemm::sm90::fp8_group_instances::ScaledEpilogue;
use cutlet_kernels::gemm::sm90::instance::Instance;
use half::bf16;

use super::fp8::{Float8, with_fast};
use super::grouped::{self, Candidate};
use super::k_major::K_MAJOR;
use super::launch::{Loaded, Parameters, Types, Workspace};
use super::{names as names_of, of_orders};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{KernelQuery, Launch, LaunchPlan};
use crate::gemm::scales::Scales;

/// The names of the kernels that the query asks for.
pub fn names<T: Float8>(query: KernelQuery) -> Vec<&'static str> {
    let mut all = names_of(of_orders(T::grouped(), query.backend, K_MAJOR, None));
    if query.precision == Precision::FastAccumulation {
        all.extend(names_of(of_orders(
            T::fast_groups(),
            query.backend,
            K_MAJOR,
            None,
        )));
    }
    all
}

/// Plans a C of bf16. None if TMA cannot read the operands K-major, or something is fused.
pub fn to_bf16<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    let is_k_major = [problem.a.order(), problem.b.order()] == K_MAJOR;
    let is_plain = problem.rows.are_own() && problem.epilogue.gate.is_none();
    if !is_k_major || !is_plain || problem.outer_k.count > 1 || !grouped::fits(problem) {
        return Ok(None);
    }
    let promoted = fastest(T::grouped(), stream, problem, named)?;
    with_fast(problem.precision, promoted, || {
        fastest(T::fast_groups(), stream, problem, named)
    })
}

/// Plans the fastest of these kernels.
fn fastest<T: Float8, Ty: Types<In = T, Out = bf16>>(
    all: &'static [Instance<Ty, ScaledEpilogue>],
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    let backend = stream.device().backend();
    let instances = of_orders(all, backend, K_MAJOR, named.kernel);
    let traits = instances.iter().map(|it| &it.traits);
    let Some(candidate) = grouped::choose(stream, problem, traits) else {
        return Ok(None);
    };
    let is_it = |it: &&&'static Instance<Ty, _>| ptr::eq(&it.traits, candidate.traits);
    let Some(instance) = instances.iter().find(is_it) else {
        return Ok(None);
    };
    let (name, time) = (instance.name(), candidate.microseconds);
    let launch = GroupedLaunch {
        kernel: Loaded::new(stream, &PTX, instance)?,
        candidate,
    };
    Ok(Some(LaunchPlan::new(name, time, launch)))
}

/// A kernel that is chosen and loaded.
struct GroupedLaunch<Ty: Types> {
    kernel: Loaded<Ty, ScaledEpilogue>,
    candidate: Candidate,
}

impl<T: Float8, Ty: Types<In = T, Out = bf16>> Launch<T, bf16> for GroupedLaunch<Ty> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, bf16>) -> Result<()> {
        let copy = problem.scales.columns_in_pairs(stream)?;
        let mut problem = problem;
        if let (Some(copy), Scales::Outer(scales)) = (&copy, problem.scales) {
            problem.scales = Scales::Outer(scales.with_columns(copy.view()));
        }
        let parameters = Parameters {
            blocks: self.candidate.blocks,
            maps: grouped::maps(&problem, self.candidate.traits)?,
            output: problem.c.view.address(),
            workspace: Workspace::NONE,
            args: grouped::args(&problem, &self.candidate),
            epilogue: Then {
                first: problem.outer_scaled(),
                second: Scale {
                    alpha: 1.0,
                    beta: problem.beta,
                },
            },
        };
        // SAFETY: the maps describe the matrices, which were checked against their memory, as were the scales, of which
        // those of columns can be read in pairs. C overlaps no operand and is borrowed mutably. There is a size for each
        // group, if there are any.
        unsafe { self.kernel.launch(stream, parameters) }
    }
}
