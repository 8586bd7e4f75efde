//! The baseline of a contraction: cuBLASLt's product of packed matrices that have as many elements, or plain loops on a
//! machine without a GPU.

use cutlet::{Stream, View, ViewMut};
use cutlet_cli::cublas::{Epilogue, Major, Matmul, Operand, Problem as CublasProblem};
use rayon::prelude::*;

use super::Problem;
use crate::bench::gemm::types::Types;
use crate::contract::sums::Sums;
use crate::measure::case::{Contestant, Role};
use crate::measure::check::Nearest;
use crate::measure::error::Result;
use crate::measure::protocol::CHOICE;
use crate::measure::setting::Setting;

/// The baseline of a contraction.
pub enum Baseline<'a, T: Types> {
    /// cuBLASLt, with each of the algorithms that its heuristics propose. It takes the tensors' memory for matrices
    /// whose terms are contiguous: its result is another, and its time that of the same work in the best order.
    CublasLt(Box<Matmul<'a, T::In, T::Out>>),
    /// Loops over operands in host memory.
    Plain(Sums),
}

impl<'a, T: Types> Baseline<'a, T> {
    /// The baseline for this problem, or the reason why there is none.
    ///
    /// # Errors
    /// If the device or a call of cuBLAS fails.
    pub fn new(problem: &Problem, setting: &'a Setting) -> Result<Result<Self, String>> {
        if !setting.on_gpu() {
            return Ok(Ok(Baseline::Plain(Sums::new(&problem.contraction))));
        }
        let cublas = match &setting.cublas {
            Ok(cublas) => cublas,
            Err(error) => return Ok(Err(error.clone().absence()?)),
        };
        let Some(matrices) = problem.contraction.matrices() else {
            return Ok(Err(
                "a mode is in one operand alone, or twice in a tensor".to_string()
            ));
        };
        let (product, algorithms) = (packed(matrices), CHOICE.algorithms);
        match cublas.matmul_by(product, T::COMPUTE, Epilogue::default(), None, algorithms) {
            Ok(matmul) => Ok(Ok(Baseline::CublasLt(Box::new(matmul)))),
            Err(error) => Ok(Err(error.absence()?)),
        }
    }

    /// Whether its result is that of the contraction.
    pub fn is_same(&self) -> bool {
        matches!(self, Baseline::Plain(_))
    }

    /// The baseline's contestants.
    pub fn contestants(&self) -> Vec<Contestant> {
        let contestant = |name: String| Contestant {
            name,
            role: Role::Baseline,
        };
        match self {
            Baseline::CublasLt(matmul) => (0..matmul.algorithms())
                .map(|pick| contestant(format!("cuBLASLt, packed, algorithm {pick}")))
                .collect(),
            Baseline::Plain(_) => vec![contestant("plain loops".to_string())],
        }
    }

    /// Puts the product into the stream, by contestant number `pick`.
    pub fn enqueue(
        &self,
        stream: &Stream,
        pick: usize,
        a: View<'_, T::In>,
        b: View<'_, T::In>,
        mut c: ViewMut<'_, T::Out>,
    ) -> Result<()> {
        match self {
            Baseline::CublasLt(matmul) => Ok(matmul.run(stream, pick, a, b, &mut c)?),
            Baseline::Plain(sums) => {
                let (a, b) = (stream.download(a)?, stream.download(b)?);
                let entry = |entry| T::Out::nearest(sums.at(entry, &a, &b).product());
                // A packed C has its entries in their order.
                let found: Vec<T::Out> = (0..sums.entries()).into_par_iter().map(entry).collect();
                Ok(stream.copy_from_host(&found, c)?)
            }
        }
    }
}

/// The product of packed matrices, A's rows and B's columns contiguous.
fn packed([m, n, k, batch]: [usize; 4]) -> CublasProblem {
    let operand = |major, leading| Operand { major, leading };
    CublasProblem {
        m,
        n,
        k,
        a: operand(Major::Row, k),
        b: operand(Major::Column, k),
        c: operand(Major::Row, n),
        alpha: 1.0,
        beta: 0.0,
        batch,
    }
}
