//! GEMM of 8-bit floats with scales of blocks.

use std::ptr;

use cutlet_device::DeviceData;
use cutlet_device::collective::{ArrivalCounters, DynamicCluster, SmAffinity};
use cutlet_device::tma::TensorMap;
use cutlet_host::{Backend, Function, LaunchConfig, Scratch, Stream, TensorMapSpec};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::args::{
    Args, OutputArgs, SchedulerArgs, TableArgs, TmaArgs, raster, read_once,
};
use cutlet_kernels::gemm::epilogue::{Epilogue, Scale};
use cutlet_kernels::gemm::scheduler::GroupArgs;
use cutlet_kernels::gemm::sm90::instance::{BlockScaledArguments, BlockScaledInstance};
use cutlet_kernels::gemm::sm90::{self, ScalesOfBlocks};
use cutlet_kernels::gemm::store::PartialOutput;
use half::bf16;

use super::fixup::FixupCounters;
use super::fp8::Float8;
use super::launch::{operand_map, splits};
use super::prefetch::prefetch;
use super::tma_operand::TmaOperand;
use super::{block_scaled_groups, cost_input, plan_of, tma_stores};
use crate::gemm::block_scales::BlockScales;
use crate::gemm::choice;
use crate::gemm::choice::cost::{Candidate, CostInput, OutputPath};
use crate::gemm::choice::decomposition::Named;
use crate::gemm::partials::{Output, Partials};
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, LaunchPlan, has_code};
use crate::gemm::scales::Scales;
use crate::matrix::{pointer, pointer_mut};
use crate::{Matrix, Order, Result};

/// The names of the kernels that the device has.
pub fn names(all: &'static [BlockScaledInstance], backend: Backend) -> Vec<&'static str> {
    let all = all.iter().filter(|it| has_code(backend, it.kernel));
    all.map(|it| it.traits.name()).collect()
}

/// Plans a C of bf16.
pub fn to_bf16<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    if !problem.groups.are_one() {
        return block_scaled_groups::to_bf16(stream, problem, named);
    }
    if problem.beta != 0.0 || !problem.epilogue.are_none() {
        return to_any_type(stream, problem, named);
    }
    let input = CostInput {
        allows_fixup: FixupCounters::of(stream).is_some(),
        ..cost_input(stream, problem, named)
    };
    let Some(kernel) = BlockScaled::new(
        T::block_scaled(),
        stream,
        input,
        named,
        tma_stores(&problem.c),
    )?
    else {
        return Ok(None);
    };
    let candidate = kernel.candidate;
    let estimate = (&candidate, &input);
    Ok(Some(plan_of(stream, problem, estimate, ToC(kernel))))
}

/// Plans a C of f32: it may be the partial output itself.
pub fn to_f32<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, f32>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, f32>>> {
    let c = &problem.c;
    let in_pairs = c.starts_runs_at(2 * size_of::<f32>()) && c.columns().is_multiple_of(2);
    let adds = problem.beta == 1.0;
    let is_sums = problem.epilogue.are_none() && (adds || problem.beta == 0.0);
    if !(in_pairs && is_sums && problem.groups.are_one()) {
        return to_any_type(stream, problem, named);
    }
    let input = CostInput {
        c_is_partial_output: true,
        ..cost_input(stream, problem, named)
    };
    let Some(kernel) = BlockScaled::new(T::block_scaled(), stream, input, named, true)? else {
        return Ok(None);
    };
    let candidate = kernel.candidate;
    let launch = ToSums { kernel, adds };
    Ok(Some(plan_of(stream, problem, (&candidate, &input), launch)))
}

/// Plans any C: a second kernel makes it.
pub fn to_any_type<T: Float8, D: Output<Acc = f32>>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, D>>> {
    if !problem.groups.are_one() {
        return Ok(None);
    }
    let input = CostInput {
        needs_second_kernel: true,
        ..cost_input(stream, problem, named)
    };
    let Some(kernel) = BlockScaled::new(T::block_scaled(), stream, input, named, true)? else {
        return Ok(None);
    };
    let candidate = kernel.candidate;
    let estimate = (&candidate, &input);
    Ok(Some(plan_of(
        stream,
        problem,
        estimate,
        BySecondKernel(kernel),
    )))
}

/// C of bf16, by the kernel.
struct ToC(BlockScaled);

impl<T: Float8> Launch<T, bf16> for ToC {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, bf16>) -> Result<()> {
        let ToC(kernel) = self;
        let counters = match kernel.candidate.path {
            OutputPath::Fixup => FixupCounters::of(stream),
            _ => None,
        };
        if kernel.candidate.path == OutputPath::Fixup && counters.is_none() {
            // The plan's stream had counters, and this stream has none.
            return match to_bf16(stream, &problem, Named::default())? {
                Some(plan) => plan.launch(stream, problem),
                None => unreachable!("the problem had a kernel"),
            };
        }
        let c = &problem.c;
        let [.., box_c] = kernel.instance.traits.boxes;
        let map = match tma_stores(c) {
            false => None,
            true => {
                let spec = TensorMapSpec::rows(c.rows() as u64, c.columns() as u64, c.ld() as u64);
                Some(spec.encode(c.view.view(), box_c)?)
            }
        };
        let target = Target {
            address: c.view.address(),
            map,
            ld: c.ld() as i64,
            partial: PartialOutput::NONE,
            partial_extent: [0, 0],
            counters,
        };
        kernel.multiply(stream, &problem, &target, factor(problem.alpha))
    }
}

/// C of f32 as partial output.
struct ToSums {
    kernel: BlockScaled,
    adds: bool,
}

impl<T: Float8> Launch<T, f32> for ToSums {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, f32>) -> Result<()> {
        let c = &problem.c;
        let extent = [c.rows(), c.columns()];
        let rows = PartialOutput::rows(c.ld(), self.adds);
        let target = Target::partial(c.view.address(), rows, extent);
        self.kernel
            .multiply(stream, &problem, &target, factor(problem.alpha))
    }
}

/// Any C, by a second kernel from partial output in scratch memory.
struct BySecondKernel(BlockScaled);

impl<T: Float8, D: Output<Acc = f32>> Launch<T, D> for BySecondKernel {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let BySecondKernel(kernel) = self;
        let traits = &kernel.instance.traits;
        let [rows, columns] = traits.oriented(traits.cluster_tile());
        let (m, n, _) = problem.extents();
        let extent = [m.next_multiple_of(rows), n.next_multiple_of(columns)];
        let partials = Partials::<f32>::new(stream, extent, 1)?;
        let rows = PartialOutput::rows(extent[1], false);
        let target = Target::partial(partials.elements.view().address(), rows, extent);
        kernel.multiply(stream, &problem, &target, Scale::ONE)?;
        // SAFETY: the partials are of the problem's C.
        unsafe { partials.finish(stream, problem) }
    }
}

/// The factor of products, of which nothing is added.
fn factor(alpha: f32) -> Scale {
    Scale { alpha, beta: 0.0 }
}

/// Where a kernel writes: the address, the map of C if TMA stores it, and arguments.
pub struct Target {
    address: u64,
    map: Option<TensorMap>,
    ld: i64,
    partial: PartialOutput,
    partial_extent: [usize; 2],
    /// The counters of the fixup, if it runs.
    counters: Option<FixupCounters>,
}

impl Target {
    /// Memory that the kernel's epilogue knows.
    pub const OF_EPILOGUE: Self = Target {
        address: 0,
        map: None,
        ld: 0,
        partial: PartialOutput::NONE,
        partial_extent: [0, 0],
        counters: None,
    };

    /// Partial output of these rows.
    fn partial(address: u64, partial: PartialOutput, extent: [usize; 2]) -> Self {
        Target {
            address,
            map: None,
            ld: 0,
            partial,
            partial_extent: extent,
            counters: None,
        }
    }
}

/// A kernel with scales and the epilogue `Epi`, chosen and loaded.
pub struct BlockScaled<Epi: Epilogue = Scale> {
    function: Function<BlockScaledArguments<Epi>>,
    instance: &'static BlockScaledInstance<Epi>,
    pub candidate: Candidate,
    /// The problem as the kernel solves it.
    pub input: CostInput,
}

impl<Epi: Epilogue> BlockScaled<Epi> {
    /// The kernel of a list that is estimated to be the fastest, or the one that is named. None if there is none.
    /// Consumers of several M atoms take part if they can write.
    pub fn new(
        all: &'static [BlockScaledInstance<Epi>],
        stream: &Stream,
        input: CostInput,
        named: Named<'_>,
        overwrites: bool,
    ) -> Result<Option<Self>> {
        let backend = stream.device().backend();
        let kernels = all
            .iter()
            .filter(|it| has_code(backend, it.kernel))
            .filter(|it| named.kernel.is_none_or(|name| it.traits.name() == name))
            .filter(|it| overwrites || !it.traits.overwrites_only);
        let input = CostInput {
            allows_second_kernel: false,
            scales_k_tiles: true,
            ..input
        };
        let traits: Vec<_> = kernels.map(|it| &it.traits).collect();
        let Some(candidate) = choice::fastest(&traits, &input) else {
            return Ok(None);
        };
        let is_it = |it: &&BlockScaledInstance<Epi>| ptr::eq(&it.traits, candidate.instance);
        let Some(instance) = all.iter().find(is_it) else {
            return Ok(None);
        };
        Ok(Some(BlockScaled {
            function: stream.device().load(&PTX, instance.kernel)?,
            instance,
            candidate,
            input: input.oriented(&instance.traits),
        }))
    }

    /// Launches the kernel.
    pub fn multiply<T: Float8, D: DeviceData>(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        target: &Target,
        epilogue: Epi,
    ) -> Result<()> {
        let Scales::Blocks(BlockScales { a, b }) = problem.scales else {
            unreachable!("the kernels are for problems with scales");
        };
        let traits = &self.instance.traits;
        let operands = TmaOperand::both(stream, problem)?;
        let [matrix_a, matrix_b] = operands.each_ref().map(TmaOperand::matrix);
        let matrices = match traits.transposed {
            false => [matrix_a, matrix_b],
            true => [matrix_b.transposed(), matrix_a.transposed()],
        };
        // A k-tile's scales of rows are neighbours.
        let [scales_a, scales_b] = [a, b]
            .map(|scales| TmaOperand::in_order(stream, scales.first.in_one_run(), Order::ColMajor));
        let (scales_a, scales_b) = (scales_a?, scales_b?);
        let [box_a, box_b, _] = traits.boxes;
        let map_a = operand_map::<sm90::BlockScaled<T, bf16>>(&matrices[0], box_a)?;
        let map_b = operand_map::<sm90::BlockScaled<T, bf16>>(&matrices[1], box_b)?;
        let of_a = scales_a.matrix();
        let spec = TensorMapSpec::rows(of_a.columns() as u64, of_a.rows() as u64, of_a.ld() as u64);
        let map_scales = spec.encode(of_a.view, self.instance.box_scales)?;
        let of_b = scales_b.matrix();
        let of_b = ScalesOfBlocks {
            first: pointer(of_b.view),
            ld: of_b.ld() as i64,
            stride: 0,
            last: of_b.columns() as i64 - 1,
        };
        let partials = self.partials(stream, target)?;
        let workspace = partials.as_ref().map_or(0, |it| it.view().address());
        let args = self.args(matrices, target);
        let config = LaunchConfig {
            cluster: traits.blocks_of_cluster(),
            ..LaunchConfig::dependent(self.candidate.blocks)
        };
        // An unused map may be any map.
        let map_c = target.map.unwrap_or(map_a);
        let (c, workspace) = (pointer_mut(target.address), pointer_mut(workspace));
        let all = (
            map_a, map_b, map_c, map_scales, of_b, c, workspace, args, epilogue,
        );
        // SAFETY: the maps describe the matrices and A's scales, which were checked against their memory, as were B's
        // scales, of which there is one for each block. C overlaps nothing that is read, and is borrowed mutably.
        // Partial output has room for whole tiles, and the workspace for the partials of all shares. Edge tiles do not
        // shift. Only launches of this stream change the counters, and each leaves them as it found them.
        unsafe { stream.launch(&self.function, config, all)? };
        Ok(())
    }

    /// Memory for the partials of the fixup, if it runs.
    fn partials<'s>(
        &self,
        stream: &'s Stream,
        target: &Target,
    ) -> Result<Option<Scratch<'s, f32>>> {
        if target.counters.is_none() {
            return Ok(None);
        }
        let [rows, columns] = self.instance.traits.tile.map(|extent| extent as usize);
        let elements = self.candidate.shares() * rows * columns;
        Ok(Some(stream.scratch(elements)?))
    }

    /// The arguments for these operands, as the kernel has them.
    fn args<T: Float8>(&self, matrices: [Matrix<'_, T>; 2], target: &Target) -> Args {
        let (traits, input) = (&self.instance.traits, &self.input);
        let extents = [input.m, input.n];
        let raster = raster(extents, traits.tile, traits.cluster);
        let k_tiles = input.k_tiles(traits) as u32;
        let scheduler = SchedulerArgs {
            affinity: SmAffinity::NONE,
            cluster: DynamicCluster::new(traits.cluster),
            raster,
            splits: splits(&self.candidate, input, k_tiles),
            k_tiles,
            streamed: self.candidate.streamed,
            last: [u32::MAX; 2],
        };
        Args {
            prefetch: prefetch(matrices, input, &self.candidate, raster.group()),
            scheduler,
            output: OutputArgs {
                arrivals: match &target.counters {
                    Some(counters) => counters.arrivals(),
                    None => ArrivalCounters::NONE,
                },
                ldc: target.ld,
                partial: target.partial,
                partial_extent: traits.oriented(target.partial_extent).map(|it| it as i32),
                extent: extents.map(|it| it as i32),
            },
            tma: TmaArgs {
                bytes_a: traits.bytes_a(traits.boxes[0].extent[1]),
                read_once: read_once(extents, traits.tile),
                stores_c: target.map.is_some().into(),
            },
            groups: GroupArgs::ONE,
            table: TableArgs::NONE,
        }
    }
}
