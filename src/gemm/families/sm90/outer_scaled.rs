//! Products with scales of rows and columns, by kernels that multiply their sums by them.

use cutlet_host::Stream;
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{Accumulator, OuterScales};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::{ElementTypes, Scaling};

use super::k_major::kernels;
use super::launch::{Prepared, To, Types, Workspace};
use super::tma_operand::TmaOperand;
use super::{cost_input, fastest, plan_of, tma_stores};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::{Operand, ScaledOperand};
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, LaunchPlan};

/// The element types of kernels that multiply by scales.
pub trait ScaledTypes: Types<In: ScaledOperand, Scaling: Scaling<Acc = f32>> {}
impl<Ty: Types<In: ScaledOperand, Scaling: Scaling<Acc = f32>>> ScaledTypes for Ty {}

/// The kernels of a list. They are launched with arguments of these types.
type Instances<Ty> = &'static [Instance<Ty, OuterScales>];

/// A problem whose C the kernels store.
type ProblemOf<'a, Ty> = Problem<'a, <Ty as ElementTypes>::In, <Ty as ElementTypes>::Out>;

/// Plans a C of the type that the kernels store. None if something else is fused, or TMA cannot store C.
pub fn to_own_type<Ty: ScaledTypes>(
    all: Instances<Ty>,
    stream: &Stream,
    problem: &ProblemOf<'_, Ty>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, Ty::Out>>> {
    let overwrites = problem.beta == <Ty::In as Operand>::Factor::ZERO && tma_stores(&problem.c);
    let kernels = match overwrites && problem.epilogue.are_none() && problem.scales.are_in_pairs() {
        true => kernels(all, stream, problem, named),
        false => Vec::new(),
    };
    let input = cost_input(stream, problem, named);
    let Some(selected) = fastest(&kernels, &input) else {
        return Ok(None);
    };
    let launch = Scaled(Prepared::<Ty, _>::new(stream, &PTX, selected, input)?);
    let estimate = (&selected.1, &input);
    Ok(Some(plan_of(stream, problem, estimate, launch)))
}

/// C by a kernel that multiplies its sums by scales.
struct Scaled<Ty: Types>(Prepared<Ty, OuterScales>);

impl<Ty: ScaledTypes> Launch<Ty::In, Ty::Out> for Scaled<Ty> {
    fn launch(&self, stream: &Stream, mut problem: ProblemOf<'_, Ty>) -> Result<()> {
        let Self(kernel) = self;
        let epilogue = problem.outer_scaled();
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let to = To::C(&mut problem.c);
        kernel.launch(stream, matrices, to, epilogue, Workspace::NONE)
    }
}
