//! GEMM of 8-bit floats, and of f32 as tf32 or as three products of tf32. `wgmma` reads such operands K-major: others are copied first.

use cutlet_device::DeviceData;
use cutlet_device::fp8::F8E4M3;
use cutlet_host::{Device, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{Accumulator, Scale};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::k_major_instances::{
    E4M3, E4M3_FAST, E4M3_FAST_OUTER, E4M3_OUTER, E4M3_TRANSPOSED_OUTER, TF32, TF32X3,
};
use cutlet_kernels::gemm::sm90::{AccOf, Scaling};
use half::{bf16, f16};

use super::fixup::FixupCounters;
use super::launch::{Prepared, Types};
use super::outer_scaled::Instances;
use super::tma_operand::TmaOperand;
use super::{
    NAME, block_scaled, by_partials_in_f32, by_second_kernel_of, cost_input, e4m3_groups, fastest,
    for_partial_output, names, of_orders, outer_scaled, plan_of, supports, tma_stores, write_c,
};
use crate::gemm::choice::cost::{CostInput, OutputPath};
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::Operand;
use crate::gemm::partials::Output;
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan};
use crate::gemm::scales::{Scales, ScalesKind};
use crate::{Error, Order, Result};

/// Kernels for e4m3.
#[derive(Debug)]
pub struct E4m3;
/// Kernels for f32 as tf32, and as three products of tf32.
#[derive(Debug)]
pub struct Tf32;

/// The time of products whose sums are promoted, relative to others.
const PROMOTION: f64 = 1.15;

/// The orders in which A and B are K-major.
pub(super) const K_MAJOR: [Order; 2] = [Order::RowMajor, Order::ColMajor];

macro_rules! e4m3 {
    ($($c:ty: $plan:ident, $promoted:expr, $with_blocks:ident, $with_outer:expr, of several $of_several:expr, $names_of_several:expr;)+) => {$(
        impl Family<F8E4M3, $c> for E4m3 {
            fn name(&self) -> &'static str {
                NAME
            }

            fn supports(&self, device: &Device) -> Result<()> {
                built_for(device)
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                match query.of_batches {
                    false => of_e4m3(query),
                    true => $names_of_several(query),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, F8E4M3, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<F8E4M3, $c>>> {
                let named = Named::of(kernel);
                match problem.scales {
                    _ if !problem.rows.are_own() => Ok(None),
                    Scales::None | Scales::Outer(_) if !problem.groups.are_one() => {
                        $of_several(stream, problem, named)
                    }
                    Scales::Blocks(_) => block_scaled::$with_blocks(stream, problem, named),
                    Scales::Outer(_) => $with_outer(stream, problem, named),
                    Scales::None => with_fast(
                        problem.precision,
                        $promoted(stream, problem, named)?,
                        || $plan(E4M3_FAST, stream, problem, named),
                    ),
                }
            }
        }
    )+};
}
e4m3! {
    bf16: to_own_type, promoted_to_bf16, to_bf16, outer_to_bf16,
        of several e4m3_groups::to_bf16, of_several;
    f16: to_other_type, |stream, problem, named| to_other_type(E4M3, stream, problem, named), to_any_type,
        |_, _, _| Ok(None), of several |_, _, _| Ok(None), |_| Vec::new();
    f32: to_f32, |stream, problem, named| to_f32(E4M3, stream, problem, named), to_f32, |_, _, _| Ok(None),
        of several |_, _, _| Ok(None), |_| Vec::new();
}

/// Plans a C of bf16 without scales. The kernels for scales that compute Cᵀ multiply by alpha alone, and have a tile that
/// others lack.
fn promoted_to_bf16(
    stream: &Stream,
    problem: &Problem<'_, F8E4M3, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<F8E4M3, bf16>>> {
    let plain = to_own_type(E4M3, stream, problem, named)?;
    let scaled = Instances {
        direct: &[],
        transposed: E4M3_TRANSPOSED_OUTER,
    };
    let time = outer_scaled::microseconds_of_transposed(scaled, stream, problem, named);
    match (plain, time) {
        (Some(plain), Some(time)) if plain.microseconds <= time => Ok(Some(plain)),
        (plain, None) => Ok(plain),
        (_, Some(_)) => outer_scaled::to_own_type(scaled, stream, problem, named),
    }
}

/// Plans a C of bf16 with scales of rows and columns.
fn outer_to_bf16(
    stream: &Stream,
    problem: &Problem<'_, F8E4M3, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<F8E4M3, bf16>>> {
    let promoted = Instances {
        direct: E4M3_OUTER,
        transposed: E4M3_TRANSPOSED_OUTER,
    };
    let promoted = outer_scaled::to_own_type(promoted, stream, problem, named)?;
    with_fast(problem.precision, promoted, || {
        let fast = Instances {
            direct: E4M3_FAST_OUTER,
            transposed: &[],
        };
        outer_scaled::to_own_type(fast, stream, problem, named)
    })
}

impl Family<f32, f32> for Tf32 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// f32 has kernels for all devices.
    fn is_general(&self) -> bool {
        false
    }

    fn supports(&self, device: &Device) -> Result<()> {
        built_for(device)
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        match query.precision {
            Precision::Tf32 => of_query(TF32, query),
            Precision::Tf32x3 => of_query(TF32X3, query),
            _ => Vec::new(),
        }
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, f32>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<f32, f32>>> {
        match problem.least_precision(kernel) {
            Precision::Tf32 => to_own_type(TF32, stream, problem, Named::of(kernel)),
            Precision::Tf32x3 => to_own_type(TF32X3, stream, problem, Named::of(kernel)),
            _ => Ok(None),
        }
    }
}

/// Refuses a device that cannot run the kernels, and a build without them.
pub(super) fn built_for(device: &Device) -> Result<()> {
    if E4M3.is_empty() {
        return Err(Error::NotBuilt {
            operation: "gemm",
            family: NAME,
            feature: "hopper",
        });
    }
    supports(device.compute_capability(), || device.describe())
}

/// The names of the kernels for e4m3 that the query asks for.
fn of_e4m3(query: KernelQuery) -> Vec<&'static str> {
    let (mut all, fast) = match query.scales {
        _ if query.fused != Fused::Nothing || query.indexed != IndexedOperand::None => {
            return Vec::new();
        }
        ScalesKind::Blocks => (block_scaled::names(query.backend, false), Vec::new()),
        ScalesKind::Outer { .. } => (
            [
                of_query(E4M3_OUTER, query),
                of_query(E4M3_TRANSPOSED_OUTER, query),
            ]
            .concat(),
            of_query(E4M3_FAST_OUTER, query),
        ),
        ScalesKind::None => (of_query(E4M3, query), of_query(E4M3_FAST, query)),
    };
    if query.precision == Precision::FastAccumulation {
        all.extend(fast);
    }
    all
}

/// The names of the kernels for batches and groups of e4m3 that the query asks for.
fn of_several(query: KernelQuery) -> Vec<&'static str> {
    match (query.fused, query.indexed, query.scales) {
        (Fused::Nothing, IndexedOperand::None, ScalesKind::Blocks) => {
            block_scaled::names(query.backend, true)
        }
        (Fused::Nothing, IndexedOperand::None, _) => e4m3_groups::names(query.backend),
        _ => Vec::new(),
    }
}

/// The names of these kernels, if they do what the query asks for: single products, with nothing fused.
pub(super) fn of_query<Ty: Types, Epi>(
    all: &'static [Instance<Ty, Epi>],
    query: KernelQuery,
) -> Vec<&'static str> {
    match (query.fused, query.of_batches, query.indexed) {
        (Fused::Nothing, false, IndexedOperand::None) => {
            names(of_orders(all, query.backend, K_MAJOR, None))
        }
        _ => Vec::new(),
    }
}

/// The plan with promoted sums, or the fast one if the precision allows it and it is faster. The model does not know
/// what promotion costs.
fn with_fast<T: Operand, D: DeviceData>(
    precision: Precision,
    promoted: Option<LaunchPlan<T, D>>,
    fast: impl FnOnce() -> Result<Option<LaunchPlan<T, D>>>,
) -> Result<Option<LaunchPlan<T, D>>> {
    let fast = match precision {
        Precision::FastAccumulation => fast()?,
        _ => None,
    };
    Ok(match (promoted, fast) {
        (Some(promoted), Some(fast)) if PROMOTION * promoted.microseconds < fast.microseconds => {
            Some(promoted)
        }
        (promoted, None) => promoted,
        (_, fast) => fast,
    })
}

/// These kernels, if the problem is theirs. With a name, only the kernel of this name.
pub(super) fn kernels<Ty: Types<In: Operand>, D: DeviceData, Epi>(
    all: &'static [Instance<Ty, Epi>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, D>,
    named: Named<'_>,
) -> Vec<&'static Instance<Ty, Epi>> {
    let is_one = problem.groups.are_one() && problem.outer_k.count == 1;
    match is_one && problem.rows.are_own() && problem.epilogue.gate.is_none() {
        true => of_orders(all, stream.device().backend(), K_MAJOR, named.kernel),
        false => Vec::new(),
    }
}

/// Plans a C of the type that the kernels store.
pub(super) fn to_own_type<
    Ty: Types<In: Operand<Factor = AccOf<Ty>>, Out: Output<Acc = AccOf<Ty>>>,
>(
    all: &'static [Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, Ty::Out>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, Ty::Out>>> {
    let kernels = kernels(all, stream, problem, named);
    if !problem.epilogue.are_none() {
        return by_second_kernel_of(&kernels, stream, problem, named);
    }
    let overwrites = problem.beta == AccOf::<Ty>::ZERO && tma_stores(&problem.c);
    let mut direct = kernels.clone();
    direct.retain(|instance| overwrites || !instance.traits.overwrites_only);
    let input = CostInput {
        allows_fixup: FixupCounters::of(stream).is_some(),
        ..cost_input(stream, problem, named)
    };
    let Some(selected) = fastest(&direct, &input) else {
        return by_second_kernel_of(&kernels, stream, problem, named);
    };
    let launch = ToOwnType {
        prepared: Prepared::new(stream, &PTX, selected, input)?,
        all,
    };
    let estimate = (&selected.1, &input);
    Ok(Some(plan_of(stream, problem, estimate, launch)))
}

/// Plans a C of f32: it may be the partial output of kernels that store another type.
pub(super) fn to_f32<Ty: Types<In: Operand<Factor = f32>, Scaling: Scaling<Acc = f32>>>(
    all: &'static [Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, f32>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, f32>>> {
    let kernels = kernels(all, stream, problem, named);
    let by_partials = match problem.epilogue.are_none() {
        true => for_partial_output(&kernels, stream, problem, named),
        false => None,
    };
    match by_partials {
        Some((selected, input)) => by_partials_in_f32(stream, problem, selected, input).map(Some),
        None => by_second_kernel_of(&kernels, stream, problem, named),
    }
}

/// Plans a C of another type than the kernels store.
pub(super) fn to_other_type<
    Ty: Types<In: Operand<Factor = AccOf<Ty>>>,
    D: Output<Acc = AccOf<Ty>>,
>(
    all: &'static [Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, D>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, D>>> {
    let kernels = kernels(all, stream, problem, named);
    by_second_kernel_of(&kernels, stream, problem, named)
}

/// C of the type that the kernel stores.
struct ToOwnType<Ty: Types> {
    prepared: Prepared<Ty, Scale<AccOf<Ty>>>,
    /// The kernels that it was chosen from.
    all: &'static [Instance<Ty>],
}

impl<Ty: Types<In: Operand<Factor = AccOf<Ty>>, Out: Output<Acc = AccOf<Ty>>>>
    Launch<Ty::In, Ty::Out> for ToOwnType<Ty>
{
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, Ty::In, Ty::Out>) -> Result<()> {
        let kernel = &self.prepared;
        if kernel.path() == OutputPath::SecondKernel {
            let operands = TmaOperand::both(stream, &problem)?;
            let matrices = operands.each_ref().map(TmaOperand::matrix);
            let partials = kernel.launch_for_partials(stream, matrices)?;
            // SAFETY: the partials are of the problem's C.
            return unsafe { partials.finish(stream, problem) };
        }
        if write_c(kernel, stream, &mut problem)? {
            return Ok(());
        }
        // The plan's stream had counters, and this stream has none.
        match to_own_type(self.all, stream, &problem, Named::default())? {
            Some(plan) => plan.launch(stream, problem),
            None => unreachable!("the problem had a kernel"),
        }
    }
}
