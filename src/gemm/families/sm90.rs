//! GEMM of bf16 and f16 on Hopper's tensor cores: the path of a problem from accumulators to C.
//!
//! A kernel itself writes a C of its operands' type, and some write a C of f32. For a C of another type, and for an epilogue that no kernel fuses,
//! the kernel writes partial output in f32. If a C of f32 is just the accumulators, C itself is the partial output.
//! Otherwise the partial output goes to scratch memory, and a second kernel makes C of it. If k is split, the partials
//! go to scratch memory, and the fixup or a second kernel adds them.

mod block_scaled;
mod block_scaled_groups;
mod epilogue_plan;
mod fixup;
mod fp8;
mod grouped;
mod i8;
mod k_major;
mod launch;
mod outer_scaled;
mod prefetch;
mod quantized_e4m3;
mod scaled_groups;
mod sm_affinity;
mod tma_operand;

use std::fmt::Display;
use std::ptr;

use cutlet_device::DeviceData;
use cutlet_host::{Backend, Device, Stream, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{
    AtLeast, Epilogue, Gelu, GeluForBf16, Linear, Scale, Silu, Then,
};
use cutlet_kernels::gemm::sm90::grouped_instances::{
    GATHERED_BF16, GATHERED_F16, GROUPED_BF16, GROUPED_F16, SCATTERED_BF16, SCATTERED_F16,
    SWIGLU_BF16, SWIGLU_F16,
};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::instances::{
    BF16, BF16_TO_F32, F16, F16_TO_F32, GELU_BF16, GELU_F16, LINEAR_BF16, LINEAR_F16, SILU_BF16,
    SILU_F16,
};
use cutlet_kernels::gemm::sm90::{AccOf, ElementTypes, InOut, OperandElement, Scaling, Unscaled};
use cutlet_kernels::gemm::split_k_reduce::{split_k_reduce_bf16, split_k_reduce_f16};
use cutlet_kernels::gemm::store::PartialOutput;
use half::{bf16, f16};

use crate::gemm::Activation;
use crate::gemm::choice;
use crate::gemm::choice::cost::{Candidate, CostInput, OutputPath, TMA_UNIT, by_model};
use crate::gemm::choice::decomposition::{Decomposition, Named};
use crate::gemm::choice::device_speed::DeviceSpeed;
use crate::gemm::operand::Operand;
use crate::gemm::partials::{Output, SplitKReduce};
use crate::gemm::problem::Problem;
use crate::gemm::registry::{
    Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan, has_code,
};
use crate::{Error, MatrixMut, Order, Result};
pub use epilogue_plan::EpiloguePlan;
use fixup::FixupCounters;
pub use fp8::Fp8;
use grouped::grouped;
pub use i8::I8;
pub use k_major::Tf32;
use launch::{Prepared, To, Types, Workspace};
pub use quantized_e4m3::QuantizedE4m3;
use tma_operand::TmaOperand;

/// A plain kernel and an epilogue pass are chosen if their time is below this share of a fusing kernel's, by the model.
/// If the model estimates both alike, fusing is faster: 0.99 of cuBLASLt's speed against 0.86 at 2048×5120×20480 with a
/// bias.
const SECOND_KERNEL_PAYS: f64 = 0.95;

/// A kernel that stores f32 is chosen if its time is at most this multiple of partial output's, by the model, which does
/// not know that TMA stores while the next tile is multiplied.
const PARTIAL_OUTPUT_PAYS: f64 = 1.1;

/// A kernel that fuses a bias or a residual, and then the activation `A`.
type Fusing<T, A> = Instance<T, Then<Linear<T>, A>>;

/// An element type of the family's kernels.
trait Element:
    TensorMapElement
    + Operand<Factor = f32>
    + OperandElement
    + Output<Acc = f32>
    + ElementTypes<In = Self, Out = Self, Scaling = Unscaled>
{
    /// The kernels that fuse nothing.
    fn plain() -> &'static [Instance<Self>];
    /// The kernels that fuse nothing and store a C of f32.
    fn plain_to_f32() -> &'static [Instance<InOut<Self, f32>>];
    /// The kernels for groups.
    fn grouped() -> &'static [Instance<Self>];
    /// The kernels that gather A.
    fn gathered() -> &'static [Instance<Self>];
    /// The kernels that scatter C.
    fn scattered() -> &'static [Instance<Self>];
    /// The kernels that fuse SwiGLU.
    fn swiglu() -> &'static [Instance<Self>];
    /// The kernels that fuse a bias or a residual, and then ReLU or no activation.
    fn linear() -> &'static [Fusing<Self, AtLeast>];
    /// The epilogue that computes GELU.
    type Gelu: Epilogue<Acc = f32>;
    const GELU: Self::Gelu;
    /// The kernels that fuse GELU.
    fn gelu() -> &'static [Fusing<Self, Self::Gelu>];
    /// The kernels that fuse SiLU.
    fn silu() -> &'static [Fusing<Self, Silu>];
    /// The split-K reduction without a fused epilogue.
    const SPLIT_K_REDUCE_PLAIN: &'static SplitKReduce<Self, Scale>;
}

macro_rules! element_types {
    ($($element:ty: $plain:ident, $plain_to_f32:ident, $grouped:ident, $gathered:ident, $scattered:ident, $swiglu:ident, $linear:ident,
        $gelu:ident by $gelu_type:ident, $silu:ident,
        $split_k_reduce:ident;)+) => {$(
        impl Element for $element {
            fn plain() -> &'static [Instance<Self>] {
                $plain
            }
            fn plain_to_f32() -> &'static [Instance<InOut<Self, f32>>] {
                $plain_to_f32
            }
            fn grouped() -> &'static [Instance<Self>] {
                $grouped
            }
            fn gathered() -> &'static [Instance<Self>] {
                $gathered
            }
            fn scattered() -> &'static [Instance<Self>] {
                $scattered
            }
            fn swiglu() -> &'static [Instance<Self>] {
                $swiglu
            }
            fn linear() -> &'static [Fusing<Self, AtLeast>] {
                $linear
            }
            type Gelu = $gelu_type;
            const GELU: $gelu_type = $gelu_type;
            fn gelu() -> &'static [Fusing<Self, $gelu_type>] {
                $gelu
            }
            fn silu() -> &'static [Fusing<Self, Silu>] {
                $silu
            }
            const SPLIT_K_REDUCE_PLAIN: &'static SplitKReduce<Self, Scale> = &$split_k_reduce;
        }
    )+};
}
element_types! {
    bf16: BF16, BF16_TO_F32, GROUPED_BF16, GATHERED_BF16, SCATTERED_BF16, SWIGLU_BF16, LINEAR_BF16,
        GELU_BF16 by GeluForBf16, SILU_BF16, split_k_reduce_bf16;
    f16: F16, F16_TO_F32, GROUPED_F16, GATHERED_F16, SCATTERED_F16, SWIGLU_F16, LINEAR_F16,
        GELU_F16 by Gelu, SILU_F16, split_k_reduce_f16;
}

/// The family's name.
const NAME: &str = "gemm-sm90";

/// The compute capability that has `wgmma`, and that the kernels are compiled for.
const HOPPER: (u32, u32) = (9, 0);

/// Refuses a GPU of another compute capability.
fn supports<D: Display>(
    capability: Option<(u32, u32)>,
    describe: impl FnOnce() -> D,
) -> Result<()> {
    match capability {
        Some((major, minor)) if (major, minor) != HOPPER => Err(Error::Device {
            asked: "gemm by wgmma, whose kernels are for Hopper (compute capability 9.0),",
            found: format!("{}, compute capability {major}.{minor}", describe()),
        }),
        _ => Ok(()),
    }
}

/// The instances for operands of these orders that the backend runs. With a name, only the instance of this name.
fn of_orders<T: ElementTypes, Epi>(
    all: &'static [Instance<T, Epi>],
    backend: Backend,
    [a, b]: [Order; 2],
    kernel: Option<&str>,
) -> Vec<&'static Instance<T, Epi>> {
    let k_major = [a == Order::RowMajor, b == Order::ColMajor];
    all.iter()
        .filter(|it| it.traits.k_major == it.traits.oriented(k_major))
        .filter(|instance| has_code(backend, instance.kernel))
        .filter(|instance| kernel.is_none_or(|name| instance.name() == name))
        .collect()
}

fn names<T: ElementTypes, Epi>(instances: Vec<&'static Instance<T, Epi>>) -> Vec<&'static str> {
    let names = instances.into_iter().map(|instance| instance.name());
    names.collect()
}

/// The names of the kernels that write a C of the operands' type.
fn candidates<T: Element>(query: KernelQuery) -> Vec<&'static str> {
    let KernelQuery {
        backend, orders, ..
    } = query;
    match (query.indexed, query.fused) {
        (IndexedOperand::None, Fused::Swiglu) => {
            return names(of_orders(T::swiglu(), backend, orders, None));
        }
        (IndexedOperand::None, _) => {}
        (IndexedOperand::A, Fused::Nothing) => {
            return names(of_orders(T::gathered(), backend, orders, None));
        }
        (IndexedOperand::C, Fused::Nothing) => {
            return names(of_orders(T::scattered(), backend, orders, None));
        }
        (IndexedOperand::A | IndexedOperand::C, _) => return Vec::new(),
    }
    let activation = match (query.fused, query.of_batches) {
        (Fused::Nothing, false) => return names(of_orders(T::plain(), backend, orders, None)),
        (Fused::Nothing, true) => return names(of_orders(T::grouped(), backend, orders, None)),
        (Fused::Something(activation), false) => activation,
        (Fused::Something(_), true) | (Fused::Swiglu, _) => return Vec::new(),
    };
    match activation {
        None | Some(Activation::Relu) => names(of_orders(T::linear(), backend, orders, None)),
        Some(Activation::Gelu) => names(of_orders(T::gelu(), backend, orders, None)),
        Some(Activation::Silu) => names(of_orders(T::silu(), backend, orders, None)),
        // No kernel fuses it: a second kernel applies it to the product of a plain one.
        Some(Activation::GeluErf) => names(of_orders(T::plain(), backend, orders, None)),
    }
}

/// The names of the kernels for a C of another type. No kernel fuses anything then, computes a batch or finds rows.
fn plain_candidates<T: Element>(query: KernelQuery) -> Vec<&'static str> {
    match (query.fused, query.of_batches, query.indexed) {
        (Fused::Nothing, false, IndexedOperand::None) => candidates::<T>(query),
        _ => Vec::new(),
    }
}

/// The names of the kernels for a C of f32.
fn candidates_for_f32<T: Element>(query: KernelQuery) -> Vec<&'static str> {
    let mut all = plain_candidates::<T>(query);
    if !all.is_empty() {
        let storing_f32 = of_orders(T::plain_to_f32(), query.backend, query.orders, None);
        all.extend(names(storing_f32));
    }
    all
}

/// The plain kernels for the problem's orders. With a name, only the kernel of this name.
fn plain_kernels<T: Element, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    named: Named<'_>,
) -> Vec<&'static Instance<T>> {
    let orders = [problem.a.order(), problem.b.order()];
    of_orders(T::plain(), stream.device().backend(), orders, named.kernel)
}

/// An instance, and how it is launched.
type Selected<T, Epi = Scale<AccOf<T>>> = (&'static Instance<T, Epi>, Candidate);

/// The same, with the model's input.
type SelectedFor<T, Epi = Scale<AccOf<T>>> = (Selected<T, Epi>, CostInput);

/// The instance that is estimated to be the fastest. None if there are none.
fn fastest<T: ElementTypes, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
) -> Option<Selected<T, Epi>> {
    let all: Vec<_> = instances.iter().map(|it| &it.traits).collect();
    let candidate = choice::fastest(&all, input)?;
    let is_it = |it: &&&'static Instance<T, Epi>| ptr::eq(&it.traits, candidate.instance);
    Some((instances.iter().find(is_it)?, candidate))
}

/// The model's input for the problem.
fn cost_input<T: TensorMapElement + Operand, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    named: Named<'_>,
) -> CostInput {
    let (m, n, k) = problem.extents();
    CostInput {
        lines: [&problem.a, &problem.b].map(TmaOperand::cache_lines),
        bytes_ab: size_of::<T>(),
        bytes_c: size_of::<D>(),
        allows_fixup: false,
        decomposition: named.decomposition,
        // With k = 0, zeros are multiplied.
        ..CostInput::plain([m, n, k.max(1)], DeviceSpeed::of(stream.device()))
    }
}

/// Whether TMA can store C. TMA writes units of 16 bytes of a row.
fn tma_stores<T: DeviceData>(c: &MatrixMut<'_, T>) -> bool {
    c.starts_runs_at(TMA_UNIT) && c.columns().is_multiple_of(TMA_UNIT / size_of::<T>())
}

macro_rules! family {
    ($(#[$doc:meta])* $name:ident, <$t:ident $(, $d:ident)?> to $c:ty, plan $plan:ident, of several $of_several:literal, $several:expr,
        names $names:ident, decompositions $decompositions:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl<$t: Element $(, $d: Output<Acc = f32>)?> Family<$t, $c> for $name {
            fn name(&self) -> &'static str {
                NAME
            }

            fn fuses_gates(&self) -> bool {
                $of_several
            }

            fn sums_outer_k(&self) -> bool {
                $of_several
            }

            fn supports(&self, device: &Device) -> Result<()> {
                if $t::plain().is_empty() {
                    return Err(Error::NotBuilt {
                        operation: "gemm",
                        family: NAME,
                        feature: "hopper",
                    });
                }
                supports(device.compute_capability(), || device.describe())
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                $names::<$t>(query)
            }

            fn decompositions(
                &self,
                stream: &Stream,
                problem: &Problem<'_, $t, $c>,
                kernel: &str,
            ) -> Vec<Decomposition> {
                match is_one_product(problem) {
                    true => $decompositions(stream, problem, kernel),
                    false => Vec::new(),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, $t, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<$t, $c>>> {
                if !is_one_product(problem) {
                    return $several(stream, problem, kernel);
                }
                $plan(stream, problem, Named::of(kernel))
            }
        }
    };
}
family! {
    /// C of the operands' type.
    ToSameType, <T> to T, plan to_same_type, of several true, grouped,
    names candidates, decompositions decompositions
}
family! {
    /// C of f32.
    ToF32, <T> to f32, plan to_f32, of several false, |_, _, _| Ok(None),
    names candidates_for_f32, decompositions |_, _, _| Vec::new()
}
family! {
    /// C of another type, which no kernel of the family writes.
    ToOtherType, <T, D> to D, plan by_second_kernel, of several false, |_, _, _| Ok(None),
    names plain_candidates, decompositions |_, _, _| Vec::new()
}

/// Whether there is one product, of its own rows, without gates and without an outer mode of k.
fn is_one_product<T: Element, D: DeviceData>(problem: &Problem<'_, T, D>) -> bool {
    let is_one = problem.groups.are_one() && problem.outer_k.count == 1;
    is_one && problem.rows.are_own() && problem.epilogue.gate.is_none()
}

/// Plans a C of the operands' type.
fn to_same_type<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, T>>> {
    if problem.epilogue.are_none() {
        return plain(stream, problem, named);
    }
    match problem.epilogue.activation {
        None => fused(
            stream,
            problem,
            named,
            T::linear(),
            AtLeast::new(f32::NEG_INFINITY),
        ),
        Some(Activation::Relu) => fused(stream, problem, named, T::linear(), AtLeast::new(0.0)),
        Some(Activation::Gelu) => fused(stream, problem, named, T::gelu(), T::GELU),
        Some(Activation::Silu) => fused(stream, problem, named, T::silu(), Silu),
        Some(Activation::GeluErf) => by_second_kernel(stream, problem, named),
    }
}

/// Plans a C of the operands' type, with nothing fused.
fn plain<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, T>>> {
    let (kernels, input) = plain_candidates_of(stream, problem, named);
    match fastest(&kernels, &input) {
        Some(selected) => {
            let launch = Plain(Prepared::new(stream, &PTX, selected, input)?);
            Ok(Some(plan_of(
                stream,
                problem,
                (&selected.1, &input),
                launch,
            )))
        }
        // The kernel of this name cannot write C itself.
        None => by_second_kernel(stream, problem, named),
    }
}

/// The plain kernels that write the problem's C themselves, and the model's input.
fn plain_candidates_of<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    named: Named<'_>,
) -> (Vec<&'static Instance<T>>, CostInput) {
    let overwrites = problem.beta == 0.0 && tma_stores(&problem.c);
    let mut kernels = plain_kernels(stream, problem, named);
    kernels.retain(|instance| overwrites || !instance.traits.overwrites_only);
    let input = CostInput {
        allows_fixup: FixupCounters::of(stream).is_some(),
        ..cost_input(stream, problem, named)
    };
    (kernels, input)
}

/// The decompositions in which this kernel may solve the problem, besides the one that is estimated to be the fastest.
fn decompositions<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    kernel: &str,
) -> Vec<Decomposition> {
    let named = Named::of(Some(kernel));
    let (kernels, input) = plain_candidates_of(stream, problem, named);
    let ([instance], true) = (&kernels[..], problem.epilogue.are_none()) else {
        return Vec::new();
    };
    let launched = |decomposition| {
        let input = CostInput {
            decomposition,
            ..input
        };
        by_model(&instance.traits, &input, 0.0, f64::INFINITY).map(|it| it.decomposition)
    };
    let estimated = launched(None);
    let all = Decomposition::ALL.into_iter().map(Some);
    all.filter(|it| *it != estimated)
        .filter_map(launched)
        .collect()
}

/// Plans a C of the operands' type, with something fused: by a fusing kernel, or by a plain kernel and a second kernel.
fn fused<T: Element, A: Epilogue<Acc = f32>>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    named: Named<'_>,
    fusing: &'static [Fusing<T, A>],
    activation: A,
) -> Result<Option<LaunchPlan<T, T>>> {
    let fusing = match problem.reads_pairs() && tma_stores(&problem.c) {
        true => {
            let orders = [problem.a.order(), problem.b.order()];
            of_orders(fusing, stream.device().backend(), orders, named.kernel)
        }
        false => Vec::new(),
    };
    let input = cost_input(stream, problem, named);
    let kernels = plain_kernels(stream, problem, named);
    let (second, second_input) = for_second_kernel(&kernels, stream, problem, named);
    // Only the chosen kernel is loaded: loading may compile its PTX.
    match (fastest(&fusing, &input), second) {
        (Some(selected), second)
            if second.is_none_or(|(_, it)| it.clocks >= SECOND_KERNEL_PAYS * selected.1.clocks) =>
        {
            let launch = FusedLaunch {
                kernel: Prepared::new(stream, &PTX, selected, input)?,
                activation,
            };
            Ok(Some(plan_of(
                stream,
                problem,
                (&selected.1, &input),
                launch,
            )))
        }
        (_, Some(second)) => second_kernel(stream, problem, second, second_input).map(Some),
        (_, None) => Ok(None),
    }
}

/// Plans a C of f32: by a kernel that stores f32, by partial output, or by a second kernel.
fn to_f32<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T, f32>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, f32>>> {
    if !problem.epilogue.are_none() {
        return by_second_kernel(stream, problem, named);
    }
    let kernels = plain_kernels(stream, problem, named);
    let by_partial_output = for_partial_output(&kernels, stream, problem, named);
    if let Some((selected, input)) = for_storing_f32(stream, problem, named, by_partial_output) {
        let launch = StoreF32(Prepared::new(stream, &PTX, selected, input)?);
        return Ok(Some(plan_of(
            stream,
            problem,
            (&selected.1, &input),
            launch,
        )));
    }
    let Some((selected, input)) = by_partial_output else {
        return by_second_kernel(stream, problem, named);
    };
    by_partials_in_f32(stream, problem, selected, input).map(Some)
}

/// Plans a C of f32: the partial output, or made of it by a second kernel.
fn by_partials_in_f32<Ty: Types<In: Operand<Factor = f32>, Scaling: Scaling<Acc = f32>>>(
    stream: &Stream,
    problem: &Problem<'_, Ty::In, f32>,
    selected: Selected<Ty>,
    input: CostInput,
) -> Result<LaunchPlan<Ty::In, f32>> {
    let (_, candidate) = selected;
    let prepared = Prepared::new(stream, &PTX, selected, input)?;
    let adds = problem.beta != 0.0;
    let estimate = (&candidate, &input);
    Ok(match candidate.path {
        OutputPath::Direct => {
            let launch = Accumulate { prepared, adds };
            plan_of(stream, problem, estimate, launch)
        }
        _ => plan_of(stream, problem, estimate, SecondKernel(prepared)),
    })
}

/// The plain kernel that is the fastest with partial output, with the model's input. C itself is the partial output if
/// it is alpha·A·B, or alpha·A·B + C, and threads can write pairs to it.
fn for_partial_output<Ty: Types<In: Operand<Factor = f32>, Scaling: Scaling<Acc = f32>>>(
    kernels: &[&'static Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, f32>,
    named: Named<'_>,
) -> Option<SelectedFor<Ty>> {
    let c = &problem.c;
    let in_pairs = c.starts_runs_at(2 * size_of::<f32>()) && c.columns().is_multiple_of(2);
    let adds = problem.beta == 1.0;
    if !(in_pairs && (adds || problem.beta == 0.0)) {
        return None;
    }
    let mut input = cost_input(stream, problem, named);
    input.c_is_partial_output = true;
    if adds {
        input.bytes_c *= 2;
    }
    let selected = fastest(kernels, &input)?;
    Some((selected, input))
}

/// The fastest kernel that stores f32, with the model's input. None if there is no such kernel, or if partial output is
/// faster: it is where TMA cannot overwrite C.
fn for_storing_f32<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T, f32>,
    named: Named<'_>,
    by_partial_output: Option<SelectedFor<T>>,
) -> Option<SelectedFor<InOut<T, f32>>> {
    let orders = [problem.a.order(), problem.b.order()];
    let backend = stream.device().backend();
    let overwrites = problem.beta == 0.0 && tma_stores(&problem.c);
    let mut kernels = of_orders(T::plain_to_f32(), backend, orders, named.kernel);
    kernels.retain(|instance| overwrites || !instance.traits.overwrites_only);
    let input = CostInput {
        allows_fixup: FixupCounters::of(stream).is_some(),
        allows_second_kernel: false,
        ..cost_input(stream, problem, named)
    };
    let selected = fastest(&kernels, &input)?;
    let pays = by_partial_output.is_none_or(|((_, partial), _)| {
        overwrites && selected.1.clocks <= PARTIAL_OUTPUT_PAYS * partial.clocks
    });
    pays.then_some((selected, input))
}

/// Plans any C: a second kernel makes it of partial output.
fn by_second_kernel<T: Element, D: Output<Acc = f32>>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, D>>> {
    by_second_kernel_of(
        &plain_kernels(stream, problem, named),
        stream,
        problem,
        named,
    )
}

/// The same, by one of these kernels.
fn by_second_kernel_of<Ty: Types<In: Operand<Factor = AccOf<Ty>>>, D: Output<Acc = AccOf<Ty>>>(
    kernels: &[&'static Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, D>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<Ty::In, D>>> {
    match for_second_kernel(kernels, stream, problem, named) {
        (Some(selected), input) => second_kernel(stream, problem, selected, input).map(Some),
        (None, _) => Ok(None),
    }
}

/// The plain kernel that is the fastest if a second kernel makes C, with the model's input.
fn for_second_kernel<Ty: Types<In: Operand>, D: DeviceData>(
    kernels: &[&'static Instance<Ty>],
    stream: &Stream,
    problem: &Problem<'_, Ty::In, D>,
    named: Named<'_>,
) -> (Option<Selected<Ty>>, CostInput) {
    let input = CostInput {
        needs_second_kernel: true,
        ..cost_input(stream, problem, named)
    };
    (fastest(kernels, &input), input)
}

/// Plans this plain kernel, and a second kernel.
fn second_kernel<Ty: Types<In: Operand<Factor = AccOf<Ty>>>, D: Output<Acc = AccOf<Ty>>>(
    stream: &Stream,
    problem: &Problem<'_, Ty::In, D>,
    selected: Selected<Ty>,
    input: CostInput,
) -> Result<LaunchPlan<Ty::In, D>> {
    let launch = SecondKernel(Prepared::new(stream, &PTX, selected, input)?);
    Ok(plan_of(stream, problem, (&selected.1, &input), launch))
}

/// The plan of a candidate's launch, after operands that TMA cannot read are copied.
fn plan_of<T: Operand, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    (candidate, input): (&Candidate, &CostInput),
    launch: impl Launch<T, D> + 'static,
) -> LaunchPlan<T, D> {
    let clocks = candidate.clocks + TmaOperand::copying(stream, problem);
    let time = input.device.microseconds(clocks);
    LaunchPlan::new(candidate.instance.name(), time, launch)
}

/// Launches a kernel that writes C itself. False if it needs counters for the fixup and the stream has none: then
/// nothing is launched.
fn write_c<Ty: Types<In: Operand<Factor = AccOf<Ty>>>>(
    kernel: &Prepared<Ty, Scale<AccOf<Ty>>>,
    stream: &Stream,
    problem: &mut Problem<'_, Ty::In, Ty::Out>,
) -> Result<bool> {
    let scale = Scale {
        alpha: problem.alpha,
        beta: problem.beta,
    };
    write_c_with(kernel, scale, stream, problem)
}

/// [`write_c`] by a kernel with this epilogue.
fn write_c_with<Ty: Types<In: Operand>, Epi: Epilogue>(
    kernel: &Prepared<Ty, Epi>,
    epilogue: Epi,
    stream: &Stream,
    problem: &mut Problem<'_, Ty::In, Ty::Out>,
) -> Result<bool> {
    let counters = match kernel.path() {
        OutputPath::Fixup => match FixupCounters::of(stream) {
            None => return Ok(false),
            counters => counters,
        },
        _ => None,
    };
    let operands = TmaOperand::both(stream, problem)?;
    let matrices = operands.each_ref().map(TmaOperand::matrix);
    let c = &mut problem.c;
    match counters {
        Some(counters) => kernel.launch_with_fixup(stream, matrices, c, epilogue, &counters)?,
        None => kernel.launch(stream, matrices, To::C(c), epilogue, Workspace::NONE)?,
    }
    Ok(true)
}

/// C by a kernel that fuses nothing, with or without splits.
struct Plain<T: Element>(Prepared<T, Scale>);

impl<T: Element> Launch<T, T> for Plain<T> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T>) -> Result<()> {
        let Self(kernel) = self;
        if kernel.path() == OutputPath::SecondKernel {
            let scale = Scale {
                alpha: problem.alpha,
                beta: problem.beta,
            };
            let operands = TmaOperand::both(stream, &problem)?;
            let matrices = operands.each_ref().map(TmaOperand::matrix);
            let partials = kernel.launch_for_partials(stream, matrices)?;
            let c = &mut problem.c;
            // SAFETY: the epilogue has no operands, and the partials are of C.
            return unsafe { partials.reduce(stream, T::SPLIT_K_REDUCE_PLAIN, scale, c) };
        }
        if write_c(kernel, stream, &mut problem)? {
            return Ok(());
        }
        // The plan's stream had counters, and this stream has none.
        match plain(stream, &problem, Named::default())? {
            Some(plan) => plan.launch(stream, problem),
            None => unreachable!("every problem has a plain kernel"),
        }
    }
}

/// C by a kernel that fuses a bias or a residual, and then an activation.
struct FusedLaunch<T: Element, A: Epilogue<Acc = f32>> {
    kernel: Prepared<T, Then<Linear<T>, A>>,
    activation: A,
}

impl<T: Element, A: Epilogue<Acc = f32>> Launch<T, T> for FusedLaunch<T, A> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T>) -> Result<()> {
        let epilogue = Then {
            first: problem.linear(),
            second: self.activation,
        };
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let to = To::C(&mut problem.c);
        self.kernel
            .launch(stream, matrices, to, epilogue, Workspace::NONE)
    }
}

/// A C of f32 by a kernel that stores f32.
struct StoreF32<T: Element>(Prepared<InOut<T, f32>, Scale>);

impl<T: Element> Launch<T, f32> for StoreF32<T> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, f32>) -> Result<()> {
        let Self(kernel) = self;
        if write_c(kernel, stream, &mut problem)? {
            return Ok(());
        }
        // The plan's stream had counters, and this stream has none.
        match to_f32(stream, &problem, Named::default())? {
            Some(plan) => plan.launch(stream, problem),
            None => unreachable!("every problem has a plain kernel"),
        }
    }
}

/// A C of f32 as partial output.
struct Accumulate<Ty: Types> {
    prepared: Prepared<Ty, Scale<AccOf<Ty>>>,
    adds: bool,
}

impl<Ty: Types<In: Operand<Factor = f32>, Scaling: Scaling<Acc = f32>>> Launch<Ty::In, f32>
    for Accumulate<Ty>
{
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, Ty::In, f32>) -> Result<()> {
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let scale = Scale {
            alpha: problem.alpha,
            beta: 0.0,
        };
        let c = &mut problem.c;
        let to = To::Partial {
            output: PartialOutput::rows(c.ld(), self.adds),
            extent: [c.rows(), c.columns()],
            elements: c.view.reborrow(),
        };
        self.prepared
            .launch(stream, matrices, to, scale, Workspace::NONE)
    }
}

/// Any C, by a second kernel from partial output in scratch memory.
struct SecondKernel<Ty: Types>(Prepared<Ty, Scale<AccOf<Ty>>>);

impl<Ty: Types<In: Operand<Factor = AccOf<Ty>>>, D: Output<Acc = AccOf<Ty>>> Launch<Ty::In, D>
    for SecondKernel<Ty>
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, Ty::In, D>) -> Result<()> {
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let partials = self.0.launch_for_partials(stream, matrices)?;
        // SAFETY: the partials are of the problem's C.
        unsafe { partials.finish(stream, problem) }
    }
}

#[cfg(test)]
mod tests {
    use cutlet_device::collective::StreamedTiles;
    use cutlet_host::Buffer;
    use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;

    use super::*;
    use crate::gemm::choice::cost::streamed_tiles;
    use crate::{Gemm, Matrix};

    /// Small whole numbers, so that products and sums are exact.
    fn small(count: usize) -> Vec<bf16> {
        let small = |i: usize| bf16::from_f32((i * 7 % 11 % 3) as f32 - 1.0);
        (0..count).map(small).collect()
    }

    /// How an instance is launched.
    #[derive(Clone, Copy)]
    enum Way {
        /// With this number of splits.
        Splits(u32, OutputPath),
        /// On this number of clusters, which stream this number of their tiles.
        Streams { clusters: u32, tiles: u32 },
    }

    impl Way {
        fn candidate(self, instance: &'static KernelTraits, input: &CostInput) -> Candidate {
            let input = input.oriented(instance);
            let [rows, columns] = input.clusters(instance);
            let clusters_of_tiles = rows * columns;
            let tiles = clusters_of_tiles * instance.blocks_of_cluster() as usize;
            let plain = Candidate {
                instance,
                decomposition: Decomposition::DataParallel,
                splits: 1,
                path: OutputPath::Fixup,
                work_tiles: tiles,
                streamed: StreamedTiles::NONE,
                blocks: tiles as u32,
                claims_slots: false,
                clocks: 0.0,
            };
            match self {
                Way::Splits(splits, path) => Candidate {
                    splits,
                    path,
                    work_tiles: tiles * splits as usize,
                    blocks: tiles as u32 * splits,
                    ..plain
                },
                Way::Streams { clusters, tiles } => {
                    let count = (tiles as usize).min(clusters_of_tiles);
                    let first = clusters_of_tiles - count;
                    let k_tiles = input.k_tiles(instance);
                    Candidate {
                        streamed: streamed_tiles(first, count, k_tiles, clusters as usize),
                        blocks: clusters * instance.blocks_of_cluster(),
                        ..plain
                    }
                }
            }
        }
    }

    /// Computes C = A·B + beta·C by this instance.
    fn multiply(
        stream: &Stream,
        instance: &'static Instance<bf16>,
        way: Way,
        [a, b]: [Matrix<'_, bf16>; 2],
        beta: f32,
        c: &mut Buffer<bf16>,
    ) -> Result<()> {
        let c = MatrixMut::row_major(c, a.rows(), b.columns())?;
        let mut gemm = Gemm::new(a, b, c).beta(beta);
        let problem = Problem::new(stream, &mut gemm)?;
        let input = cost_input(stream, &problem, Named::default());
        let selected = (instance, way.candidate(&instance.traits, &input));
        Plain(Prepared::new(stream, &PTX, selected, input)?).launch(stream, problem)
    }

    /// Checks C of several launches, because each must leave the counters as it found them. Half of them are in a
    /// graph.
    fn check_partials(name: &str, [m, n, k]: [usize; 3], way: Way, beta: f32) {
        let mut instances = BF16.iter().filter(|it| it.name() == name);
        let instance = instances.next().expect("the instance exists");
        match way {
            Way::Streams { .. } => assert!(instance.traits.streams_tiles, "{name}"),
            Way::Splits(_, OutputPath::Fixup) => assert!(instance.traits.runs_fixup, "{name}"),
            _ => assert!(
                instance.traits.writes_partials && !instance.traits.transposed,
                "{name}"
            ),
        }
        let stream = Device::auto().stream().unwrap();
        let (a, b, old) = (small(m * k), small(k * n), small(m * n));
        let mut expected = old.clone();
        for (i, c) in expected.iter_mut().enumerate() {
            let (row_a, column_b) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
            let products = row_a.iter().zip(column_b);
            let sum: f32 = products.map(|(a, b)| a.to_f32() * b.to_f32()).sum();
            *c = bf16::from_f32(sum + beta * c.to_f32());
        }
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let operands = [
            Matrix::row_major(&on_a, m, k).unwrap(),
            Matrix::col_major(&on_b, k, n).unwrap(),
        ];
        let mut on_c = stream.upload(&old).unwrap();
        for _ in 0..2 {
            stream.copy_from_host(&old, &mut on_c).unwrap();
            multiply(&stream, instance, way, operands, beta, &mut on_c).unwrap();
            assert_eq!(stream.download(&on_c).unwrap(), expected, "{name}");
        }
        let captured = stream
            .device()
            .capture(|stream| multiply(stream, instance, way, operands, beta, &mut on_c));
        let graph = captured.unwrap();
        for _ in 0..2 {
            stream.copy_from_host(&old, &mut on_c).unwrap();
            // SAFETY: the matrices live until the download.
            unsafe { graph.launch(&stream).unwrap() };
            assert_eq!(
                stream.download(&on_c).unwrap(),
                expected,
                "{name}, in a graph"
            );
        }
    }

    #[test]
    fn only_hopper_and_the_cpu_run_the_kernels() {
        assert!(supports(None, || "cpu").is_ok() && supports(Some((9, 0)), || "gpu").is_ok());
        for capability in [(8, 0), (10, 0), (12, 0)] {
            let refused = supports(Some(capability), || "gpu 0")
                .unwrap_err()
                .to_string();
            let (major, minor) = capability;
            let found = format!("was asked for on gpu 0, compute capability {major}.{minor};");
            assert!(refused.contains(&found), "{refused}");
        }
    }

    #[test]
    fn the_fixup_adds_the_partials_of_a_tile() {
        for (name, beta) in [
            ("bf16_64x32x64_1x1_ws", 0.0),
            ("bf16_64x64x64_1x1_ws", 2.0),
            ("bf16_64x64x64_2x1_ws", 0.0),
            ("bf16_128x112x64_1x1_coop", -1.0),
            ("bf16_128x80x64_4x1_coop_kkm", 0.0),
            ("bf16_64x32x64_1x2_ws_kkm", 0.0),
        ] {
            for (extents, splits) in [
                ([70, 200, 640], 2),
                ([129, 72, 200], 3),
                ([30, 40, 1000], 9),
            ] {
                check_partials(name, extents, Way::Splits(splits, OutputPath::Fixup), beta);
            }
        }
    }

    #[test]
    fn streamed_tiles_are_those_of_whole_ones() {
        // All tiles; the last ones, after whole ones; fewer k-tiles than clusters; more tiles than clusters.
        let cases = [
            ([130, 200, 640], 5, 100),
            ([300, 520, 200], 4, 3),
            ([60, 72, 96], 7, 100),
            ([260, 392, 328], 3, 100),
        ];
        for (nth, (name, beta)) in [
            ("bf16_64x32x64_1x1_ws", 0.0),
            ("bf16_64x64x64_4x1_ws", 2.0),
            ("bf16_128x112x64_1x1_coop", -1.0),
            ("bf16_64x32x64_4x2_ws_kkm", 0.0),
        ]
        .into_iter()
        .enumerate()
        {
            // Each kernel has two of the cases, and each case two kernels: all would take a minute.
            for (extents, clusters, tiles) in [cases[nth], cases[(nth + 1) % cases.len()]] {
                check_partials(name, extents, Way::Streams { clusters, tiles }, beta);
            }
        }
    }

    #[test]
    fn a_second_kernel_adds_the_partials_of_tiles_that_overlap() {
        for (name, beta) in [
            ("bf16_64x64x64_1x4_ws", 0.0),
            ("bf16_64x224x64_2x1_pingpong", 2.0),
            ("bf16_128x128x64_2x1_pingpong", 0.0),
            ("bf16_128x112x64_1x1_coop", -1.0),
            ("bf16_192x192x64_1x2_coop3", 0.0),
        ] {
            for (extents, splits) in [
                ([140, 300, 640], 2),
                ([201, 202, 200], 3),
                ([30, 40, 1000], 9),
            ] {
                check_partials(
                    name,
                    extents,
                    Way::Splits(splits, OutputPath::SecondKernel),
                    beta,
                );
            }
        }
    }
}
