//! Products of matrices and of batches.

use candle_core::{DType, Error, Result, Shape, Tensor};
use cutlet::{Element, Gemm, Precision, TensorMut};
use half::{bf16, f16};

use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Custom, Operand, Operation};
use crate::place::{Elements, Place, Scalar};

/// The product of two tensors: `(…, m, k) × (…, k, n) → (…, m, n)`, as [`Tensor::matmul`].
///
/// Types are `bf16`, `f16`, `f32` and `f64`. The arithmetic is in f32, and in f64 for `f64`. If candle's
/// `set_gemm_reduced_precision_f32` is set, products of `f32` are of tf32.
///
/// Matrices may be transposed, have any distance from row to row, and be broadcast over the batch. Other layouts are
/// copied, and the crate `log` is told so. It has gradients.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let a = Tensor::arange(0f32, 6.0, &Device::Cpu)?.reshape((2, 3))?;
/// let product = cutlet_candle::matmul(&a, &a.t()?)?;
/// assert_eq!(product.to_vec2::<f32>()?, [[5.0, 14.0], [14.0, 50.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If the shapes, types or devices do not agree.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (of_a, of_b) = (a.dims(), b.dims());
    let disagree = || Error::ShapeMismatchBinaryOp {
        lhs: a.shape().clone(),
        rhs: b.shape().clone(),
        op: Product::NAME,
    };
    let rank = of_a.len();
    if rank < 2
        || of_b.len() != rank
        || of_a[..rank - 2] != of_b[..rank - 2]
        || of_a[rank - 1] != of_b[rank - 2]
    {
        return Err(disagree().bt());
    }
    if a.elem_count() == 0 || b.elem_count() == 0 {
        // There are no elements, or they are sums of nothing. candle checks devices and types, and keeps the gradient.
        return a.matmul(b);
    }
    let read = |operand, tensor| {
        readable(Product::NAME, operand, tensor, |it| {
            Matrices::of(it).is_some()
        })
    };
    let (a, b) = (read("the left operand", a)?, read("the right operand", b)?);
    let precision = precision_of(&a);
    a.apply_op2(&b, Custom(Product { precision }))
}

/// The precision that candle's settings ask for, which are of tensors on GPUs.
pub(crate) fn precision_of(tensor: &Tensor) -> Precision {
    let is_f32 = tensor.dtype() == DType::F32 && tensor.device().is_cuda();
    match is_f32 && candle_core::cuda::gemm_reduced_precision_f32() {
        true => Precision::Tf32,
        false => Precision::Exact,
    }
}

struct Product {
    precision: Precision,
}

impl Operation<2> for Product {
    const NAME: &'static str = "matmul";

    fn forward<P: Place>(&self, [a, b]: [Operand<'_, P>; 2]) -> Result<(P::Storage, Shape)> {
        use candle_core::backend::BackendStorage;
        match a.storage.dtype() {
            DType::BF16 => self.product::<P, bf16>(a, b),
            DType::F16 => self.product::<P, f16>(a, b),
            DType::F32 => self.product::<P, f32>(a, b),
            DType::F64 => self.product::<P, f64>(a, b),
            found => Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        }
    }

    fn backward(
        &self,
        [a, b]: [&Tensor; 2],
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let transposed = |it: &Tensor| it.transpose(candle_core::D::Minus2, candle_core::D::Minus1);
        Ok([
            Some(matmul(gradient, &transposed(b)?)?),
            Some(matmul(&transposed(a)?, gradient)?),
        ])
    }
}

impl Product {
    fn product<P: Place, T: Scalar + Element>(
        &self,
        a: Operand<'_, P>,
        b: Operand<'_, P>,
    ) -> Result<(P::Storage, Shape)> {
        let mut shape = a.layout.dims().to_vec();
        if let (Some(columns), Some(&of_b)) = (shape.last_mut(), b.layout.dims().last()) {
            *columns = of_b;
        }
        let shape = Shape::from(shape);
        let [of_a, of_b] = [a, b].map(|it| expect(Matrices::of(it.layout), Self::NAME));
        let (mut of_a, of_b) = (of_a?, of_b?);
        if of_b.are_one()
            && let Some(stacked) = of_a.stacked()
        {
            of_a = stacked;
        }
        let storage = P::with(a.storage, |context| {
            let stream = &context.stream;
            let from_a = P::read::<T>(stream, a.storage)?;
            let from_b = P::read::<T>(stream, b.storage)?;
            P::make(stream, a.storage, shape.elem_count(), |c| {
                let (count, rows) = (of_a.count(), of_a.rows);
                let c = TensorMut::new(c, [count, rows, of_b.columns])?.select(&[1, 2, 0])?;
                let a = of_a.batch(from_a.view())?;
                let gemm = match count {
                    1 => Gemm::new(a, of_b.matrix(from_b.view())?, c),
                    _ => Gemm::new(a, of_b.batch(from_b.view())?, c),
                };
                gemm.precision(self.precision).run(stream)
            })
        })?;
        Ok((storage, shape))
    }
}
