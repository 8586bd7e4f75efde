//! GEMM of i8 into floats by two kernels, on all GPUs that multiply i8: the sums go to scratch memory in i32, and a
//! second kernel scales them and makes C.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Device, Scratch, Stream};
use cutlet_kernels::gemm::epilogue::{AnyActivation, Then};
use cutlet_kernels::gemm::epilogue_pass::{
    self, FusedWithScales, PassArgs, scaled_pass_bf16, scaled_pass_f16, scaled_pass_f32,
};
use half::{bf16, f16};

use crate::gemm::choice::device_speed::DeviceSpeed;
use crate::gemm::epilogue::EpilogueArgs;
use crate::gemm::partials::Output;
use crate::gemm::problem::{Groups, Problem};
use crate::gemm::registry::{
    self, Choice, Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan,
};
use crate::gemm::scales::Scales;
use crate::gemm::sealed::Families;
use crate::matrix::Extents;
use crate::{Error, MatrixMut, Order, Result};

/// Kernels of i8 into i32, and a second kernel.
#[derive(Debug)]
pub struct BySecondKernel;

/// Clocks that the second kernel takes besides its memory.
const SECOND_KERNEL: f64 = 4000.0;

/// The kernel that scales sums, applies everything that can be fused, and writes a C of `D`.
type ScaledPass<D> = Kernel<(Global<i32>, GlobalMut<D>, PassArgs, FusedWithScales<D>)>;

/// An element type of C that sums of i8 are scaled to.
pub trait ScaledOutput: Output<Acc = f32> {
    /// The second kernel.
    const SCALED_PASS: &'static ScaledPass<Self>;
}

macro_rules! scaled_output {
    ($($element:ty: $pass:ident;)+) => {$(
        impl ScaledOutput for $element {
            const SCALED_PASS: &'static ScaledPass<Self> = &$pass;
        }
    )+};
}
scaled_output! {
    bf16: scaled_pass_bf16;
    f16: scaled_pass_f16;
    f32: scaled_pass_f32;
}

impl<D: ScaledOutput> Family<i8, D> for BySecondKernel {
    fn name(&self) -> &'static str {
        "gemm-scaled"
    }

    fn supports(&self, device: &Device) -> Result<()> {
        let families = <i8 as Families<i32>>::families().iter();
        let mut general = families.filter(|family| family.is_general());
        general.try_for_each(|family| family.supports(device))
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        if query.of_batches || query.indexed != IndexedOperand::None {
            return Vec::new();
        }
        // The second kernel fuses whatever is fused.
        let query = KernelQuery {
            fused: Fused::Nothing,
            ..query
        };
        let families = <i8 as Families<i32>>::families().iter();
        families
            .flat_map(|family| family.candidates(query))
            .collect()
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, i8, D>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<i8, D>>> {
        let is_one = problem.groups.are_one() && problem.outer_k.count == 1;
        if !is_one || !problem.rows.are_own() || problem.epilogue.gate.is_some() {
            return Ok(None);
        }
        let choice = kernel.map_or(Choice::Estimated, Choice::Named);
        let mut memory = memory_of(stream, problem)?;
        let sums = sums_of(problem, &mut memory);
        let types = <i8 as Families<i32>>::TYPES;
        let families = <i8 as Families<i32>>::families();
        let sums = match registry::plan(families, types, stream, &sums, choice) {
            Ok(plan) => plan,
            Err(Error::Instance { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(name) = sums.kernel else {
            return Ok(None);
        };
        let time = sums.microseconds + time_of_pass::<D>(stream, problem);
        Ok(Some(LaunchPlan::new(name, time, Scaled(sums))))
    }
}

/// The estimated time of the second kernel in microseconds.
fn time_of_pass<D: ScaledOutput>(stream: &Stream, problem: &Problem<'_, i8, D>) -> f64 {
    let device = DeviceSpeed::of(stream.device());
    let (m, n, _) = problem.extents();
    let bytes = (m * n * (2 * size_of::<i32>() + size_of::<D>())) as f64;
    device.microseconds(SECOND_KERNEL + bytes / device.bytes_a_clock())
}

/// The sums' kernel, and the second kernel.
struct Scaled(LaunchPlan<i8, i32>);

impl<D: ScaledOutput> Launch<i8, D> for Scaled {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, i8, D>) -> Result<()> {
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
fn epilogue_of<D: ScaledOutput>(problem: &Problem<'_, i8, D>) -> FusedWithScales<D> {
    Then {
        first: problem.scaled_by(problem.alpha as f32),
        second: Then {
            first: problem.linear_with(1.0, problem.beta as f32),
            second: AnyActivation::new(problem.epilogue.activation),
        },
    }
}

/// The extents of the sums.
fn extents_of<D: ScaledOutput>(problem: &Problem<'_, i8, D>) -> Extents {
    let (m, n, _) = problem.extents();
    Extents {
        rows: m,
        columns: n,
        ld: n.next_multiple_of(4),
        order: Order::RowMajor,
    }
}

/// Memory for the sums.
fn memory_of<'s, D: ScaledOutput>(
    stream: &'s Stream,
    problem: &Problem<'_, i8, D>,
) -> Result<Scratch<'s, i32>> {
    let Extents { rows, ld, .. } = extents_of(problem);
    Ok(stream.scratch(rows * ld)?)
}

/// The problem whose C is the sums.
fn sums_of<'p, D: ScaledOutput>(
    problem: &'p Problem<'_, i8, D>,
    memory: &'p mut Scratch<'_, i32>,
) -> Problem<'p, i8, i32> {
    Problem {
        alpha: 1,
        a: problem.a,
        b: problem.b,
        beta: 0,
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
    }
}
