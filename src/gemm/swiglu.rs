//! Gated products: a feed-forward network's first product, whose columns are gates and ups by turns, and its SwiGLU.

use cutlet_host::{IntoView, Stream};
use cutlet_kernels::gemm::epilogue::Accumulator;

use super::epilogue::EpilogueArgs;
use super::indexed_rows::Rows;
use super::problem::{Problem, Sizes};
use super::registry::{self, Choice};
use super::{Element, Gemm, kept_plans};
use crate::swiglu::GatedElement;
use crate::{Error, Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Result, swiglu};

impl<T: GatedElement + Element> Gemm<'_, T> {
    /// `C = silu(alpha·gate) · (alpha·up)`, where the columns of A·B are gates and ups by turns: column `2c` is the
    /// gate of C's column `c`, and column `2c + 1` is its up. B has twice as many columns as C.
    ///
    /// On Hopper's tensor cores, one kernel does it if A is row-major, and if rows of A and rows or columns of B begin
    /// at multiples of 16 bytes. The arithmetic is in f32, and C is rounded once. Otherwise the product goes to scratch
    /// memory in C's type, and [`swiglu`](fn@swiglu) follows.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, Matrix, MatrixMut};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = stream.upload(&[1.0f32, 2.0])?; // 1×2
    /// // A gate and an up of each of two columns.
    /// let b = stream.upload(&[100.0f32, 1.0, 0.0, 7.0, 0.0, 2.0, -50.0, 7.0])?; // 2×4
    /// let mut c = stream.zeroed::<f32>(2)?;
    /// let (a, b) = (Matrix::row_major(&a, 1, 2)?, Matrix::row_major(&b, 2, 4)?);
    /// Gemm::new().run_swiglu(&stream, 1.0, a, b, MatrixMut::row_major(&mut c, 1, 2)?)?;
    /// assert_eq!(stream.download(&c)?, [500.0, 0.0]); // silu(100) · 5, silu(-100) · 21
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run). Also if C is column-major, or if there is a bias, a residual or an activation.
    pub fn run_swiglu(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        c: MatrixMut<'_, T>,
    ) -> Result<()> {
        let (a, b) = (MatrixBatch::repeated(a, 1), MatrixBatch::repeated(b, 1));
        let c = MatrixBatchMut::shared(c, 1);
        self.run_gated(stream, alpha, (a, b), c, Sizes::None)
    }

    /// [`run_swiglu`](Self::run_swiglu) for groups of A's rows, each with a B of its own: the first product of the
    /// experts. Groups are those of [`run_grouped`](Self::run_grouped). What rows of C hold that are in no group is not
    /// defined.
    ///
    /// # Errors
    /// As [`run_swiglu`](Self::run_swiglu) and [`run_grouped`](Self::run_grouped).
    pub fn run_grouped_swiglu<'e>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        ends: impl IntoView<'e, Element = i32>,
        b: MatrixBatch<'_, T>,
        c: MatrixMut<'_, T>,
    ) -> Result<()> {
        let a = MatrixBatch::repeated(a, b.count());
        let c = MatrixBatchMut::shared(c, b.count());
        self.run_gated(stream, alpha, (a, b), c, Sizes::Ends(ends.into_view()))
    }

    /// Multiplies by a kernel that fuses SwiGLU, or by two kernels.
    fn run_gated<'p>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        (a, b): (MatrixBatch<'p, T>, MatrixBatch<'p, T>),
        c: MatrixBatchMut<'p, T>,
        sizes: Sizes<'p>,
    ) -> Result<()> {
        if !self.epilogue.are_none() {
            return Err(Error::Arithmetic {
                asked: "a gated product with a bias, a residual or an activation".to_string(),
                found: "SwiGLU is applied to the product alone; use `run` and `swiglu`",
            });
        }
        let epilogue = EpilogueArgs {
            is_gated: true,
            ..EpilogueArgs::default()
        };
        let (beta, rows) = (T::Factor::ZERO, Rows::Own);
        let problem = Problem::grouped(stream, alpha, a, b, beta, c, epilogue, sizes, rows)?;
        let problem = problem.in_precision(self.precision)?;
        if problem.is_empty() {
            return Ok(());
        }
        let kernel = match self.choice {
            Choice::Named(name) => Some(name),
            Choice::Tuned | Choice::Estimated => None,
        };
        let chosen = kept_plans::kept_or(stream, &problem, self.choice, || {
            T::plan_gated(stream, &problem, kernel)
        })?;
        match chosen {
            Some(chosen) => {
                problem.expect_no_races(stream)?;
                chosen.launch.launch(stream, problem)
            }
            None => {
                let fused = match kernel {
                    Some(_) => registry::names(T::families(), stream.device(), &problem),
                    None => Vec::new(),
                };
                self.by_two_kernels(stream, problem)
                    .map_err(|error| with_names(error, fused))
            }
        }
    }

    /// Multiplies into scratch memory, and applies SwiGLU to it.
    fn by_two_kernels(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let (m, n, _) = problem.extents();
        let mut gates_and_ups = stream.scratch::<T>(m * n)?;
        if problem.groups.have_sizes() {
            // The second kernel reads all rows, also those of no group, which the first does not write.
            stream.fill_bytes(gates_and_ups.view_mut(), 0)?;
        }
        let product = Problem {
            alpha: problem.alpha,
            a: problem.a,
            b: problem.b,
            beta: problem.beta,
            c: MatrixMut::row_major(gates_and_ups.view_mut(), m, n)?,
            precision: problem.precision,
            epilogue: EpilogueArgs::default(),
            groups: problem.groups,
            rows: Rows::Own,
        };
        self.run_problem(stream, product)?;
        let gates_and_ups = Matrix::row_major(gates_and_ups.view(), m, n)?;
        swiglu(stream, gates_and_ups, problem.c)
    }
}

/// The error about a kernel's name that does not exist, with the names of kernels that fuse SwiGLU as well.
fn with_names(error: Error, fused: Vec<&'static str>) -> Error {
    match error {
        Error::Instance { asked, names } => Error::Instance {
            asked,
            names: [fused, names].concat(),
        },
        other => other,
    }
}
