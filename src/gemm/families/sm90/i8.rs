//! GEMM of i8 on Hopper: into i32, and with scales into bf16 and f16. `wgmma` reads i8 K-major: others are copied first.

use cutlet_device::DeviceData;
use cutlet_host::{Device, Stream, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::OuterScales;
use cutlet_kernels::gemm::sm90::OfI8;
use cutlet_kernels::gemm::sm90::i8_instances::{I8 as TO_I32, I8_TO_BF16, I8_TO_F16};
use cutlet_kernels::gemm::sm90::instance::Instance;
use half::{bf16, f16};

use super::k_major::{built_for, kernels, of_query, to_own_type};
use super::launch::{Prepared, To, Types, Workspace};
use super::tma_operand::TmaOperand;
use super::{NAME, cost_input, fastest, plan_of, tma_stores};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::families::scaled::ScaledOutput;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, KernelQuery, Launch, LaunchPlan};

/// Kernels for i8.
#[derive(Debug)]
pub struct I8;

impl Family<i8, i32> for I8 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// i8 has kernels for all devices with tensor cores.
    fn is_general(&self) -> bool {
        false
    }

    fn supports(&self, device: &Device) -> Result<()> {
        built_for(device)
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        of_query(TO_I32, query)
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, i8, i32>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<i8, i32>>> {
        to_own_type(TO_I32, stream, problem, Named::of(kernel))
    }
}

/// A type of C that kernels with scales store.
trait FusedOutput: ScaledOutput + TensorMapElement {
    /// The kernels.
    fn instances() -> &'static [Instance<Self::Types, OuterScales>];
    /// Their element types.
    type Types: Types<In = i8, Out = Self>;
}

impl FusedOutput for bf16 {
    fn instances() -> &'static [Instance<OfI8<bf16>, OuterScales>] {
        I8_TO_BF16
    }
    type Types = OfI8<bf16>;
}

impl FusedOutput for f16 {
    fn instances() -> &'static [Instance<OfI8<f16>, OuterScales>] {
        I8_TO_F16
    }
    type Types = OfI8<f16>;
}

impl<D: FusedOutput> Family<i8, D> for I8 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_general(&self) -> bool {
        false
    }

    fn supports(&self, device: &Device) -> Result<()> {
        built_for(device)
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        of_query(D::instances(), query)
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, i8, D>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<i8, D>>> {
        let is_fused = problem.epilogue.are_none() && problem.scales.are_in_pairs();
        let fuses = problem.beta == 0 && is_fused && tma_stores(&problem.c);
        let named = Named::of(kernel);
        let kernels = match fuses {
            true => kernels(D::instances(), stream, problem, named),
            false => Vec::new(),
        };
        let input = cost_input(stream, problem, named);
        let Some(selected) = fastest(&kernels, &input) else {
            return Ok(None);
        };
        let launch = Scaled(Prepared::<D::Types, _>::new(stream, &PTX, selected, input)?);
        Ok(Some(plan_of(
            stream,
            problem,
            (&selected.1, &input),
            launch,
        )))
    }
}

/// C by a kernel that multiplies its sums by scales.
struct Scaled<D: FusedOutput>(Prepared<D::Types, OuterScales>);

impl<D: FusedOutput + DeviceData> Launch<i8, D> for Scaled<D> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, i8, D>) -> Result<()> {
        let Self(kernel) = self;
        let epilogue = problem.scaled_by(problem.alpha as f32);
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let to = To::C(&mut problem.c);
        kernel.launch(stream, matrices, to, epilogue, Workspace::NONE)
    }
}
