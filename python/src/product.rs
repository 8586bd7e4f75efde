//! Products of matrices, of batches and of groups: from arrays to the library's [`Gemm`].

use cutlet::{
    Bias, BiasAlong, DeviceData, Element, F8E4M3, F8E5M2, Gemm, GroupEnds, GroupRows, IntTuple,
    Layout, Matrix, MixedF8, Operand, Precision, ScaledOperand, Stream, Tensor, bf16, f16,
};
use cutlet_host::{Scratch, View};

use crate::array::{Array, Shaped, expect_shape, tuple};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::options::Follows;
use crate::stream::Context;

/// A product and what is fused with it.
pub struct Product<'a> {
    pub a: &'a Array,
    pub b: &'a Array,
    pub c: &'a Array,
    pub alpha: f64,
    pub beta: Option<f64>,
    pub bias: Option<(&'a Array, BiasAlong)>,
    pub residual: Option<&'a Array>,
    /// Scales of blocks of A and B, or of rows and columns.
    pub scales: Option<[&'a Array; 2]>,
    pub follows: Follows,
    pub precision: Precision,
    pub sizes: Sizes<'a>,
}

/// The rows of groups.
#[derive(Clone, Copy)]
pub enum Sizes<'a> {
    /// There are no groups.
    None,
    /// Where groups end.
    Ends(&'a Array),
    /// How many rows each has.
    Rows(&'a Array),
}

/// The matrices of a product.
#[derive(Clone, Copy)]
pub struct Matrices {
    a: Shaped,
    b: Shaped,
    c: Shaped,
    residual: Option<Shaped>,
    scales: Option<[Shaped; 2]>,
}

/// The element type of a product's C if none is asked for.
pub fn type_of_product(of_a: DataType) -> DataType {
    match of_a {
        DataType::I8 => DataType::I32,
        DataType::F8E4M3 | DataType::F8E5M2 => DataType::Bf16,
        other => other,
    }
}

/// Calls a function with the types of A and B together, and of C. Other types than 8-bit floats are those of A.
macro_rules! for_types {
    ($operation:expr, $operands:expr, $c:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::data_type::DataType::{Bf16, F8E4M3, F8E5M2, F16, F32};
        type E4m3E5m2 = cutlet::MixedF8<cutlet::F8E4M3, cutlet::F8E5M2>;
        type E5m2E4m3 = cutlet::MixedF8<cutlet::F8E5M2, cutlet::F8E4M3>;
        match ($operands, $c) {
            ([F8E5M2, F8E5M2], Bf16) => $function::<cutlet::F8E5M2, cutlet::bf16>($($argument),*),
            ([F8E5M2, F8E5M2], F16) => $function::<cutlet::F8E5M2, cutlet::f16>($($argument),*),
            ([F8E5M2, F8E5M2], F32) => $function::<cutlet::F8E5M2, f32>($($argument),*),
            ([F8E4M3, F8E5M2], Bf16) => $function::<E4m3E5m2, cutlet::bf16>($($argument),*),
            ([F8E4M3, F8E5M2], F16) => $function::<E4m3E5m2, cutlet::f16>($($argument),*),
            ([F8E4M3, F8E5M2], F32) => $function::<E4m3E5m2, f32>($($argument),*),
            ([F8E5M2, F8E4M3], Bf16) => $function::<E5m2E4m3, cutlet::bf16>($($argument),*),
            ([F8E5M2, F8E4M3], F16) => $function::<E5m2E4m3, cutlet::f16>($($argument),*),
            ([F8E5M2, F8E4M3], F32) => $function::<E5m2E4m3, f32>($($argument),*),
            ([a, _], c) => {
                $crate::product::for_types!(of one: $operation, a, c, $function($($argument),*))
            }
        }
    }};
    (of one: $operation:expr, $a:expr, $c:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::data_type::DataType::{Bf16, F8E4M3, F16, F32, F64, I8, I32};
        match ($a, $c) {
            (F32, F32) => $function::<f32, f32>($($argument),*),
            (F32, Bf16) => $function::<f32, cutlet::bf16>($($argument),*),
            (F32, F16) => $function::<f32, cutlet::f16>($($argument),*),
            (Bf16, Bf16) => $function::<cutlet::bf16, cutlet::bf16>($($argument),*),
            (Bf16, F16) => $function::<cutlet::bf16, cutlet::f16>($($argument),*),
            (Bf16, F32) => $function::<cutlet::bf16, f32>($($argument),*),
            (F16, F16) => $function::<cutlet::f16, cutlet::f16>($($argument),*),
            (F16, Bf16) => $function::<cutlet::f16, cutlet::bf16>($($argument),*),
            (F16, F32) => $function::<cutlet::f16, f32>($($argument),*),
            (F8E4M3, Bf16) => $function::<cutlet::F8E4M3, cutlet::bf16>($($argument),*),
            (F8E4M3, F16) => $function::<cutlet::F8E4M3, cutlet::f16>($($argument),*),
            (F8E4M3, F32) => $function::<cutlet::F8E4M3, f32>($($argument),*),
            (F64, F64) => $function::<f64, f64>($($argument),*),
            (I8, I32) => $function::<i8, i32>($($argument),*),
            (I8, Bf16) => $function::<i8, cutlet::bf16>($($argument),*),
            (I8, F16) => $function::<i8, cutlet::f16>($($argument),*),
            (I8, F32) => $function::<i8, f32>($($argument),*),
            (a, c) => $crate::product::no_product($operation, a, c),
        }
    }};
}
pub(crate) use for_types;

/// The error for types that no kernel multiplies.
pub fn no_product<T>(operation: &str, a: DataType, c: DataType) -> Result<T> {
    wrong_type(format!(
        "{operation}: a is {} and out is {}; there are products of float32, bfloat16 and float16 into one another, of \
         float8_e4m3fn and float8_e5m2 into these, of float64 into float64, and of int8 into int32, float32, bfloat16 \
         and float16",
        a.name(),
        c.name()
    ))
}

/// A number as a factor of a product.
pub trait Number: Sized {
    /// The number; an error if the type does not have it.
    fn of(operation: &str, name: &str, number: f64) -> Result<Self>;
}

impl Number for f32 {
    fn of(_: &str, _: &str, number: f64) -> Result<f32> {
        Ok(number as f32)
    }
}

impl Number for f64 {
    fn of(_: &str, _: &str, number: f64) -> Result<f64> {
        Ok(number)
    }
}

impl Number for i32 {
    fn of(operation: &str, name: &str, number: f64) -> Result<i32> {
        let integer = number as i32;
        match f64::from(integer) == number {
            true => Ok(integer),
            false => wrong_value(format!(
                "{operation}: {name} is {number}, and factors of int8 products are integers of 32 bits"
            )),
        }
    }
}

/// An element type of A and B, and which scales it has.
pub trait Scaling: Operand {
    /// The description with scales of blocks of A and B. Of other types, the caller has refused them.
    fn scaled<'a, D: DeviceData>(
        gemm: Gemm<'a, Self, D>,
        _scales: (BlockScales<'a>, BlockScales<'a>),
    ) -> Gemm<'a, Self, D> {
        gemm
    }

    /// The description with scales of A's rows and B's columns. Of other types, the caller has refused them.
    fn outer_scaled<'a, D: Gating>(
        gemm: Gemm<'a, Self, D>,
        _scales: [View<'a, f32>; 2],
    ) -> Gemm<'a, Self, D> {
        gemm
    }
}
impl Scaling for f32 {}
impl Scaling for bf16 {}
impl Scaling for f16 {}
impl Scaling for f64 {}

impl Scaling for i8 {
    fn outer_scaled<'a, D: Gating>(
        gemm: Gemm<'a, Self, D>,
        scales: [View<'a, f32>; 2],
    ) -> Gemm<'a, Self, D> {
        D::outer_scaled(gemm, scales)
    }
}

macro_rules! floats8 {
    ($($element:ty),+) => {$(
        impl Scaling for $element {
            fn scaled<'a, D: DeviceData>(
                gemm: Gemm<'a, Self, D>,
                (of_a, of_b): (BlockScales<'a>, BlockScales<'a>),
            ) -> Gemm<'a, Self, D> {
                match (of_a, of_b) {
                    (BlockScales::OfOne(a), BlockScales::OfOne(b)) => gemm.block_scales(a, b),
                    (BlockScales::OfOne(a), BlockScales::OfEach(b)) => gemm.block_scales(a, b),
                    (BlockScales::OfEach(a), BlockScales::OfOne(b)) => gemm.block_scales(a, b),
                    (BlockScales::OfEach(a), BlockScales::OfEach(b)) => gemm.block_scales(a, b),
                }
            }

            fn outer_scaled<'a, D: Gating>(
                gemm: Gemm<'a, Self, D>,
                scales: [View<'a, f32>; 2],
            ) -> Gemm<'a, Self, D> {
                D::outer_scaled(gemm, scales)
            }
        }
    )+};
}
floats8!(F8E4M3, F8E5M2, MixedF8<F8E4M3, F8E5M2>, MixedF8<F8E5M2, F8E4M3>);

/// Scales of blocks.
#[expect(
    clippy::large_enum_variant,
    reason = "a product has two, for the time of a call"
)]
pub enum BlockScales<'a> {
    /// Of one matrix. It may have no elements.
    OfOne(Matrix<'a, f32>),
    /// Of each matrix of several.
    OfEach(Tensor<'a, f32>),
}

impl<'a> BlockScales<'a> {
    /// Those of an array.
    fn of(
        shaped: Shaped,
        array: &'a Array,
        context: &'static Context,
    ) -> cutlet::Result<BlockScales<'a>> {
        Ok(match array.rank() {
            2 => BlockScales::OfOne(shaped.of::<f32>(array, context)?),
            _ => BlockScales::OfEach(shaped.batch_of::<f32>(array, array.shape()[0], context)?),
        })
    }
}

/// An element type of C, and whether a product of it can be gated, and scaled.
pub trait Gating: DeviceData {
    fn gated<'a, T: Operand>(gemm: Gemm<'a, T, Self>) -> Option<Gemm<'a, T, Self>>;

    /// The description with scales of A's rows and B's columns, where there are some. Of other types, the caller has
    /// refused them.
    fn outer_scaled<'a, T: ScaledOperand>(
        gemm: Gemm<'a, T, Self>,
        scales: [View<'a, f32>; 2],
    ) -> Gemm<'a, T, Self>;
}

macro_rules! gating {
    ($($element:ty: |$gemm:ident| $gated:expr, |$of_sums:ident, $scales:pat_param| $scaled:expr;)+) => {$(
        impl Gating for $element {
            fn gated<'a, T: Operand>($gemm: Gemm<'a, T, Self>) -> Option<Gemm<'a, T, Self>> {
                $gated
            }

            fn outer_scaled<'a, T: ScaledOperand>(
                $of_sums: Gemm<'a, T, Self>,
                $scales: [View<'a, f32>; 2],
            ) -> Gemm<'a, T, Self> {
                $scaled
            }
        }
    )+};
}
gating! {
    f32: |gemm| Some(gemm.swiglu()), |gemm, [a, b]| gemm.outer_scales(a, b);
    bf16: |gemm| Some(gemm.swiglu()), |gemm, [a, b]| gemm.outer_scales(a, b);
    f16: |gemm| Some(gemm.swiglu()), |gemm, [a, b]| gemm.outer_scales(a, b);
    f64: |_gemm| None, |gemm, _| gemm;
    i32: |_gemm| None, |gemm, _| gemm;
}

/// Returns an error unless A and B have one type, or each has one of the formats of 8-bit floats.
pub fn expect_operand_types(operation: &str, a: &Array, b: &Array) -> Result<()> {
    match is_float8(a.data_type) && is_float8(b.data_type) {
        true => Ok(()),
        false => b.expect_type(operation, a.data_type),
    }
}

/// Whether these are 8-bit floats.
fn is_float8(data_type: DataType) -> bool {
    matches!(data_type, DataType::F8E4M3 | DataType::F8E5M2)
}

impl Product<'_> {
    /// Enqueues the product.
    ///
    /// # Errors
    /// If the arrays do not fit each other, or there are no kernels for them.
    pub fn run(&self, call: &Call<'_>) -> Result<()> {
        let matrices = self.matrices(call.operation)?;
        for_types!(
            call.operation,
            [self.a.data_type, self.b.data_type],
            self.c.data_type,
            enqueue(call, self, matrices)
        )
    }

    /// The matrices of the arrays.
    ///
    /// # Errors
    /// If the arrays do not fit each other.
    pub fn matrices(&self, operation: &'static str) -> Result<Matrices> {
        expect_operand_types(operation, self.a, self.b)?;
        let of_c = self.bias.map(|(bias, _)| bias).into_iter();
        for array in of_c.chain(self.residual) {
            array.expect_type(operation, self.c.data_type)?;
        }
        if let Some((bias, _)) = self.bias {
            bias.expect_rank(operation, 1)?;
            bias.expect_contiguous(operation)?;
        }
        let matrices = Matrices {
            a: self.a.matrix(operation)?,
            b: self.b.matrix(operation)?,
            c: self.c.matrix(operation)?,
            residual: match self.residual {
                Some(residual) => {
                    residual.expect_rank(operation, 2)?;
                    Some(residual.matrix(operation)?)
                }
                None => None,
            },
            scales: match self.scales {
                Some([of_a, of_b]) if self.are_outer([of_a, of_b]) => {
                    self.expect_outer_scales(operation, of_a)?;
                    self.expect_outer_scales(operation, of_b)?;
                    None
                }
                Some([of_a, of_b]) => Some([
                    self.expect_scales(operation, of_a, self.a)?,
                    self.expect_scales(operation, of_b, self.b)?,
                ]),
                None => None,
            },
        };
        // No tensor has an extent of 0, so that the library does not see such batches.
        if self.is_batched() {
            self.expect_extents(operation)?;
        }
        Ok(matrices)
    }

    /// Whether scales are of rows and columns: as many as these, with fewer dimensions or as matrices, or one of all. Of
    /// 8-bit floats, other matrices are scales of blocks.
    fn are_outer(&self, [scales_a, scales_b]: [&Array; 2]) -> bool {
        let is_outer = |scales: &Array, of: &Array, own: [usize; 2]| {
            let [.., rows, columns] = *scales.shape() else {
                return true;
            };
            scales.rank() < of.rank() || [own, [1, 1]].contains(&[rows, columns])
        };
        let ([.., m, _], [.., n]) = (self.a.shape(), self.b.shape()) else {
            return false;
        };
        match self.a.data_type {
            of_a if is_float8(of_a) => {
                is_outer(scales_a, self.a, [*m, 1]) && is_outer(scales_b, self.b, [1, *n])
            }
            other => other == DataType::I8,
        }
    }

    /// Returns an error unless these are scales of blocks of an operand: A or B.
    fn expect_scales(
        &self,
        operation: &'static str,
        scales: &Array,
        operand: &Array,
    ) -> Result<Shaped> {
        if !is_float8(self.a.data_type) {
            return wrong_type(format!(
                "{operation}: a is {}, and scale_a and scale_b were given; they are for float8_e4m3fn, float8_e5m2 and \
                 int8",
                self.a.data_type.name()
            ));
        }
        scales.expect_type(operation, DataType::F32)?;
        scales.expect_rank(operation, operand.rank())?;
        scales.matrix(operation)
    }

    /// Returns an error unless these are scales of rows of A or of columns of B, or one of all.
    fn expect_outer_scales(&self, operation: &'static str, scales: &Array) -> Result<()> {
        if self.c.data_type == DataType::I32 {
            return wrong_type(format!(
                "{operation}: out is int32, and scale_a and scale_b were given; make out, or dtype, float32, bfloat16 \
                 or float16"
            ));
        }
        scales.expect_type(operation, DataType::F32)?;
        scales.expect_contiguous(operation)
    }

    /// Whether there are several products.
    fn is_batched(&self) -> bool {
        [self.a, self.b, self.c].iter().any(|it| it.rank() == 3)
    }

    /// Whether there is nothing to write.
    fn is_empty(&self) -> bool {
        self.c.shape().contains(&0) || (self.b.rank() == 3 && self.b.shape()[0] == 0)
    }

    /// Returns an error unless the extents of several products agree.
    fn expect_extents(&self, operation: &str) -> Result<()> {
        let last_two = |array: &Array| {
            let shape = array.shape();
            [shape[shape.len() - 2], shape[shape.len() - 1]]
        };
        let ([m, k], [rows_of_b, n]) = (last_two(self.a), last_two(self.b));
        if k != rows_of_b {
            return wrong_value(format!(
                "{operation}: a is {} and b is {}; the columns of a and the rows of b are {k} and {rows_of_b}; make \
                 them agree",
                tuple(self.a.shape()),
                tuple(self.b.shape())
            ));
        }
        let columns = self.columns(operation, n)?;
        // Before the matrices' extents, how many there are.
        let outer = self.c.rank() - 2;
        let of_batch = [self.a, self.b].into_iter().find(|it| it.rank() == 3);
        let mut shape: Vec<usize> = of_batch.map_or(vec![], |it| it.shape()[..outer].to_vec());
        shape.extend([m, columns]);
        expect_shape(operation, self.c, &shape)?;
        if let Some((bias, along)) = self.bias {
            let extent = match along {
                BiasAlong::Rows => m,
                BiasAlong::Columns => columns,
            };
            expect_shape(operation, bias, &[extent])?;
        }
        let (Sizes::Ends(sizes) | Sizes::Rows(sizes)) = self.sizes else {
            return Ok(());
        };
        let groups = self.b.shape()[0];
        expect_shape(operation, sizes, &[groups])?;
        match self.a.rank() {
            3 => expect_shape(operation, self.a, &[groups, m, k]),
            _ => Ok(()),
        }
    }

    /// The columns of C, where B has `n`.
    fn columns(&self, operation: &str, n: usize) -> Result<usize> {
        match self.follows {
            Follows::SwiGlu if n.is_multiple_of(2) => Ok(n / 2),
            Follows::SwiGlu => wrong_value(format!(
                "{operation}: b is {}; give an even number of columns, of which gates and ups alternate",
                tuple(self.b.shape())
            )),
            _ => Ok(n),
        }
    }
}

/// An element type of A and B of which there are products into a C of `D`.
pub trait Multiplied<D: DeviceData>: Element<D> + Operand<Factor: Number> + Scaling {}
impl<D: DeviceData, T: Element<D> + Operand<Factor: Number> + Scaling> Multiplied<D> for T {}

fn enqueue<T: Multiplied<D>, D: Gating>(
    call: &Call<'_>,
    product: &Product<'_>,
    matrices: Matrices,
) -> Result<()> {
    let mut factors = Factors::<T::Factor>::of(call.operation, product)?;
    let zero = T::Factor::of(call.operation, "alpha", 0.0)?;
    if product.is_batched() && product.is_empty() {
        return Ok(());
    }
    let context = call.context();
    call.run(false, || {
        let zeros = Zeros::<T>::of(product, context)?;
        if zeros.is_some() {
            // A product without k is 0 by every factor, also by an infinite one.
            factors.alpha = zero;
        }
        described::<T, D>(product, matrices, factors, zeros.as_ref(), context)?.run(&context.stream)
    })
}

/// The factors of a product.
#[derive(Clone, Copy)]
pub struct Factors<F> {
    alpha: F,
    beta: Option<F>,
}

impl<F: Number> Factors<F> {
    /// The factors in the type of the accumulators.
    ///
    /// # Errors
    /// If the type does not have them, or C has a type of which there is no gated product.
    pub fn of(operation: &str, product: &Product<'_>) -> Result<Factors<F>> {
        if product.follows == Follows::SwiGlu && !has_gate(product.c.data_type) {
            return wrong_type(format!(
                "{operation}: activation is \"swiglu\", and out is {}; it is for float32, bfloat16 and float16",
                product.c.data_type.name()
            ));
        }
        Ok(Factors {
            alpha: F::of(operation, "alpha", product.alpha)?,
            beta: match product.beta {
                Some(beta) => Some(F::of(operation, "beta", beta)?),
                None => None,
            },
        })
    }
}

fn has_gate(data_type: DataType) -> bool {
    matches!(data_type, DataType::F32 | DataType::Bf16 | DataType::F16)
}

/// Operands of several products whose k is 0, which no tensor has: of k = 1, and zero. The products are the same.
pub struct Zeros<T: DeviceData> {
    elements: Scratch<'static, T>,
}

impl<T: DeviceData> Zeros<T> {
    /// None if they are not needed.
    fn of(product: &Product<'_>, context: &'static Context) -> cutlet::Result<Option<Zeros<T>>> {
        let [.., m, k] = product.a.shape() else {
            return Ok(None);
        };
        if *k != 0 || !product.is_batched() {
            return Ok(None);
        }
        let columns = product.b.shape().last().copied().unwrap_or(0);
        let stream: &'static Stream = &context.stream;
        let mut elements = stream.scratch::<T>(columns.max(*m))?;
        stream.fill_bytes(elements.view_mut(), 0)?;
        Ok(Some(Zeros { elements }))
    }

    /// So many times the same matrix of zeros, of one row or one column.
    fn batch(&self, [rows, columns]: [usize; 2], count: usize) -> cutlet::Result<Tensor<'_, T>> {
        let numbers = |of: [usize; 3]| IntTuple::dynamic(&of.map(|it| it as i64));
        let (shape, strides) = (numbers([rows, columns, count]), numbers([columns, 1, 0]));
        let layout = Layout::from_shape_stride(&shape, &strides);
        Tensor::new(self.elements.view().slice(..rows * columns)?, layout)
    }

    /// The matrix A of groups of rows.
    fn matrix(&self, rows: usize) -> cutlet::Result<Matrix<'_, T>> {
        Matrix::row_major(self.elements.view().slice(..rows)?, rows, 1)
    }
}

/// The library's description. `zeros` are the operands of several products without k.
///
/// # Errors
/// If memory of the arrays is not the context's, or a matrix does not fit in it.
pub fn described<'a, T: Multiplied<D>, D: Gating>(
    product: &'a Product<'_>,
    matrices: Matrices,
    factors: Factors<T::Factor>,
    zeros: Option<&'a Zeros<T>>,
    context: &'static Context,
) -> cutlet::Result<Gemm<'a, T, D>> {
    let Matrices {
        a,
        b,
        c,
        residual,
        scales,
    } = matrices;
    let batch = |shaped: Shaped, array: &'a Array, count| match zeros {
        Some(zeros) => zeros.batch([shaped.rows.max(1), shaped.columns.max(1)], count),
        None => shaped.batch_of::<T>(array, count, context),
    };
    let gemm = match (product.b.rank(), product.c.rank()) {
        (2, 2) => {
            let to = c.of_mut::<D>(product.c, context)?;
            let a = a.of::<T>(product.a, context)?;
            Gemm::new(a, b.of::<T>(product.b, context)?, to)
        }
        (_, 2) => {
            let to = c.of_mut::<D>(product.c, context)?;
            let a = match zeros {
                Some(zeros) => zeros.matrix(a.rows)?,
                None => a.of::<T>(product.a, context)?,
            };
            Gemm::new(a, batch(b, product.b, product.b.shape()[0])?, to)
        }
        _ => {
            let count = product.c.shape()[0];
            let to = c.batch_of_mut::<D>(product.c, context)?;
            let a = batch(a, product.a, count)?;
            Gemm::new(a, batch(b, product.b, count)?, to)
        }
    };
    let mut gemm = gemm.precision(product.precision).alpha(factors.alpha);
    if let Some((bias, along)) = product.bias {
        let elements = bias.memory::<D>(context)?;
        gemm = gemm.bias(match along {
            BiasAlong::Rows => Bias::rows(elements),
            BiasAlong::Columns => Bias::columns(elements),
        });
    }
    let residual = match product.residual.zip(residual) {
        Some((array, residual)) => Some(residual.of::<D>(array, context)?),
        None => None,
    };
    gemm = match (residual, factors.beta) {
        (Some(residual), Some(beta)) => gemm.source(residual, beta),
        (Some(residual), None) => gemm.residual(residual),
        (None, Some(beta)) => gemm.beta(beta),
        (None, None) => gemm,
    };
    // Without k there is nothing to scale.
    if let Some([of_a, of_b]) = product.scales.filter(|_| zeros.is_none()) {
        gemm = match scales {
            Some([shape_a, shape_b]) => {
                let of_a = BlockScales::of(shape_a, of_a, context)?;
                let of_b = BlockScales::of(shape_b, of_b, context)?;
                T::scaled(gemm, (of_a, of_b))
            }
            None => {
                let scales = [of_a.memory::<f32>(context)?, of_b.memory::<f32>(context)?];
                T::outer_scaled(gemm, scales)
            }
        };
    }
    gemm = match product.follows {
        Follows::Nothing => gemm,
        Follows::Activation(activation) => gemm.activation(activation),
        Follows::SwiGlu => match D::gated(gemm) {
            Some(gemm) => gemm,
            None => unreachable!("the factors were made for a type with gates"),
        },
    };
    Ok(match product.sizes {
        Sizes::None => gemm,
        Sizes::Ends(ends) => gemm.group_ends(GroupEnds::from(ends.memory::<i32>(context)?)),
        Sizes::Rows(rows) => gemm.group_rows(GroupRows::from(rows.memory::<i32>(context)?)),
    })
}
