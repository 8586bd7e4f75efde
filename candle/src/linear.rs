//! Linear layers, with what follows them: a bias, a residual and an activation in the same kernel.

use candle_core::backend::BackendStorage;
use candle_core::{D, DType, Error, Layout, Module, Result, Shape, Tensor};
use cutlet::{Activation, Bias, Element, Gemm, MatrixMut, Precision};
use half::{bf16, f16};

use crate::matmul::{matmul, precision_of};
use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Custom, Operand, Operation, apply};
use crate::place::{Elements, Place, Scalar};

/// A linear layer: `activation(x · weightᵀ + residual + bias)`. One kernel does all of it where it can: see
/// [`cutlet::Gemm`].
///
/// The weight has a row for each output, as in candle. `x` has any number of dimensions, of which the last is the
/// inputs. Types are `bf16`, `f16`, `f32` and `f64`; the arithmetic is in f32, and in f64 for `f64`, which has ReLU alone.
///
/// `x` and the residual may have any distance from row to row, and the weight may be transposed. Other layouts are
/// copied, and the crate `log` is told so. It has gradients. Where one is recorded, candle's operations add the residual
/// and apply the activation, because the gradient needs what is before them.
///
/// ```
/// use candle_core::{Device, Module, Tensor};
/// use cutlet_candle::{Activation, Linear};
///
/// let weight = Tensor::new(&[[1f32, 0.0, 2.0], [0.0, -1.0, 0.0]], &Device::Cpu)?; // 3 inputs, 2 outputs
/// let bias = Tensor::new(&[0.5f32, 0.5], &Device::Cpu)?;
/// let linear = Linear::new(weight, Some(bias)).activation(Activation::Relu);
/// let x = Tensor::new(&[[1f32, 2.0, 3.0]], &Device::Cpu)?;
/// assert_eq!(linear.forward(&x)?.to_vec2::<f32>()?, [[7.5, 0.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
    activation: Option<Activation>,
    precision: Option<Precision>,
}

const NAME: &str = "linear";

impl Linear {
    /// A layer without an activation. `weight` is (outputs, inputs), and `bias` is (outputs).
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Linear {
            weight,
            bias,
            activation: None,
            precision: None,
        }
    }

    /// The same layer, which applies this function last. GELU is its approximation by tanh, candle's `gelu`.
    pub fn activation(self, activation: Activation) -> Self {
        Linear {
            activation: Some(activation),
            ..self
        }
    }

    /// The same layer, which multiplies `f32` in this precision. It is exact unless it is set, or unless candle's
    /// `set_gemm_reduced_precision_f32` is.
    pub fn precision(self, precision: Precision) -> Self {
        Linear {
            precision: Some(precision),
            ..self
        }
    }

    /// The weight: (outputs, inputs).
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The bias: (outputs).
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }

    /// `activation(x · weightᵀ + residual + bias)`. The residual has the result's shape.
    ///
    /// # Errors
    /// If the shapes, types or devices do not agree.
    pub fn forward_with_residual(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor> {
        self.apply(x, Some(residual))
    }

    fn apply(&self, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        let result = self.check(x, residual)?;
        if result.elem_count() == 0 || x.elem_count() == 0 {
            return self.of_nothing(result, residual, x);
        }
        let x = readable(NAME, "x", x, |it| rows_of(it).is_some())?;
        let weight = readable(NAME, "the weight", &self.weight, |it| {
            Matrices::of(it).is_some()
        })?;
        let bias = self.bias.as_ref().map(Tensor::contiguous).transpose()?;
        let operands = [Some(&x), Some(&weight), bias.as_ref(), residual];
        let records = operands.into_iter().flatten().any(Tensor::track_op);
        let product = LinearProduct {
            bias: bias.is_some(),
            residual: residual.is_some() && !records,
            activation: self.activation.filter(|_| !records),
            precision: self.precision.unwrap_or_else(|| precision_of(&x)),
        };
        if records {
            let sum = match bias {
                Some(bias) => x.apply_op3(&weight, &bias, Custom(product))?,
                None => x.apply_op2(&weight, Custom(product))?,
            };
            return finish(sum, residual, self.activation);
        }
        let residual = match residual {
            Some(it) => Some(readable(NAME, "the residual", it, |it| {
                rows_of(it).is_some()
            })?),
            None => None,
        };
        match (bias, residual) {
            (None, None) => apply(&product, [&x, &weight]),
            (Some(bias), None) => apply(&product, [&x, &weight, &bias]),
            (None, Some(residual)) => apply(&product, [&x, &weight, &residual]),
            (Some(bias), Some(residual)) => apply(&product, [&x, &weight, &bias, &residual]),
        }
    }

    /// The result's shape. An error if the operands' shapes or types disagree.
    fn check(&self, x: &Tensor, residual: Option<&Tensor>) -> Result<Shape> {
        let (outputs, inputs) = self.weight.dims2()?;
        let mut dims = x.dims().to_vec();
        match dims.last_mut() {
            Some(last) if *last == inputs => *last = outputs,
            _ => {
                return Err(Error::Msg(format!(
                    "linear: x is {:?}, and the weight is [{outputs}, {inputs}]; give an x whose last dimension is {inputs}",
                    x.dims()
                ))
                .bt());
            }
        }
        let expect = |what: &str, found: &Tensor, shape: &[usize]| {
            if found.dims() == shape {
                return Ok(());
            }
            let found = found.dims();
            let message = format!(
                "linear: {what} is {found:?}, but the result needs {shape:?}; make them agree"
            );
            Err(Error::Msg(message).bt())
        };
        if let Some(bias) = &self.bias {
            expect("the bias", bias, &[outputs])?;
        }
        if let Some(residual) = residual {
            expect("the residual", residual, &dims)?;
        }
        for other in [Some(&self.weight), self.bias.as_ref(), residual]
            .into_iter()
            .flatten()
        {
            if other.dtype() != x.dtype() {
                return Err(Error::DTypeMismatchBinaryOp {
                    lhs: x.dtype(),
                    rhs: other.dtype(),
                    op: NAME,
                }
                .bt());
            }
        }
        Ok(Shape::from(dims))
    }

    /// The result if there are no elements, or no inputs: what follows a product that is zero.
    fn of_nothing(&self, shape: Shape, residual: Option<&Tensor>, x: &Tensor) -> Result<Tensor> {
        let zeros = Tensor::zeros(shape, x.dtype(), x.device())?;
        let sum = match &self.bias {
            Some(bias) => zeros.broadcast_add(bias)?,
            None => zeros,
        };
        finish(sum, residual, self.activation)
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, None)
    }
}

/// What follows a product, by candle's operations.
fn finish(
    sum: Tensor,
    residual: Option<&Tensor>,
    activation: Option<Activation>,
) -> Result<Tensor> {
    let sum = match residual {
        Some(residual) => (sum + residual)?,
        None => sum,
    };
    match activation {
        None => Ok(sum),
        Some(Activation::Relu) => sum.relu(),
        Some(Activation::Gelu) => sum.gelu(),
        Some(Activation::Silu) => sum.silu(),
        Some(Activation::GeluErf) => sum.gelu_erf(),
    }
}

/// All rows of a layout as those of one row-major matrix, if they are at equal distances.
pub(crate) fn rows_of(layout: &Layout) -> Option<Matrices> {
    Matrices::of(layout)?.stacked()
}

/// The product of a layer, with what is fused. Its operands are x, the weight, the bias and the residual, if there are.
struct LinearProduct {
    bias: bool,
    residual: bool,
    activation: Option<Activation>,
    precision: Precision,
}

impl<const OPERANDS: usize> Operation<OPERANDS> for LinearProduct {
    const NAME: &'static str = NAME;

    fn forward<P: Place>(
        &self,
        operands: [Operand<'_, P>; OPERANDS],
    ) -> Result<(P::Storage, Shape)> {
        match operands[0].storage.dtype() {
            DType::BF16 => self.product::<P, bf16>(&operands),
            DType::F16 => self.product::<P, f16>(&operands),
            DType::F32 => self.product::<P, f32>(&operands),
            DType::F64 => self.product::<P, f64>(&operands),
            found => Err(Error::UnsupportedDTypeForOp(found, NAME).bt()),
        }
    }

    /// Where gradients are recorded, the operation is the product and the bias alone.
    fn backward(
        &self,
        operands: [&Tensor; OPERANDS],
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; OPERANDS]> {
        let (x, weight) = (operands[0], operands[1]);
        let rows = |it: &Tensor| it.flatten_to(D::Minus2);
        // A vector is one row.
        let as_rows = |it: &Tensor| match it.rank() {
            1 => it.unsqueeze(0),
            _ => rows(it),
        };
        let gradients = as_rows(gradient)?;
        let of_x = matmul(&gradients, weight)?.reshape(x.shape())?;
        let of_weight = matmul(&gradients.t()?, &as_rows(x)?)?;
        let mut found = [const { None }; OPERANDS];
        (found[0], found[1]) = (Some(of_x), Some(of_weight));
        if self.bias {
            found[2] = Some(gradients.sum(0)?);
        }
        Ok(found)
    }
}

impl LinearProduct {
    fn product<'a, P: Place, T: Scalar + Element>(
        &self,
        operands: &[Operand<'a, P>],
    ) -> Result<(P::Storage, Shape)> {
        let (x, weight) = (operands[0], operands[1]);
        let mut rest = operands[2..].iter();
        let bias = if self.bias { rest.next() } else { None };
        let residual = if self.residual { rest.next() } else { None };
        let of_x = expect(rows_of(x.layout), NAME)?;
        let of_weight = expect(Matrices::of(weight.layout), NAME)?;
        let mut dims = x.layout.dims().to_vec();
        if let Some(last) = dims.last_mut() {
            *last = of_weight.rows;
        }
        let shape = Shape::from(dims);
        let storage = P::with(x.storage, |context| {
            let stream = &context.stream;
            let from_x = P::read::<T>(stream, x.storage)?;
            let from_weight = P::read::<T>(stream, weight.storage)?;
            let read = |it: &Operand<'a, P>| P::read::<T>(stream, it.storage);
            let from_bias = bias.map(read).transpose()?;
            let from_residual = residual.map(read).transpose()?;
            P::make(stream, x.storage, shape.elem_count(), |c| {
                let mut gemm = Gemm::new(
                    of_x.matrix(from_x.view())?,
                    of_weight.matrix(from_weight.view())?.transposed(),
                    MatrixMut::row_major(c, of_x.rows, of_weight.rows)?,
                )
                .precision(self.precision);
                if let (Some(from), Some(bias)) = (&from_bias, bias) {
                    let first = bias.layout.start_offset();
                    let elements = from.view().slice(first..first + of_weight.rows)?;
                    gemm = gemm.bias(Bias::columns(elements));
                }
                if let (Some(from), Some(residual)) = (&from_residual, residual)
                    && let Some(of_residual) = rows_of(residual.layout)
                {
                    gemm = gemm.residual(of_residual.matrix(from.view())?);
                }
                if let Some(activation) = self.activation {
                    gemm = gemm.activation(activation);
                }
                gemm.run(stream)
            })
        })?;
        Ok((storage, shape))
    }
}
