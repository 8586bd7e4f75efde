//! Products whose C is e4m3 with scales of its blocks: what is asked for, and the way by two kernels.

use std::ops::Range;

use cutlet_device::fp8::F8E4M3;
use cutlet_host::{Scratch, Stream};

use super::choice::device_speed::DeviceSpeed;
use super::epilogue::EpilogueArgs;
use super::problem::Problem;
use super::registry::{self, Choice, Launch, LaunchPlan};
use super::sealed::Families;
use crate::matrix::{Extents, disjoint, in_stream};
use crate::{Error, Matrix, MatrixMut, Order, Quantize, Result};

/// Elements of a row that have a scale together.
const BLOCK: usize = 128;

/// How C is quantised, and where its scales go.
#[derive(Debug)]
pub struct QuantizedC<'a> {
    pub quantize: Quantize,
    /// A scale for each block of each row.
    pub scales: MatrixMut<'a, f32>,
}

impl QuantizedC<'_> {
    /// The same for a shorter time.
    pub fn reborrow(&mut self) -> QuantizedC<'_> {
        QuantizedC {
            quantize: self.quantize,
            scales: self.scales.reborrow(),
        }
    }

    /// Refuses scales of rows, of other extents than those of a C of these rows and columns, that overlap other operands,
    /// or that work in the stream may not use.
    pub fn check(
        &self,
        stream: &Stream,
        [m, n]: [usize; 2],
        operands: [(&'static str, Range<u64>); 3],
    ) -> Result<()> {
        let refuse = |found| {
            Err(Error::Extents {
                operation: "gemm",
                found,
            })
        };
        if !self.quantize.is_by_blocks() {
            return refuse(
                "C is quantised by rows, whose scales no product knows before its end; quantise it by blocks"
                    .to_string(),
            );
        }
        let (found, expected) = (
            [self.scales.rows(), self.scales.columns()],
            [m, n.div_ceil(BLOCK)],
        );
        if found != expected {
            return refuse(format!(
                "the scales of C are {}×{}, and a C of {m}×{n} has {}×{}; give one for each {BLOCK} of its columns",
                found[0], found[1], expected[0], expected[1]
            ));
        }
        in_stream("gemm", stream, "the scales of C", self.scales.view.view())?;
        for (name, addresses) in operands {
            disjoint("gemm", name, addresses, self.scales.addresses())?;
        }
        Ok(())
    }
}

/// Plans the product in f32, and the quantisation after it.
pub fn by_two_kernels(
    stream: &Stream,
    problem: &Problem<'_, F8E4M3, F8E4M3>,
    choice: Choice<'_>,
) -> Result<LaunchPlan<F8E4M3, F8E4M3>> {
    let mut memory = memory_of(stream, problem)?;
    let product = product_of(problem, &mut memory);
    let families = <F8E4M3 as Families<f32>>::families();
    let types = <F8E4M3 as Families<f32>>::TYPES;
    let plan = registry::plan(families, types, stream, &product, choice)?;
    let (m, n, _) = problem.extents();
    let pass = DeviceSpeed::of(stream.device()).time_of_pass(m * n * (size_of::<f32>() + 1));
    let microseconds = plan.microseconds + pass;
    Ok(LaunchPlan::of_several_in(microseconds, ByTwoKernels(plan)))
}

/// The product in f32, before it is quantised.
struct ByTwoKernels(LaunchPlan<F8E4M3, f32>);

impl Launch<F8E4M3, F8E4M3> for ByTwoKernels {
    fn launch(&self, stream: &Stream, problem: Problem<'_, F8E4M3, F8E4M3>) -> Result<()> {
        let mut memory = memory_of(stream, &problem)?;
        let Self(product) = self;
        product.launch(stream, product_of(&problem, &mut memory))?;
        let extents = extents_of(&problem);
        let view = memory.view();
        let Some(QuantizedC { quantize, scales }) = problem.quantized else {
            unreachable!("a plan is launched for problems of its shape")
        };
        quantize.run(stream, Matrix { view, extents }, problem.c, scales)
    }
}

/// The extents of C in f32.
fn extents_of(problem: &Problem<'_, F8E4M3, F8E4M3>) -> Extents {
    let (m, n, _) = problem.extents();
    Extents {
        rows: m,
        columns: n,
        ld: n.next_multiple_of(4),
        order: Order::RowMajor,
    }
}

/// Memory for C in f32.
fn memory_of<'s>(
    stream: &'s Stream,
    problem: &Problem<'_, F8E4M3, F8E4M3>,
) -> Result<Scratch<'s, f32>> {
    let Extents { rows, ld, .. } = extents_of(problem);
    Ok(stream.scratch(rows * ld)?)
}

/// The problem whose C is in f32.
fn product_of<'p>(
    problem: &'p Problem<'_, F8E4M3, F8E4M3>,
    memory: &'p mut Scratch<'_, f32>,
) -> Problem<'p, F8E4M3, f32> {
    Problem {
        alpha: problem.alpha,
        a: problem.a,
        b: problem.b,
        beta: 0.0,
        c: MatrixMut {
            view: memory.view_mut(),
            extents: extents_of(problem),
        },
        precision: problem.precision,
        epilogue: EpilogueArgs::default(),
        scales: problem.scales,
        groups: problem.groups,
        outer_k: problem.outer_k,
        rows: problem.rows.clone(),
        quantized: None,
    }
}
