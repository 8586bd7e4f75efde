//! The baseline of a GEMM: cuBLASLt, or plain loops on a machine without a GPU.

use std::rc::Rc;

use cutlet::{Buffer, Order, Stream, View, ViewMut};
use cutlet_cli::cublas::{Major, Matmul, Operand, Problem as CublasProblem};
use rayon::prelude::*;

use super::Problem;
use super::types::Types;
use crate::measure::case::{Contestant, Role};
use crate::measure::check::{Nearest, Number};
use crate::measure::epilogue::Epilogue;
use crate::measure::error::Result;
use crate::measure::protocol::CHOICE;
use crate::measure::scales::{DeviceScales, HostScales};
use crate::measure::setting::Setting;

/// The baseline of a GEMM.
pub enum Baseline<'a, T: Types> {
    /// cuBLASLt, with each of the algorithms that its heuristics propose.
    CublasLt {
        /// The same computation as cutlet's.
        same: Box<Matmul<'a, T::In, T::Out>>,
        /// Another computation to be shown beside, if there is one.
        alternative: Option<Box<Matmul<'a, T::In, T::Out>>>,
    },
    /// Three loops over operands in host memory.
    Plain(Plain<T::Out>),
}

impl<'a, T: Types> Baseline<'a, T> {
    /// The baseline for this problem, or the reason why there is none.
    ///
    /// # Errors
    /// If the device or a call of cuBLAS fails.
    pub fn new(
        problem: &Problem,
        bias: &Rc<Buffer<T::Out>>,
        scales: &DeviceScales,
        setting: &'a Setting,
    ) -> Result<Result<Self, String>> {
        if !setting.on_gpu() {
            let bias = setting.stream.download(&**bias)?;
            let scales = scales.host.clone();
            return Ok(Ok(Baseline::Plain(Plain::new(problem, bias, scales))));
        }
        let cublas = match &setting.cublas {
            Ok(cublas) => cublas,
            Err(error) => return Ok(Err(error.clone().absence()?)),
        };
        if problem.epilogue.for_cublas(bias).is_none() {
            return Ok(Err(format!("cuBLASLt has no {}", problem.epilogue)));
        }
        let matmul = |compute| {
            let epilogue = problem.epilogue.for_cublas(bias).unwrap_or_default();
            let (problem, scales) = (for_cublas(problem), scales.for_cublas());
            let matmul = cublas.matmul_by(problem, compute, epilogue, scales, CHOICE.algorithms);
            matmul.map(Box::new)
        };
        let same = match matmul(T::COMPUTE) {
            Ok(same) => same,
            Err(error) => return Ok(Err(error.absence()?)),
        };
        let alternative = match T::ALTERNATIVE.map(matmul).transpose() {
            Ok(alternative) => alternative,
            // A library that does not support the other computation has no alternative.
            Err(error) => {
                error.absence()?;
                None
            }
        };
        Ok(Ok(Baseline::CublasLt { same, alternative }))
    }

    /// The baseline's contestants.
    pub fn contestants(&self) -> Vec<Contestant> {
        let all = |name: &'static str, count: usize, role| {
            (0..count).map(move |pick| Contestant {
                name: format!("{name} algorithm {pick}"),
                role,
            })
        };
        match self {
            Baseline::CublasLt { same, alternative } => {
                let beside = alternative
                    .as_ref()
                    .map_or(0, |alternative| alternative.algorithms());
                all("cuBLASLt", same.algorithms(), Role::Baseline)
                    .chain(all("cuBLASLt, f32 sums,", beside, Role::Alternative))
                    .collect()
            }
            Baseline::Plain(_) => vec![Contestant {
                name: "plain loops".to_string(),
                role: Role::Baseline,
            }],
        }
    }

    /// Puts `C = A·B` into the stream, by contestant number `pick`.
    pub fn enqueue(
        &self,
        stream: &Stream,
        pick: usize,
        a: View<'_, T::In>,
        b: View<'_, T::In>,
        mut c: ViewMut<'_, T::Out>,
    ) -> Result<()> {
        match self {
            Baseline::CublasLt { same, alternative } => match alternative {
                Some(alternative) if pick >= same.algorithms() => {
                    Ok(alternative.run(stream, pick - same.algorithms(), a, b, &mut c)?)
                }
                _ => Ok(same.run(stream, pick, a, b, &mut c)?),
            },
            Baseline::Plain(plain) => {
                let (a, b) = (stream.download(a)?, stream.download(b)?);
                Ok(stream.copy_from_host(&plain.multiply(&a, &b), c)?)
            }
        }
    }
}

fn for_cublas(problem: &Problem) -> CublasProblem {
    let Problem { m, n, k, .. } = *problem;
    let operand = |transposed: bool, rows: usize, columns: usize| match transposed {
        false => Operand {
            major: Major::Row,
            leading: columns,
        },
        true => Operand {
            major: Major::Column,
            leading: rows,
        },
    };
    CublasProblem {
        m,
        n,
        k,
        a: operand(problem.layout.a_transposed(), m, k),
        b: operand(problem.layout.b_transposed(), k, n),
        c: operand(false, m, n),
        alpha: 1.0,
        beta: 0.0,
        batch: problem.batch,
    }
}

/// GEMMs in three loops and in f64, for machines without a GPU.
pub struct Plain<O> {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    a: Order,
    b: Order,
    epilogue: Epilogue,
    bias: Vec<O>,
    scales: HostScales,
}

impl<O: Nearest> Plain<O> {
    fn new(problem: &Problem, bias: Vec<O>, scales: HostScales) -> Self {
        let order = |transposed| match transposed {
            false => Order::RowMajor,
            true => Order::ColMajor,
        };
        Plain {
            batch: problem.batch,
            m: problem.m,
            n: problem.n,
            k: problem.k,
            a: order(problem.layout.a_transposed()),
            b: order(problem.layout.b_transposed()),
            epilogue: problem.epilogue,
            bias,
            scales,
        }
    }

    fn multiply<I: Number>(&self, a: &[I], b: &[I]) -> Vec<O> {
        let Plain { batch, m, n, k, .. } = *self;
        let at = |order: Order, rows: usize, columns: usize, i: usize, j: usize| match order {
            Order::RowMajor => i * columns + j,
            Order::ColMajor => j * rows + i,
        };
        let entry = |entry: usize| {
            let (nth, i, j) = (entry / (m * n), entry / n % m, entry % n);
            let (a, b) = (&a[nth * m * k..], &b[nth * k * n..]);
            let products = (0..k).map(|l| {
                let (a, b) = (a[at(self.a, m, k, i, l)], b[at(self.b, k, n, l, j)]);
                a.to_f64() * b.to_f64() * self.scales.factor([i, j], l)
            });
            O::nearest(self.epilogue.apply(products.sum(), self.bias[j].to_f64()))
        };
        (0..batch * m * n).into_par_iter().map(entry).collect()
    }
}
