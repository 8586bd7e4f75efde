//! The description of a GEMM: operands, groups, rows of tables, what is fused, and how the kernel is chosen.

use cutlet_device::fp8::{F8E4M3, MixedF8};
use cutlet_device::{DeviceData, Float};
use cutlet_host::{Backend, Device, IntoView, Stream};
use cutlet_kernels::gemm::epilogue::Accumulator;

use super::Element;
use super::block_scales::BlockScales;
use super::choice::decomposition::SEPARATOR;
use super::epilogue::{Activation, Bias, EpilogueArgs};
use super::families::{self, KernelFamily};
use super::group_sizes::{GroupEnds, GroupRows};
use super::indexed_rows::RowIndices;
use super::operand::{BlockScaledOperand, Operand, ScaledOperand};
use super::outer_mode::OuterMode;
use super::outer_scales::{OperandScales, OuterScales};
use super::plan::{self, Plan};
use super::plan_cache;
use super::precision::Precision;
use super::problem::{Problem, Sizes};
use super::quantized::QuantizedC;
use super::registry::{self, Choice, Fused, IndexedOperand, KernelQuery};
use super::scales::{Scales, ScalesKind};
use super::tuning_file::problem_key::ProblemKey;
use crate::batch::{Batch, BatchMut};
use crate::into_tensor::{IntoTensor, IntoTensorMut, batch, batch_mut, matrix, matrix_mut};
use crate::swiglu::{GatedElement, gate};
use crate::{Error, Matrix, Order, Quantize, Result};

/// A GEMM: `C = activation(alpha·A·B + beta·S + bias)`, where the source S is C as it was, or
/// [another matrix](Self::source). A [residual](Self::residual) is a source that is added once.
///
/// The bias and the source have C's element type, `D`. The arithmetic is in [`Operand::Factor`], mostly
/// f32, and C is rounded once. Only [`Activation::Gelu`] is less exact. In f64 and i32, [`Activation::Relu`] is the only
/// activation.
/// [`precision`](Self::precision) trades the exactness of `f32` products for speed.
///
/// On Hopper's tensor cores, one kernel does all of it if all of this holds, or the same with rows and columns exchanged:
///
/// - A and B are K-major: A row-major, B column-major.
/// - C has their type and is row-major. Its rows start at multiples of 16 bytes, and have a multiple of 16 bytes.
/// - A bias for columns starts at a multiple of two elements.
/// - A residual or a source is row-major. Its rows start at multiples of two elements.
///
/// Otherwise a second kernel applies the epilogue in another pass over C.
/// The second kernel is also used where it is faster, as for few tiles with a long k. On other GPUs and for other
/// element types, one kernel does all of it if C has the type of the accumulators or of A and B, and k is not split.
///
/// A linear layer with GELU, in bf16:
///
/// ```
/// use cutlet::{Activation, Bias, Device, DeviceTensor, Gemm};
/// use half::bf16;
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let (batch, inputs, outputs) = (3, 8, 16);
/// let x = DeviceTensor::upload(&stream, &vec![bf16::from_f32(0.5); batch * inputs], [batch, inputs])?;
/// // One row of weights for each output: the transposed matrix is contiguous in k.
/// let weights = vec![bf16::from_f32(0.25); outputs * inputs];
/// let weights = DeviceTensor::upload(&stream, &weights, [outputs, inputs])?;
/// let bias = stream.upload(&vec![bf16::from_f32(2.0); outputs])?;
/// let mut y = DeviceTensor::<bf16>::zeroed(&stream, [batch, outputs])?;
/// Gemm::new(&x, weights.tensor().transpose()?, &mut y)
///     .bias(Bias::columns(&bias))
///     .activation(Activation::Gelu)
///     .run(&stream)?;
/// assert_eq!(y.download(&stream)?[0], bf16::from_f32(2.9963627)); // gelu(1 + 2)
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Gemm<'a, T: Operand, D: DeviceData = T> {
    pub(super) alpha: T::Factor,
    /// A, B and C, or why one of the operands is no matrix.
    pub(super) operands: Result<Operands<'a, T, D>, String>,
    /// The factor of the source, or of C as it was.
    beta: T::Factor,
    /// What `beta` multiplies instead of C as it was.
    source: Option<Matrix<'a, D>>,
    pub(super) precision: Precision,
    pub(super) epilogue: EpilogueArgs<'a, D>,
    pub(super) scales: Scales<'a>,
    pub(super) sizes: Sizes<'a>,
    pub(super) outer_k: OuterMode,
    /// The rows of A's table.
    pub(super) gathered: Option<RowIndices<'a>>,
    /// The rows of C's table.
    pub(super) scattered: Option<RowIndices<'a>>,
    /// How a C of e4m3 is quantised.
    pub(super) quantized: Option<QuantizedC<'a>>,
    choice: Choice<'a>,
}

/// What is multiplied, and where the product goes.
#[derive(Debug)]
pub(crate) struct Operands<'a, T: DeviceData, D: DeviceData> {
    pub a: Batch<'a, T>,
    pub b: Batch<'a, T>,
    pub c: BatchMut<'a, D>,
}

impl<'a, T: Operand, D: DeviceData> Gemm<'a, T, D> {
    /// `C = A·B` of A (M, K, L), B (K, N, L) and C (M, N, L), as [`gemm`](fn@crate::gemm) reads them. If kernels read
    /// no tensor of such a layout, [`run`](Self::run) says so.
    pub fn new(
        a: impl IntoTensor<'a, Element = T>,
        b: impl IntoTensor<'a, Element = T>,
        c: impl IntoTensorMut<'a, Element = D>,
    ) -> Self {
        let operands = || {
            Ok(Operands {
                a: batch(a, "A")?,
                b: batch(b, "B")?,
                c: batch_mut(c, "C")?,
            })
        };
        Self::of(operands())
    }

    /// The product of operands that are batches of matrices, if they are.
    pub(crate) fn of(operands: Result<Operands<'a, T, D>, String>) -> Self {
        Gemm {
            alpha: T::Factor::ONE,
            operands,
            beta: T::Factor::ZERO,
            source: None,
            precision: Precision::Exact,
            epilogue: EpilogueArgs::default(),
            scales: Scales::None,
            sizes: Sizes::None,
            outer_k: OuterMode::ONE,
            gathered: None,
            scattered: None,
            quantized: None,
            choice: Choice::Tuned,
        }
    }

    /// Gives k an outer mode. The views of the first matrices have all elements.
    pub(crate) fn outer_k(self, outer_k: OuterMode) -> Self {
        Gemm { outer_k, ..self }
    }

    /// Multiplies the product by this factor. It is 1 unless it is set.
    pub fn alpha(self, alpha: T::Factor) -> Self {
        Gemm { alpha, ..self }
    }

    /// Adds so many times C as it was, or so many times the [`source`](Self::source). It is 0 unless it is set. With 0,
    /// C or the source is not read and may hold anything.
    pub fn beta(self, beta: T::Factor) -> Self {
        Gemm { beta, ..self }
    }

    /// Adds `beta` times this matrix: `C = alpha·A·B + beta·source`, where C as it was is not read. It is a
    /// [`residual`](Self::residual) with a factor, and errors call it the residual. It has C's extents and any order.
    /// Batches of several products have none.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm};
    ///
    /// let stream = Device::auto().stream()?;
    /// let ones = DeviceTensor::upload(&stream, &[1.0f32; 4], [2, 2])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    /// Gemm::new(&ones, &ones, &mut c).source(&ones, 0.5).run(&stream)?;
    /// assert_eq!(c.download(&stream)?, [2.5; 4]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn source(mut self, source: impl IntoTensor<'a, Element = D>, beta: T::Factor) -> Self {
        match matrix(source, "the source") {
            Ok(source) => self.source = Some(source),
            Err(found) => self.operands = Err(found),
        }
        self.beta(beta)
    }

    /// What is added to the product, and its factor: the residual once, or `beta` times the source. The matrix is `None`
    /// where it is C as it was, and where nothing is added.
    pub(super) fn addend(&self) -> Result<(T::Factor, Option<Matrix<'a, D>>)> {
        match (self.epilogue.residual, self.beta == T::Factor::ZERO) {
            (Some(residual), true) => Ok((T::Factor::ONE, Some(residual))),
            (Some(_), false) => Err(Error::Arithmetic {
                asked: "a product with a residual and a beta".to_string(),
                found: "kernels add one matrix; leave `beta` out to add the residual once, or give it to `source` with \
                        its factor",
            }),
            (None, true) => Ok((T::Factor::ZERO, None)),
            (None, false) => Ok((self.beta, self.source)),
        }
    }

    /// Multiplies groups of A's rows, each by a B of its own: the rows that a mixture of experts sends to its experts. A
    /// and C are one matrix each, and B is (K, N, groups).
    ///
    /// Group `g` has the rows from `ends[g - 1]` to `ends[g]` of A and C. The first group begins at row 0. The ends are
    /// read by the kernel, so that earlier work in the stream may compute them, also in a graph. A group may be empty.
    /// Ends beyond A's rows, and below 0, are cut off. Rows of C that are in no group keep their elements.
    ///
    /// Ends must not decrease, because rows would be in two groups. The CPU backend refuses such ends. On a GPU, each
    /// element of such a row comes from one of the groups, or from several if `beta` is not 0, and all other rows are
    /// right.
    ///
    /// [`run`](Self::run) fails if there is not an end for each B, if C is column-major, if there is a residual, or if
    /// C has another type than the kernels write: that of A, `i32` for `i8`, or `bf16` for 8-bit floats.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm, layout};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = DeviceTensor::upload(&stream, &[1.0f32; 5 * 4], [5, 4])?;
    /// // Two experts, of ones and of twos. The first has two rows, and the second has three.
    /// let b = [[1.0f32; 4 * 8], [2.0; 4 * 8]].concat();
    /// let b = DeviceTensor::upload(&stream, &b, layout!((4, 8, 2):(8, 1, 32)))?;
    /// let ends = stream.upload(&[2, 5])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [5, 8])?;
    /// Gemm::new(&a, &b, &mut c).group_ends(&ends).run(&stream)?;
    /// let c = c.download(&stream)?;
    /// assert_eq!((c[8], c[2 * 8]), (4.0, 8.0));
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn group_ends(self, ends: impl Into<GroupEnds<'a>>) -> Self {
        let GroupEnds(ends) = ends.into();
        let sizes = Sizes::Ends(ends);
        Gemm { sizes, ..self }
    }

    /// Multiplies the first `rows[g]` rows of each A of a batch. The others are padding, which is neither multiplied nor
    /// written to C. [`run`](Self::run) fails as for [`group_ends`](Self::group_ends).
    pub fn group_rows(self, rows: impl Into<GroupRows<'a>>) -> Self {
        let GroupRows(rows) = rows.into();
        let sizes = Sizes::Counts(rows);
        Gemm { sizes, ..self }
    }

    /// Takes A for a table: row `r` of the product's A is the row of the table that the index number `r` names. The rows
    /// are read from the table, without a copy of A in memory. Where no kernel does so, as for 8-bit floats, a gather
    /// copies them to scratch memory first.
    ///
    /// The table and C are row-major. An index that is no row of the table is never used as an address:
    /// [`IndexedRows::out_of_range`](crate::IndexedRows::out_of_range) says what becomes of its row. With
    /// [`group_ends`](Self::group_ends), these are the experts' products of tokens, of which no copy sorted by expert is
    /// needed.
    ///
    /// [`run`](Self::run) fails if there is not an index for each row of C, or if the table or C is column-major.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm, IndexedRows};
    ///
    /// let stream = Device::auto().stream()?;
    /// let table = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let b = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 0.0, 10.0], [2, 2])?;
    /// let indices = stream.upload(&[1i32, 0, 1])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
    /// let mut rows = IndexedRows::new(stream.device())?;
    /// Gemm::new(&table, &b, &mut c)
    ///     .gather_a(rows.by(&indices)?)
    ///     .run(&stream)?;
    /// rows.check(&stream)?;
    /// assert_eq!(c.download(&stream)?, [3.0, 40.0, 1.0, 20.0, 3.0, 40.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn gather_a(self, rows: RowIndices<'a>) -> Self {
        let gathered = Some(rows);
        Gemm { gathered, ..self }
    }

    /// Takes C for a table: row `r` of the product goes to the row of the table that the index number `r` names, without
    /// a copy of the product in memory. Rows of the table that no index names keep their elements.
    ///
    /// A and the table are row-major. If several indices are the same and `beta` is 0, each element of their row comes
    /// from one of the product's rows. With another `beta`, all indices must be different, because the products do not
    /// see each other's sums. The CPU backend refuses indices that are not. On a GPU, the elements of such a row are made
    /// of some of the products, and all other rows are right. An index that is no row of the table is never used as an
    /// address.
    ///
    /// [`run`](Self::run) fails if there is not an index for each row of A, if A or the table is column-major, or if
    /// there is a residual. Also if the table has another type than the kernels write: that of A, or `i32` for `i8`.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm, IndexedRows, OutOfRange};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let b = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 0.0, 10.0], [2, 2])?;
    /// let indices = stream.upload(&[2i64, 7])?;
    /// let mut table = DeviceTensor::upload(&stream, &[5.0f32; 3 * 2], [3, 2])?;
    /// let rows = IndexedRows::new(stream.device())?.out_of_range(OutOfRange::Skip);
    /// Gemm::new(&a, &b, &mut table)
    ///     .beta(1.0)
    ///     .scatter_c(rows.by(&indices)?)
    ///     .run(&stream)?;
    /// assert_eq!(table.download(&stream)?, [5.0, 5.0, 5.0, 5.0, 6.0, 25.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn scatter_c(self, rows: RowIndices<'a>) -> Self {
        let scattered = Some(rows);
        Gemm { scattered, ..self }
    }

    /// Adds a number to each row or column of the product. It is the same for all products of a batch.
    pub fn bias(mut self, bias: Bias<'a, D>) -> Self {
        self.epilogue.bias = Some(bias);
        self
    }

    /// Adds this matrix once. It has C's extents and any order. Batches of several products have none.
    ///
    /// [`run`](Self::run) fails if there is also a [`beta`](Self::beta) that is not 0, because kernels add one matrix.
    /// [`source`](Self::source) adds a matrix with a factor.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm};
    ///
    /// let stream = Device::auto().stream()?;
    /// let ones = DeviceTensor::upload(&stream, &[1.0f32; 4], [2, 2])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    /// Gemm::new(&ones, &ones, &mut c).residual(&ones).run(&stream)?;
    /// assert_eq!(c.download(&stream)?, [3.0; 4]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn residual(mut self, residual: impl IntoTensor<'a, Element = D>) -> Self {
        match matrix(residual, "the residual") {
            Ok(residual) => self.epilogue.residual = Some(residual),
            Err(found) => self.operands = Err(found),
        }
        self
    }

    /// Applies this function last. GELU and SiLU of −∞ are 0, their limit.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.epilogue.activation = Some(activation);
        self
    }

    /// Gates the product: `C = silu(alpha·gate) · (alpha·up)`. Column `2c` of A·B is the gate of C's column `c`, and
    /// column `2c + 1` is its up. B has twice as many columns as C.
    ///
    /// On Hopper's tensor cores, one kernel does it if A is row-major, and if rows of A and rows or columns of B begin
    /// at multiples of 16 bytes. For few rows of bf16 and f16 with a column-major B, a kernel for all GPUs does it. The
    /// arithmetic is in f32, and C is rounded once. Otherwise, and for up to 64 rows if that is faster, the product goes
    /// to scratch memory in C's type, which rounds gates and ups, and [`swiglu`](fn@crate::swiglu) follows. With
    /// [`group_ends`](Self::group_ends), rows of C that are in no group hold anything afterwards.
    ///
    /// [`run`](Self::run) fails if C is column-major, or if there is a beta, a bias, a residual, an activation or a
    /// table of C.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0], [1, 2])?;
    /// // A gate and an up of each of two columns.
    /// let b = [100.0f32, 1.0, 0.0, 7.0, 0.0, 2.0, -50.0, 7.0];
    /// let b = DeviceTensor::upload(&stream, &b, [2, 4])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [1, 2])?;
    /// Gemm::new(&a, &b, &mut c).swiglu().run(&stream)?;
    /// assert_eq!(c.download(&stream)?, [500.0, 0.0]); // silu(100) · 5, silu(-100) · 21
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn swiglu(mut self) -> Self
    where
        D: GatedElement,
    {
        self.epilogue.gate = Some(gate::<D>);
        self
    }

    /// Multiplies operands of `f32` in this precision, or more exactly: see [`Precision`]. It is
    /// [`Exact`](Precision::Exact) unless it is set.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm, Precision};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = DeviceTensor::upload(&stream, &[0.1f32; 8 * 16], [8, 16])?;
    /// let b = DeviceTensor::upload(&stream, &[0.2f32; 16 * 8], [16, 8])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [8, 8])?;
    /// Gemm::new(&a, &b, &mut c)
    ///     .precision(Precision::Tf32)
    ///     .run(&stream)?;
    /// assert!((c.download(&stream)?[0] - 0.32).abs() < 0.32 / 1024.0);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn precision(self, precision: Precision) -> Self {
        Gemm { precision, ..self }
    }

    /// Uses the kernel instance of this name instead of the one that is estimated to be the fastest: to compare
    /// instances. [`instances`](Self::instances) lists the names. If something is fused and C has A's type,
    /// [`fused_instances`](Self::fused_instances) lists more. A decomposition may follow the name, as in
    /// `bf16_128x256x64_2x1_coop/split_k_serial`. A kernel that does not have the decomposition for a problem is
    /// refused. [`candidates`](Self::candidates) lists all names for given matrices.
    ///
    /// For these lists, a packed matrix of one row is row-major, and one of one column is column-major.
    pub fn instance(self, name: &'a str) -> Self {
        let choice = Choice::Named(name);
        Gemm { choice, ..self }
    }

    /// Uses the kernel instance that is estimated to be the fastest, even if a [`Tuning`](crate::Tuning) has another one
    /// for the problem: to compare both.
    pub fn untuned(self) -> Self {
        let choice = Choice::Estimated;
        Gemm { choice, ..self }
    }
}

impl<'a, TA: DeviceData, TB: DeviceData, D: DeviceData> Gemm<'a, MixedF8<TA, TB>, D>
where
    MixedF8<TA, TB>: Operand,
{
    /// `C = A·B` of 8-bit floats of two formats, as [`new`](Self::new) describes it: of `F8E4M3` and `F8E5M2`, or of
    /// `F8E5M2` and `F8E4M3`, as gradients are multiplied. A is (M, K, L), B (K, N, L) and C (M, N, L) and row-major.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, F8E4M3, F8E5M2, Gemm, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// # if stream.device().compute_capability().is_some_and(|it| it != (9, 0)) { return Ok(()); }
    /// let a = vec![F8E5M2::from_f32(1024.0); 2 * 32];
    /// let a = DeviceTensor::upload(&stream, &a, [2, 32])?;
    /// let b = vec![F8E4M3::from_f32(1.125); 32 * 8];
    /// let b = DeviceTensor::upload(&stream, &b, [32, 8])?;
    /// let mut c = DeviceTensor::<bf16>::zeroed(&stream, [2, 8])?;
    /// Gemm::mixed(&a, &b, &mut c).run(&stream)?;
    /// assert_eq!(c.download(&stream)?[0].to_f32(), 1024.0 * 1.125 * 32.0);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn mixed(
        a: impl IntoTensor<'a, Element = TA>,
        b: impl IntoTensor<'a, Element = TB>,
        c: impl IntoTensorMut<'a, Element = D>,
    ) -> Self {
        let operands = || {
            Ok(Operands {
                a: batch(a, "A")?.reinterpret(),
                b: batch(b, "B")?.reinterpret(),
                c: batch_mut(c, "C")?,
            })
        };
        Self::of(operands())
    }
}

impl<'a, T: BlockScaledOperand, D: DeviceData> Gemm<'a, T, D> {
    /// Multiplies A and B, of 8-bit floats, by scales of blocks: 1×128 elements of A have a scale, and 128×128 elements of B. The last
    /// blocks may be smaller. `of_a` is (m, k/128) and `of_b` is (k/128, n/128), both rounded up.
    ///
    /// Nothing is copied if `of_a` is column-major at multiples of 16 bytes, and `of_b` column-major. C is row-major.
    /// The products of a block are added by tensor cores, and scaled and added in f32.
    ///
    /// In a batch and in groups of rows, each matrix has scales of its own: `of_b` is (k/128, n/128, L), and `of_a` is
    /// (m, k/128, L), but (m, k/128) with [`group_ends`](Self::group_ends). C of groups is of `bf16`, and nothing is copied
    /// but scales of the one A of `group_ends`: A and B are K-major at multiples of 16 bytes, and other scales are
    /// column-major, those of A at multiples of 16 bytes. So are operands of a batch that one launch multiplies; others are
    /// multiplied one by one. With [`gather_a`](Self::gather_a), `of_a` has the scales of the table.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, F8E4M3, Gemm, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// # if stream.device().compute_capability().is_some_and(|it| it != (9, 0)) { return Ok(()); }
    /// let ones = |count| vec![F8E4M3::from_f32(1.0); count];
    /// let a = DeviceTensor::upload(&stream, &ones(2 * 256), [2, 256])?;
    /// let b = DeviceTensor::upload(&stream, &ones(256 * 8), [256, 8])?;
    /// // Each row of A has two blocks, and B has two, one below the other.
    /// let of_a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let of_b = DeviceTensor::upload(&stream, &[1.0f32, 0.5], [2, 1])?;
    /// let mut c = DeviceTensor::<bf16>::zeroed(&stream, [2, 8])?;
    /// Gemm::new(&a, &b, &mut c).block_scales(&of_a, &of_b).run(&stream)?;
    /// let c = c.download(&stream)?;
    /// assert_eq!((c[0].to_f32(), c[8].to_f32()), (128.0 + 128.0, 384.0 + 256.0));
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn block_scales(
        mut self,
        of_a: impl IntoTensor<'a, Element = f32>,
        of_b: impl IntoTensor<'a, Element = f32>,
    ) -> Self {
        let both = || {
            Ok(BlockScales {
                a: batch(of_a, "A's scales")?,
                b: batch(of_b, "B's scales")?,
            })
        };
        match both() {
            Ok(scales) => self.scales = Scales::Blocks(scales),
            Err(found) => self.operands = Err(found),
        }
        self
    }
}

impl<'a> Gemm<'a, F8E4M3, F8E4M3> {
    /// Quantises C: each 128 elements of a row have a scale, which is their largest magnitude divided by 448, and C has
    /// them divided by it, as [`Quantize`] has it. So C and its scales are the A of another product with
    /// [`block_scales`](Self::block_scales). `scales` are (m, n/128), rounded up, and nothing copies them there if they are
    /// column-major at multiples of 16 bytes.
    ///
    /// With scales of blocks of A and B, one kernel multiplies and quantises in f32, if rows of C begin at multiples of two
    /// elements and have an even number of them. Otherwise the product goes to scratch memory in f32, and a second kernel
    /// quantises it.
    ///
    /// [`run`](Self::run) fails if a C of `F8E4M3` is not quantised, or by rows. Also if C is column-major, in a batch and in
    /// groups, with rows of a table, and with anything else that is fused.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, F8E4M3, Gemm, Quantize};
    ///
    /// let stream = Device::auto().stream()?;
    /// # if stream.device().compute_capability().is_some_and(|it| it != (9, 0)) { return Ok(()); }
    /// let ones = |count| vec![F8E4M3::from_f32(1.0); count];
    /// let a = DeviceTensor::upload(&stream, &ones(2 * 256), [2, 256])?;
    /// let b = DeviceTensor::upload(&stream, &ones(256 * 8), [256, 8])?;
    /// let of_a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let of_b = DeviceTensor::upload(&stream, &[1.0f32, 0.5], [2, 1])?;
    /// let mut c = DeviceTensor::<F8E4M3>::zeroed(&stream, [2, 8])?;
    /// let mut of_c = DeviceTensor::<f32>::zeroed(&stream, [2, 1])?;
    /// Gemm::new(&a, &b, &mut c)
    ///     .block_scales(&of_a, &of_b)
    ///     .quantized(Quantize::by_blocks().powers_of_two(), &mut of_c)
    ///     .run(&stream)?;
    /// assert_eq!(of_c.download(&stream)?, [1.0, 2.0]);
    /// assert_eq!(c.download(&stream)?[8].to_f32(), (384.0 + 256.0) / 2.0);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn quantized(
        mut self,
        quantize: Quantize,
        scales: impl IntoTensorMut<'a, Element = f32>,
    ) -> Self {
        match matrix_mut(scales, "C's scales") {
            Ok(scales) => self.quantized = Some(QuantizedC { quantize, scales }),
            Err(found) => self.operands = Err(found),
        }
        self
    }
}

impl<'a, T: ScaledOperand, D: Float> Gemm<'a, T, D> {
    /// Multiplies the product by scales of A's rows and of B's columns: C[i, j] gets `of_a[i] · of_b[j]` times the sum
    /// of products. `of_a` has m scales, or one for all rows. `of_b` has n, or one for all columns.
    ///
    /// In a batch and in groups of rows, each matrix has scales of its own, which follow those of the matrix before: `of_a`
    /// has m · L, and `of_b` n · L. They may also be L, one for each matrix, or one for all. With
    /// [`group_ends`](Self::group_ends), all rows are in one A. With [`gather_a`](Self::gather_a), `of_a` has a scale for each
    /// row of the table.
    ///
    /// Sums of `i8` are exact in `i32`, and rounded to `f32`. Those of 8-bit floats are as exact as the
    /// [`precision`](Self::precision) says. They are multiplied by `alpha` and the scales. Beta and what else is fused
    /// come after the scales.
    ///
    /// On Hopper, one kernel does it for a C of `bf16`, and of `f16` if operands are `i8`, if nothing else is fused and
    /// TMA can store C: its rows begin at multiples of 16 bytes and have a multiple of 16 bytes. Otherwise a second
    /// kernel scales.
    ///
    /// [`run`](Self::run) fails if there are other numbers of scales, if C overlaps them, or if C is scattered. Also in
    /// groups, unless operands are 8-bit floats and C is of `bf16`.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gemm};
    ///
    /// let stream = Device::auto().stream()?;
    /// let a = DeviceTensor::upload(&stream, &[100i8, -128, 3, 4], [2, 2])?;
    /// let b = DeviceTensor::upload(&stream, &[1i8, 2, 127, -128], [2, 2])?;
    /// let (of_a, of_b) = (stream.upload(&[0.5f32, 2.0])?, stream.upload(&[0.25f32])?);
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    /// Gemm::new(&a, &b, &mut c).outer_scales(&of_a, &of_b).run(&stream)?;
    /// assert_eq!(c.download(&stream)?, [-2019.5, 2073.0, 255.5, -253.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn outer_scales(
        self,
        of_a: impl IntoView<'a, Element = f32>,
        of_b: impl IntoView<'a, Element = f32>,
    ) -> Self {
        let scales = OuterScales {
            a: OperandScales::new(of_a.into_view()),
            b: OperandScales::new(of_b.into_view()),
        };
        Gemm {
            scales: Scales::Outer(scales),
            ..self
        }
    }
}

impl<T: Element<D>, D: DeviceData> Gemm<'_, T, D> {
    /// Enqueues the GEMM in the stream. The stream keeps the kernel that was chosen, and launches it again for a GEMM of
    /// the same shape.
    ///
    /// # Errors
    /// As [`gemm`](fn@crate::gemm), and also:
    ///
    /// - The batches have different lengths, or several products have a residual.
    /// - The bias does not have an element for each row or column of C.
    /// - The extents of the residual or the source are not C's, or C overlaps the bias, the residual or the source.
    /// - No instance of the name that was asked for solves the problem.
    /// - [`Error::Arithmetic`](crate::Error::Arithmetic): the element types do not have the precision or the
    ///   activation, or there are a residual and a `beta`.
    pub fn run(&mut self, stream: &Stream) -> Result<()> {
        let choice = self.choice;
        let problem = Problem::new(stream, self)?;
        let chosen = plan_cache::cached_or(stream, &problem, choice, || {
            plan::choose(stream, &problem, choice)
        })?;
        match chosen {
            Some(chosen) => chosen.launch(stream, problem),
            None => Ok(()),
        }
    }

    /// Makes a [`Plan`] for matrices like these. Their elements are neither read nor written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn plan(&mut self, stream: &Stream) -> Result<Plan<T, D>> {
        let choice = self.choice;
        Plan::new(stream, &Problem::new(stream, self)?, choice)
    }

    /// What the fastest kernel for matrices like these depends on: the problem that a [`Tuning`](crate::Tuning)'s entry
    /// is for. None for k = 0 and for a C without elements, which are not tuned. No element is read or written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn problem_key(&mut self, stream: &Stream) -> Result<Option<ProblemKey>> {
        let problem = Problem::new(stream, self)?;
        Ok(match problem.is_empty() {
            true => None,
            false => ProblemKey::of(&problem, T::TYPES),
        })
    }

    /// The names that [`instance`](Self::instance) takes for matrices like these.
    ///
    /// For one product, they are those of [`instances`](Self::instances) and [`fused_instances`](Self::fused_instances)
    /// for this device, and `NAME/DECOMPOSITION` for each decomposition in which a kernel may run besides its estimated
    /// one. For several, they are the kernels that compute all products in one launch. There are none for a C without
    /// elements. `instance` refuses a kernel that does not fit the matrices' alignment. No element is read or written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn candidates(&mut self, stream: &Stream) -> Result<Vec<String>> {
        let problem = Problem::new(stream, self)?;
        if problem.is_empty() {
            return Ok(Vec::new());
        }
        let mut candidates = Vec::new();
        let names = registry::names(T::families(), stream.device(), &problem);
        for name in names {
            for family in T::families() {
                let decompositions = family.decompositions(stream, &problem, name);
                let named = decompositions
                    .iter()
                    .map(|it| format!("{name}{SEPARATOR}{it}"));
                candidates.extend(named);
            }
            candidates.push(name.to_string());
        }
        candidates.sort_unstable();
        candidates.dedup();
        Ok(candidates)
    }

    /// The names of the kernel instances of this backend that multiply matrices of `T` in these orders. C is of `D` and
    /// row-major. They compute in this precision or more exactly, and fuse no bias, residual or activation.
    pub fn instances(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
    ) -> Vec<&'static str> {
        names::<T, D>(plain_query(backend, [a, b], precision))
    }

    /// The names of the kernel instances that compute all products of a batch in one launch, without a bias or an
    /// activation. The orders, the types and the precision are as for [`instances`](Self::instances).
    pub fn batched_instances(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
    ) -> Vec<&'static str> {
        names::<T, D>(KernelQuery {
            of_batches: true,
            ..plain_query(backend, [a, b], precision)
        })
    }

    /// The names of the kernel instances that fuse a bias or a residual, and this activation.
    pub fn fused_instances(
        backend: Backend,
        a: Order,
        b: Order,
        precision: Precision,
        activation: Option<Activation>,
    ) -> Vec<&'static str> {
        names::<T, D>(KernelQuery {
            fused: Fused::Something(activation),
            ..plain_query(backend, [a, b], precision)
        })
    }
}

/// The list does not depend on element types. `f32` stands for any, so that callers need not name one.
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

/// Asks for kernels of one product of its own rows, with nothing fused.
fn plain_query(backend: Backend, orders: [Order; 2], precision: Precision) -> KernelQuery {
    KernelQuery {
        backend,
        orders,
        precision,
        fused: Fused::Nothing,
        of_batches: false,
        indexed: IndexedOperand::None,
        scales: ScalesKind::None,
    }
}

/// The names of all families' kernels that the query asks for.
fn names<T: Element<D>, D: DeviceData>(query: KernelQuery) -> Vec<&'static str> {
    let families = T::families().iter();
    families
        .flat_map(|family| family.candidates(query))
        .collect()
}
