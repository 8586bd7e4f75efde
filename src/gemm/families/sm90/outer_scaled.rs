//! Products with scales of rows and columns, by kernels that multiply their sums by them.

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{Accumulator, Epilogue, OuterScales, UnpairedOuterScales};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::{ElementTypes, Scaling};

use super::fixup::FixupCounters;
use super::k_major::kernels;
use super::launch::{Prepared, Types};
use super::tma_operand::TmaOperand;
use super::{SelectedFor, cost_input, fastest, plan_of, tma_stores, write_c_with};
use crate::Result;
use crate::gemm::choice::cost::CostInput;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::ScaledOperand;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, LaunchPlan};

/// The element types of kernels that multiply by scales.
pub trait ScaledTypes: Types<In: ScaledOperand, Scaling: Scaling<Acc = f32>> {}
impl<Ty: Types<In: ScaledOperand, Scaling: Scaling<Acc = f32>>> ScaledTypes for Ty {}

/// The kernels that a problem may have. They are launched with arguments of these types.
pub struct Instances<Ty: ElementTypes> {
    /// Those that compute C.
    pub direct: &'static [Instance<Ty, OuterScales>],
    /// Those that compute Cᵀ, for an A of few rows.
    pub transposed: &'static [Instance<Ty, UnpairedOuterScales>],
}

impl<Ty: ElementTypes> Clone for Instances<Ty> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Ty: ElementTypes> Copy for Instances<Ty> {}

/// A problem whose C the kernels store.
type ProblemOf<'a, Ty> = Problem<'a, <Ty as ElementTypes>::In, <Ty as ElementTypes>::Out>;

/// Plans a C of the type that the kernels store. None if something else is fused, or TMA cannot store C.
pub fn to_own_type<Ty: ScaledTypes>(
    all: Instances<Ty>,
    stream: &Stream,
    problem: &ProblemOf<'_, Ty>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, Ty::Out>>> {
    if !stores(problem) {
        return Ok(None);
    }
    let direct = match problem.scales.are_in_pairs() {
        true => select(all.direct, stream, problem, named),
        false => None,
    };
    let transposed = select(all.transposed, stream, problem, named);
    // Only the chosen kernel is loaded: loading may compile its PTX.
    match (direct, transposed) {
        (Some(direct), other)
            if other.is_none_or(|((_, it), _)| direct.0.1.clocks <= it.clocks) =>
        {
            plan(all, stream, problem, direct).map(Some)
        }
        (_, Some(transposed)) => plan(all, stream, problem, transposed).map(Some),
        (_, None) => Ok(None),
    }
}

/// The microseconds that the kernels which compute Cᵀ are estimated to take. None if none of them solves the problem.
pub fn microseconds_of_transposed<Ty: ScaledTypes>(
    all: Instances<Ty>,
    stream: &Stream,
    problem: &ProblemOf<'_, Ty>,
    named: Named<'_>,
) -> Option<f64> {
    if !stores(problem) {
        return None;
    }
    let ((_, candidate), input) = select(all.transposed, stream, problem, named)?;
    let clocks = candidate.clocks + TmaOperand::copying(stream, problem);
    Some(input.device.microseconds(clocks))
}

/// Whether the kernels store the problem's C, with nothing else fused.
fn stores<T: ScaledOperand, D: DeviceData>(problem: &Problem<'_, T, D>) -> bool {
    let overwrites = problem.beta == T::Factor::ZERO && tma_stores(&problem.c);
    overwrites && problem.epilogue.are_none()
}

/// The kernel of these that is estimated to be the fastest, with the model's input.
fn select<Ty: ScaledTypes, Epi>(
    all: &'static [Instance<Ty, Epi>],
    stream: &Stream,
    problem: &ProblemOf<'_, Ty>,
    named: Named<'_>,
) -> Option<SelectedFor<Ty, Epi>> {
    let input = CostInput {
        allows_fixup: FixupCounters::of(stream).is_some(),
        // Its kernel knows no scales.
        allows_second_kernel: false,
        ..cost_input(stream, problem, named)
    };
    let selected = fastest(&kernels(all, stream, problem, named), &input)?;
    Some((selected, input))
}

/// The plan of a selected kernel.
fn plan<Ty: ScaledTypes, Epi: Epilogue + From<OuterScales>>(
    all: Instances<Ty>,
    stream: &Stream,
    problem: &ProblemOf<'_, Ty>,
    (selected, input): SelectedFor<Ty, Epi>,
) -> Result<LaunchPlan<Ty::In, Ty::Out>> {
    let kernel = Prepared::<Ty, Epi>::new(stream, &PTX, selected, input)?;
    let estimate = (&selected.1, &input);
    Ok(plan_of(stream, problem, estimate, Scaled { kernel, all }))
}

/// C by a kernel that multiplies its sums by scales.
struct Scaled<Ty: Types, Epi: Epilogue> {
    kernel: Prepared<Ty, Epi>,
    /// The kernels that it was chosen from.
    all: Instances<Ty>,
}

impl<Ty: ScaledTypes, Epi: Epilogue + From<OuterScales>> Launch<Ty::In, Ty::Out>
    for Scaled<Ty, Epi>
{
    fn launch(&self, stream: &Stream, mut problem: ProblemOf<'_, Ty>) -> Result<()> {
        let Self { kernel, all } = self;
        // A kernel that computes Cᵀ multiplies its rows by the scales of B's columns.
        let scales = match kernel.is_transposed() {
            false => problem.outer_scaled(),
            true => problem.transposed_outer_scaled(),
        };
        if write_c_with(kernel, scales.into(), stream, &mut problem)? {
            return Ok(());
        }
        // The plan's stream had counters, and this stream has none.
        match to_own_type(*all, stream, &problem, Named::default())? {
            Some(plan) => plan.launch(stream, problem),
            None => unreachable!("the problem had a kernel"),
        }
    }
}
