//! GEMM with scales of rows and columns by two kernels: the sums go to scratch memory in the type of the factors, and a
//! second kernel scales them and makes C. Products of i8 into floats always take this way where no kernel does both.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Device, Scratch, Stream};
use cutlet_kernels::gemm::epilogue::{Accumulator, AnyActivation, OptionalGeluErf, Then};
use cutlet_kernels::gemm::epilogue_pass::{
    self, FusedWithScales, PassArgs, scaled_pass_bf16, scaled_pass_f16, scaled_pass_f32,
    scaled_pass_of_f32_bf16, scaled_pass_of_f32_f16, scaled_pass_of_f32_f32,
};
use half::{bf16, f16};

use crate::gemm::choice::device_speed::DeviceSpeed;
use crate::gemm::epilogue::EpilogueArgs;
use crate::gemm::operand::{Operand, ScaledOperand};
use crate::gemm::partials::Output;
use crate::gemm::problem::{Groups, Problem};
use crate::gemm::registry::{
    self, Choice, Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan,
};
use crate::gemm::scales::{Scales, ScalesKind};
use crate::gemm::sealed::Families;
use crate::matrix::Extents;
use crate::{Error, MatrixMut, Order, Result};

/// Kernels that write sums, and a second kernel.
#[derive(Debug)]
pub struct BySecondKernel;

/// Clocks that the second kernel takes besides its memory.
const SECOND_KERNEL: f64 = 4000.0;

/// The kernel that scales sums of `S`, applies everything that can be fused, and writes a C of `D`.
type ScaledPass<S, D> = Kernel<(Global<S>, GlobalMut<D>, PassArgs, FusedWithScales<D>)>;

/// An element type of C that sums of `S` are scaled to.
pub trait ScaledOutput<S: Accumulator>: Output<Acc = f32> {
    /// The second kernel.
    const SCALED_PASS: &'static ScaledPass<S, Self>;
}

macro_rules! scaled_output {
    ($($sum:ty => $element:ty: $pass:ident;)+) => {$(
        impl ScaledOutput<$sum> for $element {
            const SCALED_PASS: &'static ScaledPass<$sum, Self> = &$pass;
        }
    )+};
}
scaled_output! {
    i32 => bf16: scaled_pass_bf16;
    i32 => f16: scaled_pass_f16;
    i32 => f32: scaled_pass_f32;
    f32 => bf16: scaled_pass_of_f32_bf16;
    f32 => f16: scaled_pass_of_f32_f16;
    f32 => f32: scaled_pass_of_f32_f32;
}

/// An element type of A and B, with kernels that write its sums.
pub trait Summed: ScaledOperand + Families<<Self as Operand>::Factor> {}
impl<T: ScaledOperand + Families<<T as Operand>::Factor>> Summed for T {}

impl<T: Summed, D: ScaledOutput<T::Factor>> Family<T, D> for BySecondKernel {
    fn name(&self) -> &'static str {
        "gemm-scaled"
    }

    /// Without scales, floats have other kernels.
    fn is_general(&self) -> bool {
        T::IS_ALWAYS_SCALED
    }

    fn supports(&self, device: &Device) -> Result<()> {
        let families = <T as Families<T::Factor>>::families().iter();
        let mut general = families.filter(|family| family.is_general());
        general.try_for_each(|family| family.supports(device))
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        let is_one = !query.of_batches && query.indexed == IndexedOperand::None;
        if !is_one || !scales::<T>(query.scales) {
            return Vec::new();
        }
        // The second kernel fuses whatever is fused.
        let query = KernelQuery {
            fused: Fused::Nothing,
            scales: ScalesKind::None,
            ..query
        };
        let families = <T as Families<T::Factor>>::families().iter();
        families
            .flat_map(|family| family.candidates(query))
            .collect()
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T, D>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<T, D>>> {
        let is_one = problem.groups.are_one() && problem.outer_k.count == 1;
        let is_plain = problem.rows.are_own() && problem.epilogue.gate.is_none();
        if !is_one || !is_plain || !scales::<T>(problem.scales.kind()) {
            return Ok(None);
        }
        let choice = kernel.map_or(Choice::Estimated, Choice::Named);
        let mut memory = memory_of(stream, problem)?;
        let sums = sums_of(problem, &mut memory);
        let types = <T as Families<T::Factor>>::TYPES;
        let families = <T as Families<T::Factor>>::families();
        let sums = match registry::plan(families, types, stream, &sums, choice) {
            Ok(plan) => plan,
            Err(Error::Instance { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(name) = sums.kernel else {
            return Ok(None);
        };
        let time = sums.microseconds + time_of_pass::<T, D>(stream, problem);
        Ok(Some(LaunchPlan::new(name, time, Scaled(sums))))
    }
}

/// Whether the family multiplies by scales of this kind.
fn scales<T: ScaledOperand>(kind: ScalesKind) -> bool {
    match kind {
        ScalesKind::None => T::IS_ALWAYS_SCALED,
        ScalesKind::Outer { .. } => true,
        ScalesKind::Blocks => false,
    }
}

/// The estimated time of the second kernel in microseconds.
fn time_of_pass<T: Summed, D: ScaledOutput<T::Factor>>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
) -> f64 {
    let device = DeviceSpeed::of(stream.device());
    let (m, n, _) = problem.extents();
    let bytes = (m * n * (2 * size_of::<T::Factor>() + size_of::<D>())) as f64;
    device.microseconds(SECOND_KERNEL + bytes / device.bytes_a_clock())
}

/// The sums' kernel, and the second kernel.
struct Scaled<T: Summed>(LaunchPlan<T, T::Factor>);

impl<T: Summed, D: ScaledOutput<T::Factor>> Launch<T, D> for Scaled<T> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, D>) -> Result<()> {
        let Self(sums) = self;
        let mut memory = memory_of(stream, &problem)?;
        if problem.c.columns() < extents_of(&problem).ld {
            // The second kernel reads whole vectors, of which no kernel writes the last elements.
            stream.fill_bytes(memory.view_mut(), 0)?;
        }
        sums.launch(stream, sums_of(&problem, &mut memory))?;
        let (m, n, _) = problem.extents();
        let epilogue = epilogue_of(&problem);
        let in_fours = problem.reads_pairs()
            && problem.scales.are_in_pairs()
            && problem.c.starts_runs_at(4 * size_of::<D>())
            && n.is_multiple_of(4);
        let raster = epilogue_pass::raster([m as i32, n as i32]);
        let extents = PassArgs {
            strides: problem.c.strides(),
            ld: extents_of(&problem).ld as i64,
            m: m as i32,
            n: n as i32,
            in_fours: in_fours.into(),
            raster,
        };
        let function = stream.device().load(&cutlet_kernels::PTX, D::SCALED_PASS)?;
        // SAFETY: the sums have C's extents, in rows of a multiple of four. C and the epilogue's operands were checked
        // against their memory, which lives until the stream has got past the launch.
        unsafe {
            let args = (memory.view(), &mut problem.c.view, extents, epilogue);
            stream.launch(&function, raster.size(), args)?;
        }
        Ok(())
    }
}

/// The whole epilogue, in f32.
fn epilogue_of<T: Summed, D: ScaledOutput<T::Factor>>(
    problem: &Problem<'_, T, D>,
) -> FusedWithScales<D> {
    let activation = problem.epilogue.activation;
    Then {
        first: problem.outer_scaled(),
        second: Then {
            first: Then {
                first: problem.linear_with(1.0, T::to_f32(problem.beta)),
                second: AnyActivation::new(activation),
            },
            second: OptionalGeluErf::new(activation),
        },
    }
}

/// The extents of the sums.
fn extents_of<T: Summed, D: ScaledOutput<T::Factor>>(problem: &Problem<'_, T, D>) -> Extents {
    let (m, n, _) = problem.extents();
    Extents {
        rows: m,
        columns: n,
        ld: n.next_multiple_of(4),
        order: Order::RowMajor,
    }
}

/// Memory for the sums.
fn memory_of<'s, T: Summed, D: ScaledOutput<T::Factor>>(
    stream: &'s Stream,
    problem: &Problem<'_, T, D>,
) -> Result<Scratch<'s, T::Factor>> {
    let Extents { rows, ld, .. } = extents_of(problem);
    Ok(stream.scratch(rows * ld)?)
}

/// The problem whose C is the sums.
fn sums_of<'p, T: Summed, D: ScaledOutput<T::Factor>>(
    problem: &'p Problem<'_, T, D>,
    memory: &'p mut Scratch<'_, T::Factor>,
) -> Problem<'p, T, T::Factor> {
    Problem {
        alpha: T::Factor::ONE,
        a: problem.a,
        b: problem.b,
        beta: T::Factor::ZERO,
        c: MatrixMut {
            view: memory.view_mut(),
            extents: extents_of(problem),
        },
        precision: problem.precision,
        epilogue: EpilogueArgs::default(),
        scales: Scales::None,
        groups: Groups::ONE,
        outer_k: problem.outer_k,
        rows: problem.rows.clone(),
        quantized: None,
    }
}
