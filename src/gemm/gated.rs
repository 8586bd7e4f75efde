//! Gated products by two kernels: the product goes to scratch memory, and the gate makes C of it.

use cutlet_device::DeviceData;
use cutlet_host::{Scratch, Stream};

use super::choice::device_speed::DeviceSpeed;
use super::element_type::ElementType;
use super::epilogue::EpilogueArgs;
use super::operand::Operand;
use super::problem::{Groups, Problem, Sizes};
use super::registry::{self, Choice, Family, Launch, LaunchPlan};
use crate::matrix::Extents;
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// The most rows of C for which two kernels may be faster than one that fuses the gate.
const MOST_ROWS: usize = 64;
/// The product of gates and ups, before it is gated.
struct GatedByTwoKernels<T: Operand, D: DeviceData>(LaunchPlan<T, D>);

/// Plans the product of a gated problem alone, and the gate after it. If no kernel has the name that was asked for, the
/// error lists those that fuse gates, too.
pub fn plan<T: Operand, D: DeviceData>(
    families: &'static [&'static dyn Family<T, D>],
    types: [ElementType; 2],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    choice: Choice<'_>,
) -> Result<LaunchPlan<T, D>> {
    let mut memory = product_memory(stream, problem)?;
    let product = product_of(problem, &mut memory)?;
    let plan = registry::plan(families, types, stream, &product, choice);
    let plan = plan.map_err(|error| match error {
        Error::Instance { asked, names } => {
            let fused = registry::names(families, stream.device(), problem);
            let names = [fused, names].concat();
            Error::Instance { asked, names }
        }
        other => other,
    })?;
    let microseconds = plan.microseconds + gating_time(stream, problem);
    Ok(LaunchPlan::of_several_in(
        microseconds,
        GatedByTwoKernels(plan),
    ))
}

/// The faster one of a plan that fuses the gate and of two kernels. Hopper's kernels that fuse it have tiles of 128 rows,
/// and others multiply few rows faster.
pub fn faster<T: Operand, D: DeviceData>(
    fused: LaunchPlan<T, D>,
    families: &'static [&'static dyn Family<T, D>],
    types: [ElementType; 2],
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    choice: Choice<'_>,
) -> LaunchPlan<T, D> {
    let (m, ..) = problem.extents();
    let is_plain = problem.rows.are_own() && problem.groups.are_one();
    match is_plain && m <= MOST_ROWS {
        true => fused.or_faster(plan(families, types, stream, problem, choice)),
        false => fused,
    }
}

/// The estimated time of the gate after a product.
fn gating_time<T: Operand, D: DeviceData>(stream: &Stream, problem: &Problem<'_, T, D>) -> f64 {
    let (m, n, _) = problem.extents();
    let elements = (m * n + m * n / 2) * matrices_of(&problem.groups);
    DeviceSpeed::of(stream.device()).time_of_pass(elements * size_of::<D>())
}

impl<T: Operand, D: DeviceData> Launch<T, D> for GatedByTwoKernels<T, D> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, D>) -> Result<()> {
        let Some(gate) = problem.epilogue.gate else {
            unreachable!("a plan is launched for problems of its shape")
        };
        let mut memory = product_memory(stream, &problem)?;
        if problem.groups.have_sizes() {
            // The gate reads all rows. The product writes only those of groups.
            stream.fill_bytes(memory.view_mut(), 0)?;
        }
        let Self(product) = self;
        product.launch(stream, product_of(&problem, &mut memory)?)?;

        let extents = extents_of(&problem);
        for nth in 0..matrices_of(&problem.groups) {
            let [.., to_c] = problem.groups.offsets(nth);
            let view = memory.view().slice(nth * extents.rows * extents.ld..)?;
            let c = MatrixMut {
                view: problem.c.view.slice_mut(to_c..)?,
                extents: problem.c.extents,
            };
            gate(stream, Matrix { view, extents }, c)?;
        }
        Ok(())
    }
}

/// The extents of a matrix of gates and ups.
fn extents_of<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>) -> Extents {
    let (m, n, _) = problem.extents();
    Extents {
        rows: m,
        columns: n,
        ld: n,
        order: Order::RowMajor,
    }
}

/// How many matrices C there are.
fn matrices_of(groups: &Groups<'_>) -> usize {
    // Those of groups with ends lie in one.
    match groups.sizes {
        Sizes::Ends(_) => 1,
        Sizes::None | Sizes::Counts(_) => groups.count(),
    }
}

/// Memory for the gates and ups of all products.
fn product_memory<'s, T: Operand, D: DeviceData>(
    stream: &'s Stream,
    problem: &Problem<'_, T, D>,
) -> Result<Scratch<'s, D>> {
    let (m, n, _) = problem.extents();
    Ok(stream.scratch(m * n * matrices_of(&problem.groups))?)
}

/// The problem whose C is the gates and ups.
fn product_of<'p, T: Operand, D: DeviceData>(
    problem: &'p Problem<'_, T, D>,
    memory: &'p mut Scratch<'_, D>,
) -> Result<Problem<'p, T, D>> {
    let extents = extents_of(problem);
    let mut modes = problem.groups.modes;
    if matrices_of(&problem.groups) > 1 {
        let of_product = extents.rows * extents.ld;
        let [inner, outer] = &mut modes;
        inner.strides[2] = of_product;
        outer.strides[2] = inner.count * of_product;
    }
    Ok(Problem {
        alpha: problem.alpha,
        a: problem.a,
        b: problem.b,
        beta: problem.beta,
        c: MatrixMut {
            view: memory.view_mut(),
            extents,
        },
        precision: problem.precision,
        epilogue: EpilogueArgs::default(),
        scales: problem.scales,
        groups: Groups {
            modes,
            ..problem.groups
        },
        outer_k: problem.outer_k,
        rows: problem.rows.clone(),
        quantized: None,
    })
}
