//! GEMM: from the matrices of a call to the launch of a kernel.
//!
//! [`gemm`] makes a [`problem`] and checks it. The [`registry`] asks the [`families`] of kernels for the element types.
//! Each estimates the times of its kernels, Hopper's by a [model with a fitted correction](choice). A kernel of a
//! [`tuning_file`] is chosen before theirs. The result is a [`Plan`], which is launched. A stream [keeps](kept_plans) what
//! was chosen. [`epilogue`] describes what is fused with the product. If a kernel cannot fuse it, a second kernel makes C
//! of the GEMM's [`partials`].

pub(crate) mod choice;
mod element_type;
mod epilogue;
mod families;
mod indexed_rows;
mod kept_plans;
mod operand;
mod partials;
mod plan;
mod precision;
mod problem;
mod races;
mod registry;
mod swiglu;
mod tuning_file;

use cutlet_device::DeviceData;
use cutlet_host::{Backend, Device, IntoView, Stream};
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};

pub use cutlet_kernels::gemm::epilogue::BiasAlong;
pub use element_type::ElementType;
pub use epilogue::{Activation, Bias};
pub use families::{EpiloguePlan, KernelFamily};
pub use indexed_rows::{IndexedRows, RowIndices};
pub use operand::Operand;
pub use plan::Plan;
pub use precision::Precision;
pub use problem::BetaKind;
pub use tuning_file::problem_key::ProblemKey;
pub use tuning_file::recorder::recorded_problems;
pub use tuning_file::{DeviceRates, Tuning, TuningEntry};

use crate::{Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Order, Result};
use choice::decomposition::SEPARATOR;
use epilogue::EpilogueArgs;
use indexed_rows::Rows;
use problem::{Problem, Sizes};
use registry::{Choice, Chosen, Family, Fused, IndexedOperand, KernelQuery};

/// `C = alpha·A·B + beta·C`, on the stream's device.
///
/// A is m×k, B is k×n, C is m×n. Each is row- or column-major with any leading dimension. If `beta` is 0, C is not read
/// and may hold anything. With m = 0 or n = 0, nothing is done. With k = 0, C is scaled. A and B are read even if
/// `alpha` is 0, so that a NaN in them reaches C. C may have another type than A and B: see [`Element`]. `alpha`,
/// `beta` and the accumulators are of [`Operand::Factor`]: `f32`, but `f64` for `f64` and `i32` for `i8`. [`Gemm`]
/// fuses a bias, a residual and an activation with the product, and has the precisions of `f32` products.
///
/// # Errors
/// If extents disagree, if a matrix is on another device or bound to another stream, or if the address ranges of C and
/// of A or B overlap. If the device has no kernels for the element types, or no memory left for copies and partial
/// output.
///
/// ```
/// use cutlet::{Device, Matrix, MatrixMut, gemm};
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
/// let b = stream.upload(&[1.0f32, 0.0, 0.0, 2.0])?;
/// let mut c = stream.zeroed::<f32>(4)?;
/// gemm(
///     &stream,
///     1.0,
///     Matrix::row_major(&a, 2, 2)?,
///     Matrix::row_major(&b, 2, 2)?,
///     0.0,
///     MatrixMut::row_major(&mut c, 2, 2)?,
/// )?;
/// assert_eq!(stream.download(&c)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    alpha: T::Factor,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    beta: T::Factor,
    c: MatrixMut<'_, D>,
) -> Result<()> {
    Gemm::new().run(stream, alpha, a, b, beta, c)
}

/// [`gemm`] for each of a batch of products: `C[i] = alpha·A[i]·B[i] + beta·C[i]`.
///
/// All products have the same extents, orders and leading dimensions, and the matrices of an operand lie at equal
/// distances. One launch computes all of them if C has the type that kernels write: that of A, or `i32` for `i8`. Other
/// batches take a launch for each product.
///
/// # Errors
/// As [`gemm`]. Also if the batches have different lengths.
///
/// ```
/// use cutlet::{Device, MatrixBatch, MatrixBatchMut, Order, gemm_batched};
///
/// let stream = Device::auto().stream()?;
/// let a = stream.upload(&[1.0f32; 10 * 2 * 3])?;
/// let b = stream.upload(&[2.0f32; 10 * 3 * 4])?;
/// let mut c = stream.zeroed::<f32>(10 * 2 * 4)?;
/// gemm_batched(
///     &stream,
///     1.0,
///     MatrixBatch::packed(&a, 10, 2, 3, Order::RowMajor)?,
///     MatrixBatch::packed(&b, 10, 3, 4, Order::RowMajor)?,
///     0.0,
///     MatrixBatchMut::packed(&mut c, 10, 2, 4, Order::RowMajor)?,
/// )?;
/// assert_eq!(stream.download(&c)?, [6.0; 10 * 2 * 4]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm_batched<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    alpha: T::Factor,
    a: MatrixBatch<'_, T>,
    b: MatrixBatch<'_, T>,
    beta: T::Factor,
    c: MatrixBatchMut<'_, D>,
) -> Result<()> {
    Gemm::new().run_batched(stream, alpha, a, b, beta, c)
}

/// [`gemm`] with options: `C = activation(alpha·A·B + beta·R + bias)`, where R is a residual, or C as it was.
///
/// The bias and the residual have C's element type, `D`. The arithmetic is in [`Operand::Factor`], mostly f32, and C is
/// rounded once. Only [`Activation::Gelu`] is less exact. In f64 and i32, [`Activation::Relu`] is the only activation.
/// [`precision`](Self::precision) trades the exactness of `f32` products for speed.
///
/// On Hopper's tensor cores, one kernel does all of it if
///
/// - A and B are K-major: A row-major, B column-major,
/// - C has their type and is row-major, and its rows start at multiples of 16 bytes and have a multiple of 16 bytes,
/// - a bias for columns starts at a multiple of two elements,
/// - a residual is row-major, and its rows start at multiples of two elements,
///
/// or the same with rows and columns exchanged. Otherwise a second kernel applies the epilogue in another pass over C.
/// The second kernel is also used where it is faster, as for few tiles with a long k. On other GPUs and for other
/// element types, one kernel does all of it if C has the type of the accumulators or of A and B, and k is not split.
///
/// A linear layer with GELU, in bf16:
///
/// ```
/// use cutlet::{Activation, Bias, Device, Gemm, Matrix, MatrixMut};
/// use half::bf16;
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let (batch, inputs, outputs) = (3, 8, 16);
/// let x = stream.upload(&vec![bf16::from_f32(0.5); batch * inputs])?;
/// let weights = stream.upload(&vec![bf16::from_f32(0.25); outputs * inputs])?;
/// let bias = stream.upload(&vec![bf16::from_f32(2.0); outputs])?;
/// let mut y = stream.zeroed::<bf16>(batch * outputs)?;
/// Gemm::new()
///     .bias(Bias::columns(&bias))
///     .activation(Activation::Gelu)
///     .run(
///         &stream,
///         1.0,
///         Matrix::row_major(&x, batch, inputs)?,
///         // One row of weights for each output: the transposed matrix, column-major.
///         Matrix::row_major(&weights, outputs, inputs)?.transposed(),
///         0.0,
///         MatrixMut::row_major(&mut y, batch, outputs)?,
///     )?;
/// assert_eq!(stream.download(&y)?[0], bf16::from_f32(2.9963627)); // gelu(1 + 2)
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Gemm<'a, D: DeviceData> {
    choice: Choice<'a>,
    precision: Precision,
    epilogue: EpilogueArgs<'a, D>,
}

impl<'a, D: DeviceData> Gemm<'a, D> {
    /// A GEMM without options, like [`gemm`].
    pub fn new() -> Self {
        Gemm {
            choice: Choice::Tuned,
            precision: Precision::Exact,
            epilogue: EpilogueArgs::default(),
        }
    }

    /// Uses the kernel instance of this name instead of the one that is estimated to be the fastest: to compare
    /// instances. [`instances`](Gemm::instances) lists the names. If something is fused and C has A's type,
    /// [`fused_instances`](Gemm::fused_instances) lists more. A decomposition may follow the name, as in
    /// `bf16_128x256x64_2x1_coop/split_k_serial`. A kernel that does not have the decomposition for a problem is
    /// refused. [`candidates`](Self::candidates) lists all names for given matrices.
    ///
    /// For these lists, a packed matrix of one row is row-major, and one of one column is column-major.
    pub fn instance(self, name: &'a str) -> Self {
        Gemm {
            choice: Choice::Named(name),
            ..self
        }
    }

    /// Uses the kernel instance that is estimated to be the fastest, even if a [`Tuning`] has another one for the
    /// problem: to compare both.
    pub fn untuned(self) -> Self {
        Gemm {
            choice: Choice::Estimated,
            ..self
        }
    }

    /// Multiplies operands of `f32` in this precision, or more exactly: see [`Precision`]. It is
    /// [`Exact`](Precision::Exact) unless it is set.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, Matrix, MatrixMut, Precision};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = stream.upload(&[0.1f32; 8 * 16])?;
    /// let b = stream.upload(&[0.2f32; 16 * 8])?;
    /// let mut c = stream.zeroed::<f32>(8 * 8)?;
    /// Gemm::new().precision(Precision::Tf32).run(
    ///     &stream,
    ///     1.0,
    ///     Matrix::row_major(&a, 8, 16)?,
    ///     Matrix::row_major(&b, 16, 8)?,
    ///     0.0,
    ///     MatrixMut::row_major(&mut c, 8, 8)?,
    /// )?;
    /// assert!((stream.download(&c)?[0] - 0.32).abs() < 0.32 / 1024.0);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn precision(self, precision: Precision) -> Self {
        Gemm { precision, ..self }
    }

    /// Adds a number to each row or column of the product.
    pub fn bias(mut self, bias: Bias<'a, D>) -> Self {
        self.epilogue.bias = Some(bias);
        self
    }

    /// Adds `beta` times this matrix, instead of `beta` times C as it was. It has C's extents and any order. If `beta`
    /// is 0, it is not read.
    pub fn residual(mut self, residual: Matrix<'a, D>) -> Self {
        self.epilogue.residual = Some(residual);
        self
    }

    /// Applies this function last. GELU and SiLU of −∞ are 0, their limit.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.epilogue.activation = Some(activation);
        self
    }

    /// `C = activation(alpha·A·B + beta·R + bias)`: see [`gemm`].
    ///
    /// # Errors
    /// As [`gemm`]. Also if the bias does not have an element for each row or column of C, if the residual's extents
    /// are not C's, or if C overlaps one of them. Also if no instance of the name that was asked for solves the
    /// problem. [`Error::Arithmetic`](crate::Error::Arithmetic) if the element types do not have the precision or the
    /// activation.
    pub fn run<T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let problem = self.problem(stream, alpha, a, b, beta, c)?;
        self.run_problem(stream, problem)
    }

    /// [`run`](Self::run) for each of a batch of products, in one launch: see [`gemm_batched`]. A bias is the same for
    /// all of them.
    ///
    /// # Errors
    /// As [`run`](Self::run). Also if the batches have different lengths, or if several products have a residual.
    pub fn run_batched<T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: MatrixBatch<'_, T>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<()> {
        let problem = self.batch(stream, alpha, a, b, beta, c)?;
        self.run_problem(stream, problem)
    }

    /// Multiplies groups of A's rows, each by a B of its own: the rows that a mixture of experts sends to its experts.
    ///
    /// Group `g` has the rows from `ends[g - 1]` to `ends[g]` of A and C. The first group begins at row 0. The ends are
    /// read by the kernel, so that earlier work in the stream may compute them, also in a graph. A group may be empty.
    /// Ends beyond A's rows, and below 0, are cut off. Rows of C that are in no group keep their elements.
    ///
    /// Ends must not decrease, because rows would be in two groups. The CPU backend refuses such ends. On a GPU, each
    /// element of such a row comes from one of the groups, or from several if `beta` is not 0, and all other rows are
    /// right.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, Matrix, MatrixBatch, MatrixMut, Order};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = stream.upload(&[1.0f32; 5 * 4])?;
    /// // Two experts, of ones and of twos. The first has two rows, and the second has three.
    /// let b = stream.upload(&[[1.0f32; 4 * 8], [2.0; 4 * 8]].concat())?;
    /// let ends = stream.upload(&[2, 5])?;
    /// let mut c = stream.zeroed::<f32>(5 * 8)?;
    /// Gemm::new().run_grouped(
    ///     &stream,
    ///     1.0,
    ///     Matrix::row_major(&a, 5, 4)?,
    ///     &ends,
    ///     MatrixBatch::packed(&b, 2, 4, 8, Order::RowMajor)?,
    ///     0.0,
    ///     MatrixMut::row_major(&mut c, 5, 8)?,
    /// )?;
    /// let c = stream.download(&c)?;
    /// assert_eq!((c[8], c[2 * 8]), (4.0, 8.0));
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run). Also if there is not an end for each B, if C is column-major, if there is a residual, or
    /// if C has another type than the kernels write. On the CPU backend, also if ends decrease.
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's, and the groups")]
    pub fn run_grouped<'e, T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        ends: impl IntoView<'e, Element = i32>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let sizes = Sizes::Ends(ends.into_view());
        let a = MatrixBatch::repeated(a, b.count());
        let c = MatrixBatchMut::shared(c, b.count());
        let epilogue = self.epilogue;
        let problem = Problem::grouped(stream, alpha, a, b, beta, c, epilogue, sizes, Rows::Own)?;
        self.run_problem(stream, problem.in_precision(self.precision)?)
    }

    /// [`run_grouped`](Self::run_grouped) whose row `r` of A is the row of `table` that `rows` names, as in
    /// [`run_gathered`](Self::run_gathered): the experts' products of tokens, of which no copy sorted by expert is
    /// needed.
    ///
    /// # Errors
    /// As [`run_grouped`](Self::run_grouped) and [`run_gathered`](Self::run_gathered).
    #[expect(
        clippy::too_many_arguments,
        reason = "they are BLAS's, the groups and the rows"
    )]
    pub fn run_grouped_gathered<'e, T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        table: Matrix<'_, T>,
        rows: RowIndices<'_>,
        ends: impl IntoView<'e, Element = i32>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let sizes = Sizes::Ends(ends.into_view());
        let a = MatrixBatch::repeated(table, b.count());
        let c = MatrixBatchMut::shared(c, b.count());
        let (epilogue, rows) = (self.epilogue, Rows::OfA(rows));
        let problem = Problem::grouped(stream, alpha, a, b, beta, c, epilogue, sizes, rows)?;
        self.run_problem(stream, problem.in_precision(self.precision)?)
    }

    /// [`run_batched`](Self::run_batched) with the first `rows[g]` rows of each A and C. The others are padding, which
    /// is neither multiplied nor written.
    ///
    /// # Errors
    /// As [`run_grouped`](Self::run_grouped).
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's, and the groups")]
    pub fn run_masked<'e, T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: MatrixBatch<'_, T>,
        rows: impl IntoView<'e, Element = i32>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<()> {
        let sizes = Sizes::Counts(rows.into_view());
        let epilogue = self.epilogue;
        let problem = Problem::grouped(stream, alpha, a, b, beta, c, epilogue, sizes, Rows::Own)?;
        self.run_problem(stream, problem.in_precision(self.precision)?)
    }

    /// `C = activation(alpha·A·B + beta·R + bias)`, where row `r` of A is the row of `table` that the index number `r`
    /// of `rows` names. The rows are read from the table, without a copy of A in memory.
    ///
    /// The table and C are row-major. An index that is no row of the table is never used as an address:
    /// [`IndexedRows::out_of_range`] says what becomes of its row.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, IndexedRows, Matrix, MatrixMut};
    ///
    /// let stream = Device::auto().stream()?;
    /// let table = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
    /// let b = stream.upload(&[1.0f32, 0.0, 0.0, 10.0])?; // 2×2
    /// let indices = stream.upload(&[1i32, 0, 1])?;
    /// let mut c = stream.zeroed::<f32>(3 * 2)?;
    /// let mut rows = IndexedRows::new(stream.device())?;
    /// Gemm::new().run_gathered(
    ///     &stream,
    ///     1.0,
    ///     Matrix::row_major(&table, 2, 2)?,
    ///     rows.by(&indices)?,
    ///     Matrix::row_major(&b, 2, 2)?,
    ///     0.0,
    ///     MatrixMut::row_major(&mut c, 3, 2)?,
    /// )?;
    /// rows.check(&stream)?;
    /// assert_eq!(stream.download(&c)?, [3.0, 40.0, 1.0, 20.0, 3.0, 40.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run). Also if there is not an index for each row of C, or the table or C is column-major.
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's, and the rows")]
    pub fn run_gathered<T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        table: Matrix<'_, T>,
        rows: RowIndices<'_>,
        b: Matrix<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<()> {
        let (epilogue, rows) = (self.epilogue, Rows::OfA(rows));
        let problem = Problem::with_rows(stream, alpha, table, b, beta, c, epilogue, rows)?;
        self.run_problem(stream, problem.in_precision(self.precision)?)
    }

    /// `table[rows[r]] = activation(alpha·(A·B)[r] + beta·table[rows[r]] + bias)` for each row `r` of the product,
    /// without a copy of the product in memory. Rows of the table that no index names keep their elements.
    ///
    /// A and the table are row-major. If several indices are the same and `beta` is 0, each element of their row comes
    /// from one of the product's rows. With another `beta`, all indices must be different, because the products do not
    /// see each other's sums. The CPU backend refuses indices that are not. On a GPU, the elements of such a row are made
    /// of some of the products, and all other rows are right. An index that is no row of the table is never used as an
    /// address.
    ///
    /// ```
    /// use cutlet::{Device, Gemm, IndexedRows, Matrix, MatrixMut, OutOfRange};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
    /// let b = stream.upload(&[1.0f32, 0.0, 0.0, 10.0])?; // 2×2
    /// let indices = stream.upload(&[2i64, 7])?;
    /// let mut table = stream.upload(&[5.0f32; 3 * 2])?;
    /// let rows = IndexedRows::new(stream.device())?.out_of_range(OutOfRange::Skip);
    /// Gemm::new().run_scattered(
    ///     &stream,
    ///     1.0,
    ///     Matrix::row_major(&a, 2, 2)?,
    ///     Matrix::row_major(&b, 2, 2)?,
    ///     1.0,
    ///     MatrixMut::row_major(&mut table, 3, 2)?,
    ///     rows.by(&indices)?,
    /// )?;
    /// assert_eq!(stream.download(&table)?, [5.0, 5.0, 5.0, 5.0, 6.0, 25.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run). Also if there is not an index for each row of A, if A or the table is column-major, or if
    /// there is a residual. Also if the table has another type than the kernels write: that of A, or `i32` for `i8`.
    #[expect(clippy::too_many_arguments, reason = "they are BLAS's, and the rows")]
    pub fn run_scattered<T: Element<D>>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: T::Factor,
        table: MatrixMut<'_, D>,
        rows: RowIndices<'_>,
    ) -> Result<()> {
        let (epilogue, rows) = (self.epilogue, Rows::OfC(rows));
        let problem = Problem::with_rows(stream, alpha, a, b, beta, table, epilogue, rows)?;
        self.run_problem(stream, problem.in_precision(self.precision)?)
    }

    /// Launches a problem, by the plan that the stream keeps for problems like it.
    fn run_problem<T: Element<D>>(
        &self,
        stream: &Stream,
        problem: Problem<'_, T, D>,
    ) -> Result<()> {
        let chosen = kept_plans::kept_or(stream, &problem, self.choice, || {
            plan::choose(stream, &problem, self.choice)
        })?;
        match chosen {
            Some(chosen) => {
                problem.expect_no_races(stream)?;
                chosen.launch.launch(stream, problem)
            }
            None => Ok(()),
        }
    }

    /// Makes a [`Plan`] for matrices like these. Their elements are neither read nor written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn plan<T: Element<D>>(
        &self,
        stream: &Stream,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: T::Factor,
        c: MatrixMut<'_, D>,
    ) -> Result<Plan<T, D>> {
        let problem = self.problem(stream, T::Factor::ONE, a, b, beta, c)?;
        Plan::new(stream, &problem, self.choice)
    }

    /// Makes a [`Plan`] for batches like these, for [`Plan::run_batched`].
    ///
    /// # Errors
    /// As [`run_batched`](Self::run_batched).
    pub fn plan_batched<T: Element<D>>(
        &self,
        stream: &Stream,
        a: MatrixBatch<'_, T>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<Plan<T, D>> {
        let problem = self.batch(stream, T::Factor::ONE, a, b, beta, c)?;
        Plan::new(stream, &problem, self.choice)
    }

    /// What the fastest kernel for batches like these depends on: the problem that a [`Tuning`]'s entry is for. Matrices
    /// are batches of one. None for k = 0 and for a C without elements, which are not tuned. No element is read or
    /// written.
    ///
    /// # Errors
    /// As [`run_batched`](Self::run_batched).
    pub fn problem_key<T: Element<D>>(
        &self,
        stream: &Stream,
        a: MatrixBatch<'_, T>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<Option<ProblemKey>> {
        let problem = self.batch(stream, T::Factor::ONE, a, b, beta, c)?;
        Ok(match problem.is_empty() {
            true => None,
            false => ProblemKey::of(&problem, T::TYPES),
        })
    }

    /// The names that [`instance`](Self::instance) takes for batches like these. Matrices are batches of one.
    ///
    /// For one product, they are those of [`instances`](Gemm::instances) and [`fused_instances`](Gemm::fused_instances)
    /// for this device, and `NAME/DECOMPOSITION` for each decomposition in which a kernel may run besides its estimated
    /// one. For several, they are the kernels that compute all products in one launch. There are none for a C without
    /// elements. `instance` refuses a kernel that does not fit the matrices' alignment. No element is read or written.
    ///
    /// # Errors
    /// As [`run_batched`](Self::run_batched).
    pub fn candidates<T: Element<D>>(
        &self,
        stream: &Stream,
        a: MatrixBatch<'_, T>,
        b: MatrixBatch<'_, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'_, D>,
    ) -> Result<Vec<String>> {
        let problem = self.batch(stream, T::Factor::ONE, a, b, beta, c)?;
        if problem.is_empty() {
            return Ok(Vec::new());
        }
        let mut candidates = Vec::new();
        let names = registry::names(T::families(), stream.device(), &problem);
        for name in names {
            for family in T::families() {
                let ways = family.decompositions(stream, &problem, name);
                candidates.extend(ways.iter().map(|it| format!("{name}{SEPARATOR}{it}")));
            }
            candidates.push(name.to_string());
        }
        candidates.sort_unstable();
        candidates.dedup();
        Ok(candidates)
    }

    /// The checked problem of these operands.
    fn problem<'p, T: Operand>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'p, T>,
        b: Matrix<'p, T>,
        beta: T::Factor,
        c: MatrixMut<'p, D>,
    ) -> Result<Problem<'p, T, D>>
    where
        'a: 'p,
    {
        Problem::new(stream, alpha, a, b, beta, c, self.epilogue)?.in_precision(self.precision)
    }

    /// The checked problem of these batches.
    fn batch<'p, T: Operand>(
        &self,
        stream: &Stream,
        alpha: T::Factor,
        a: MatrixBatch<'p, T>,
        b: MatrixBatch<'p, T>,
        beta: T::Factor,
        c: MatrixBatchMut<'p, D>,
    ) -> Result<Problem<'p, T, D>>
    where
        'a: 'p,
    {
        Problem::batched(stream, alpha, a, b, beta, c, self.epilogue)?.in_precision(self.precision)
    }
}

impl<D: DeviceData> Gemm<'_, D> {
    /// The names of the kernel instances of this backend that multiply matrices of `T` in these orders. C is of `D` and
    /// row-major. They compute in this precision or more exactly, and fuse no bias, residual or activation.
    pub fn instances<T: Element<D>>(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
    ) -> Vec<&'static str> {
        names::<T, D>(KernelQuery {
            backend,
            orders: [a, b],
            precision,
            fused: Fused::Nothing,
            of_batches: false,
            indexed: IndexedOperand::None,
        })
    }

    /// The names of the kernel instances that compute all products of a batch in one launch, without a bias or an
    /// activation. The orders, the types and the precision are as for [`instances`](Self::instances).
    pub fn batched_instances<T: Element<D>>(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
    ) -> Vec<&'static str> {
        names::<T, D>(KernelQuery {
            backend,
            orders: [a, b],
            precision,
            fused: Fused::Nothing,
            of_batches: true,
            indexed: IndexedOperand::None,
        })
    }

    /// The names of the kernel instances that fuse a bias or a residual, and this activation.
    pub fn fused_instances<T: Element<D>>(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
        activation: Option<Activation>,
    ) -> Vec<&'static str> {
        names::<T, D>(KernelQuery {
            backend,
            orders: [a, b],
            precision,
            fused: Fused::Something(activation),
            of_batches: false,
            indexed: IndexedOperand::None,
        })
    }
}

/// The list does not depend on C's element type. `f32` stands for any, so that callers need not name one.
impl Gemm<'_, f32> {
    /// The families of kernels for all element types, and whether this device runs them. For a problem, the family that
    /// is estimated to be the fastest is chosen.
    ///
    /// ```
    /// use cutlet::{Device, Gemm};
    ///
    /// for family in Gemm::families(&Device::cpu()) {
    ///     println!("{}: {} into {}", family.name, family.operands, family.c);
    ///     assert_eq!(family.refusal, None); // the CPU runs all of them
    /// }
    /// ```
    pub fn families(device: &Device) -> Vec<KernelFamily> {
        families::all(device)
    }
}

/// The names of all families' kernels that the query asks for.
fn names<T: Element<D>, D: DeviceData>(query: KernelQuery) -> Vec<&'static str> {
    let families = T::families().iter();
    families
        .flat_map(|family| family.candidates(query))
        .collect()
}

impl<D: DeviceData> Default for Gemm<'_, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: DeviceData> Clone for Gemm<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: DeviceData> Copy for Gemm<'_, D> {}

/// An element type of A and B in [`gemm`], which multiplies them into a C of `D`.
///
/// | A and B | C | where |
/// |---|---|---|
/// | `f32` | `f32`, `bf16`, `f16` | on GPUs from Ampere on, by CUDA cores exactly, and by tensor cores in the lower [`Precision`]s |
/// | `bf16`, `f16` | `bf16`, `f16`, `f32` | on the tensor cores of GPUs from Ampere on. Hopper has kernels of its own |
/// | `f64` | `f64` | on the tensor cores of GPUs from Ampere on |
/// | `i8` | `i32` | on the tensor cores of GPUs from Ampere on |
///
/// [`Gemm::families`] lists what a device runs. The arithmetic is in the type of the accumulators, [`Operand::Factor`].
///
/// A C of at most four rows or columns may be computed on CUDA cores if A is row-major and B is column-major.
///
/// If C has another type than A and B, the accumulators go to scratch memory, and a second kernel makes C. On Hopper,
/// an `f32` C of 16-bit A and B needs no second kernel if all of this holds:
///
/// - `beta` is 0, or 1 as for gradients that are accumulated.
/// - Nothing is fused, and k is not split.
/// - C's rows have an even number of elements and start at multiples of 8 bytes (of a column-major C, its columns).
///
/// A GPU that adds to such a C in place treats subnormal numbers in it as 0.
pub trait Element<D: DeviceData = Self>: sealed::Families<D> {}
impl Element for f32 {}
impl Element<bf16> for f32 {}
impl Element<f16> for f32 {}
impl Element for bf16 {}
impl Element<f16> for bf16 {}
impl Element<f32> for bf16 {}
impl Element for f16 {}
impl Element<bf16> for f16 {}
impl Element<f32> for f16 {}
impl Element for f64 {}
impl Element<i32> for i8 {}

mod sealed {
    use super::element_type::ElementType;
    use super::{Choice, Chosen, DeviceData, Family, Operand, Problem, Result, Stream, registry};

    /// The families of kernels that multiply matrices of this type into a C of `D`.
    pub trait Families<D: DeviceData>: Operand {
        fn families() -> &'static [&'static dyn Family<Self, D>];

        /// This type, and `D`.
        const TYPES: [ElementType; 2];

        fn plan(
            stream: &Stream,
            problem: &Problem<'_, Self, D>,
            choice: Choice<'_>,
        ) -> Result<Chosen<Self, D>> {
            registry::plan(Self::families(), Self::TYPES, stream, problem, choice)
        }

        fn plan_gated(
            stream: &Stream,
            problem: &Problem<'_, Self, D>,
            kernel: Option<&str>,
        ) -> Result<Option<Chosen<Self, D>>> {
            registry::plan_gated(Self::families(), stream, problem, kernel)
        }
    }
}
