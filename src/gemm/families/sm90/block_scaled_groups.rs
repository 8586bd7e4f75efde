//! GEMM of batches and groups of rows of 8-bit floats with scales of blocks.

use std::ptr;

use cutlet_host::{Function, LaunchConfig, Stream, TensorMapSpec};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::ScalesOfBlocks;
use cutlet_kernels::gemm::sm90::instance::{BlockScaledArguments, BlockScaledInstance};
use half::bf16;

use super::fp8::Float8;
use super::grouped::{self, Candidate};
use super::tma_operand::TmaOperand;
use crate::gemm::block_scales::BlockScales;
use crate::gemm::choice::cost::TMA_UNIT;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, LaunchPlan, has_code};
use crate::gemm::scales::Scales;
use crate::matrix::{pointer, pointer_mut};
use crate::{Order, Result};

/// Plans a C of bf16. None if kernels cannot read the operands or the scales where they are.
pub fn to_bf16<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    let orders = [problem.a.order(), problem.b.order()];
    let is_k_major = orders == [Order::RowMajor, Order::ColMajor];
    // Scales have no outer mode of the batch.
    let has_inner_mode = problem.groups.modes[1].count == 1;
    if !is_k_major || !has_inner_mode || !grouped::fits(problem) || !are_read(&scales_of(problem)) {
        return Ok(None);
    }
    let backend = stream.device().backend();
    let kernels = T::block_scaled_groups()
        .iter()
        .filter(|it| has_code(backend, it.kernel))
        .filter(|it| named.kernel.is_none_or(|name| it.traits.name() == name));
    let Some(candidate) = grouped::choose(stream, problem, kernels.map(|it| &it.traits)) else {
        return Ok(None);
    };
    let is_it = |it: &&BlockScaledInstance| ptr::eq(&it.traits, candidate.traits);
    let Some(instance) = T::block_scaled_groups().iter().find(is_it) else {
        return Ok(None);
    };
    let (name, time) = (candidate.traits.name(), candidate.microseconds);
    let launch = GroupedLaunch {
        function: stream.device().load(&PTX, instance.kernel)?,
        instance,
        candidate,
    };
    Ok(Some(LaunchPlan::new(name, time, launch)))
}

/// The scales of the problem.
fn scales_of<'a, T: Float8>(problem: &Problem<'a, T, bf16>) -> BlockScales<'a> {
    match problem.scales {
        Scales::Blocks(scales) => scales,
        Scales::None | Scales::Outer(_) => unreachable!("the kernels are for scales of blocks"),
    }
}

/// Whether kernels can read the scales where they are. Those of one A may be copied.
fn are_read(scales: &BlockScales<'_>) -> bool {
    let [a, b] = [scales.a, scales.b].map(|it| it.first.in_one_run());
    let Some([stride_a, _]) = scales.strides() else {
        return false;
    };
    if stride_a == 0 && scales.a.repeats.count() > 1 {
        // The map has scales for each A, which are not the same.
        return false;
    }
    let unit = TMA_UNIT / size_of::<f32>();
    let is_aligned = stride_a.is_multiple_of(unit) && a.starts_runs_at(TMA_UNIT);
    let is_read = is_aligned && a.order() == Order::ColMajor;
    b.order() == Order::ColMajor && (is_read || scales.a.repeats.count() == 1)
}

/// A kernel that is chosen and loaded.
struct GroupedLaunch {
    function: Function<BlockScaledArguments>,
    instance: &'static BlockScaledInstance,
    candidate: Candidate,
}

impl<T: Float8> Launch<T, bf16> for GroupedLaunch {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, bf16>) -> Result<()> {
        let (scales, traits) = (scales_of(&problem), self.candidate.traits);
        let [of_a, of_b] = scales.strides().unwrap_or_default();
        let a = TmaOperand::in_order(stream, scales.a.first.in_one_run(), Order::ColMajor)?;
        let (a, b) = (a.matrix(), scales.b.first.in_one_run());
        let count = scales.a.repeats.count() as u64;
        let map_scales = TensorMapSpec::rows(a.columns() as u64, a.rows() as u64, a.ld() as u64)
            .stacked(count, of_a as u64)
            .encode(a.view, self.instance.box_scales)?;
        let scales_b = ScalesOfBlocks {
            first: pointer(b.view),
            ld: b.ld() as i64,
            stride: of_b as i64,
            last: b.columns() as i64 - 1,
        };
        let [map_a, map_b, map_c] = grouped::maps(&problem, traits)?;
        let (c, nowhere) = (pointer_mut(problem.c.view.address()), pointer_mut(0));
        let args = grouped::args(&problem, &self.candidate);
        let scale = Scale {
            alpha: problem.alpha,
            beta: problem.beta,
        };
        let config = LaunchConfig {
            cluster: traits.blocks_of_cluster(),
            ..LaunchConfig::dependent(self.candidate.blocks)
        };
        let all = (
            map_a, map_b, map_c, map_scales, scales_b, c, nowhere, args, scale,
        );
        // SAFETY: the maps describe the matrices and A's scales, which were checked against their memory, as were B's
        // scales, of which there is one for each block. C overlaps nothing that is read, and is borrowed mutably. There
        // is a size for each group.
        unsafe { stream.launch(&self.function, config, all)? };
        Ok(())
    }
}
