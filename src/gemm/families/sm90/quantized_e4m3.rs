//! GEMM of 8-bit floats with scales of blocks into a C that is quantised to e4m3 with scales of its blocks.

use cutlet_device::fp8::F8E4M3;
use cutlet_host::{Device, Stream};
use cutlet_kernels::gemm::sm90::QuantizedC;
use cutlet_kernels::gemm::sm90::block_scaled_instances::E4M3_BLOCKS_TO_E4M3;

use super::block_scaled::{BlockScaled, Target};
use super::k_major::built_for;
use super::{NAME, cost_input, plan_of};
use crate::gemm::choice::cost::CostInput;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::problem::Problem;
use crate::gemm::quantized::by_two_kernels;
use crate::gemm::registry::{
    Choice, Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan, has_code,
};
use crate::gemm::scales::ScalesKind;
use crate::matrix::pointer_mut;
use crate::{Error, Result};

/// Rows of C for which two kernels may be faster than one: kernels that quantise C have tiles of 64 rows and more, and
/// others have splits of k.
const FEW_ROWS: usize = 64;

/// Kernels for a C of e4m3.
#[derive(Debug)]
pub struct QuantizedE4m3;

impl Family<F8E4M3, F8E4M3> for QuantizedE4m3 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, device: &Device) -> Result<()> {
        built_for(device)
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        let is_one = !query.of_batches && query.indexed == IndexedOperand::None;
        if !is_one || query.fused != Fused::Nothing || query.scales != ScalesKind::Blocks {
            return Vec::new();
        }
        let all = E4M3_BLOCKS_TO_E4M3.iter();
        all.filter(|it| has_code(query.backend, it.kernel))
            .map(|it| it.traits.name())
            .collect()
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, F8E4M3, F8E4M3>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<F8E4M3, F8E4M3>>> {
        check(problem)?;
        let (m, ..) = problem.extents();
        let choice = kernel.map_or(Choice::Estimated, Choice::Named);
        let two = || by_two_kernels(stream, problem, choice);
        match by_one_kernel(stream, problem, Named::of(kernel))? {
            Some(one) if kernel.is_some() || m > FEW_ROWS => Ok(Some(one)),
            Some(one) => Ok(Some(one.or_faster(two()))),
            None => two().map(Some),
        }
    }
}

/// Refuses a C that is not quantised, and what is not multiplied into a quantised one.
fn check(problem: &Problem<'_, F8E4M3, F8E4M3>) -> Result<()> {
    let is_one = problem.groups.are_one() && problem.outer_k.count == 1 && problem.rows.are_own();
    let is_alone =
        problem.beta == 0.0 && problem.epilogue.are_none() && problem.epilogue.gate.is_none();
    if problem.quantized.is_none() {
        return Err(Error::Arithmetic {
            asked: "a product into F8E4M3 without scales of C".to_string(),
            found: "numbers of 8 bits need scales; give them by `quantized`, or use a C of bf16, f16 or f32",
        });
    }
    match is_one && is_alone {
        true => Ok(()),
        false => Err(Error::Arithmetic {
            asked: "a quantised product with several products, rows of a table, or something fused"
                .to_string(),
            found: "a quantised C is that of one product alone; multiply into bf16, and then use `Quantize`",
        }),
    }
}

/// Plans a kernel that multiplies and quantises. None if there is none for the problem.
fn by_one_kernel(
    stream: &Stream,
    problem: &Problem<'_, F8E4M3, F8E4M3>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<F8E4M3, F8E4M3>>> {
    let c = &problem.c;
    let in_pairs = c.starts_runs_at(2) && c.columns().is_multiple_of(2);
    if !in_pairs || !problem.scales.are_of_blocks() {
        return Ok(None);
    }
    let input = CostInput {
        // The store of a quantised C adds no partials.
        allows_fixup: false,
        ..cost_input(stream, problem, named)
    };
    let kernel = BlockScaled::new(E4M3_BLOCKS_TO_E4M3, stream, input, named, true)?;
    let Some(kernel) = kernel else {
        return Ok(None);
    };
    let candidate = kernel.candidate;
    let estimate = (&candidate, &input);
    Ok(Some(plan_of(
        stream,
        problem,
        estimate,
        ByOneKernel(kernel),
    )))
}

/// A kernel that multiplies and quantises.
struct ByOneKernel(BlockScaled<QuantizedC>);

impl Launch<F8E4M3, F8E4M3> for ByOneKernel {
    fn launch(&self, stream: &Stream, problem: Problem<'_, F8E4M3, F8E4M3>) -> Result<()> {
        let Some(quantized) = &problem.quantized else {
            unreachable!("a plan is launched for problems of its shape")
        };
        let to = QuantizedC {
            elements: pointer_mut(problem.c.view.address()),
            scales: pointer_mut(quantized.scales.view.address()),
            ld: problem.c.ld() as i64,
            strides: quantized.scales.strides(),
            alpha: problem.alpha,
            powers: quantized.quantize.has_powers().into(),
        };
        let Self(kernel) = self;
        kernel.multiply(stream, &problem, &Target::OF_EPILOGUE, to)
    }
}
