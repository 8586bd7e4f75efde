//! Products of rows that are normalised by RMSNorm first: in one launch where a kernel does both, else in two.

use cutlet_device::DeviceData;
use cutlet_host::{Buffer, Stream, View};

use super::operand::Operand;
use super::problem::{Problem, refuse};
use super::{Element, Gemm};
use crate::into_tensor::batch;
use crate::matrix::{addresses, disjoint, in_stream};
use crate::rowops::{Norm, NormElement};
use crate::{Result, Tensor, TensorMut};

/// The RMSNorm of a layer's x.
#[derive(Debug)]
pub struct RmsNorm<T: DeviceData> {
    /// A weight for each column of x.
    pub weights: Buffer<T>,
    /// Added to the mean of the squares.
    pub epsilon: f32,
}

/// The launch of a kernel that normalises the rows of A and multiplies them.
pub trait NormalisedLaunch<T: Operand, D: DeviceData> {
    /// Enqueues it for the problem that it was planned for. There is a weight for each column of A.
    fn launch(
        &self,
        stream: &Stream,
        problem: Problem<'_, T, D>,
        weights: View<'_, T>,
        epsilon: f32,
    ) -> Result<()>;
}

/// Enqueues the product whose A is normalised first.
pub fn run<T: Element<D> + NormElement, D: DeviceData>(
    stream: &Stream,
    gemm: Gemm<'_, T, D>,
    norm: &RmsNorm<T>,
) -> Result<()> {
    let mut gemm = gemm;
    let weights = norm.weights.view();
    let problem = Problem::new(stream, &mut gemm)?;
    if problem.is_empty() {
        return Ok(());
    }
    check(stream, &problem, weights)?;
    for family in T::families() {
        if let Some(plan) = family.plan_normalised(stream, &problem)? {
            problem.use_in(stream)?;
            weights.use_in(stream, "gemm", "the norm's weights")?;
            return plan.launch(stream, problem, weights, norm.epsilon);
        }
    }
    let (rows, columns) = (problem.a.rows(), problem.a.columns());

    let mut memory = stream.scratch::<T>(rows * columns)?;
    let Ok(operands) = &mut gemm.operands else {
        unreachable!("there is a problem of the operands")
    };
    let normal = TensorMut::new(memory.view_mut(), [rows, columns])?;
    let of_weights = Tensor::new(weights, [columns])?;
    Norm::rms(norm.epsilon)
        .weight(of_weights)
        .run(stream, operands.a.first, normal)?;
    let normal = Tensor::new(memory.view(), [rows, columns])?;
    match batch(normal, "A") {
        Ok(normal) => operands.a = normal,
        Err(found) => return refuse(found),
    }
    gemm.run(stream)
}

/// Refuses batches, weights that do not fit A, and those that the stream may not read.
fn check<T: Operand, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    weights: View<'_, T>,
) -> Result<()> {
    in_stream("gemm", stream, "the norm's weights", weights)?;
    let c = addresses(&problem.c.view.view());
    disjoint("gemm", "the norm's weights", addresses(&weights), c)?;
    let columns = problem.a.columns();
    if !problem.groups.are_one() {
        return refuse(
            "x is a batch, and a layer that normalises it takes one matrix; give all rows as those of \
             one matrix"
                .to_string(),
        );
    }
    match weights.len() == columns && columns > 0 {
        true => Ok(()),
        false => refuse(format!(
            "the norm has {} weights, and x has {columns} columns; give a weight for each column",
            weights.len()
        )),
    }
}
