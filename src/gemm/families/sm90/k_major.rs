//! GEMM of operands that `wgmma` reads K-major, others of which are copied first: of [8-bit floats](super::fp8), and of
//! f32 as tf32 or as three products of tf32.

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{Accumulator, Scale};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::k_major_instances::{TF32, TF32X3};
use cutlet_kernels::gemm::sm90::{AccOf, Scaling};

use super::fixup::FixupCounters;
use super::launch::{Prepared, Types};
use super::tma_operand::TmaOperand;
use super::{
    NAME, by_partials_in_f32, by_second_kernel_of, cost_input, fastest, for_partial_output, names,
    of_orders, plan_of, supports, tma_stores, write_c,
};
use crate::gemm::choice::cost::{CostInput, OutputPath};
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::Operand;
use crate::gemm::partials::Output;
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan};
use crate::{Error, Order, Result};

/// Kernels for f32 as tf32, and as three products of tf32.
#[derive(Debug)]
pub struct Tf32;

/// The orders in which A and B are K-major.
pub(super) const K_MAJOR: [Order; 2] = [Order::RowMajor, Order::ColMajor];

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
    if TF32.is_empty() {
        return Err(Error::NotBuilt {
            operation: "gemm",
            family: NAME,
            feature: "hopper",
        });
    }
    supports(device.compute_capability(), || device.describe())
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
