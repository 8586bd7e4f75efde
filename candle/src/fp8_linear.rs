//! Linear layers with weights of 8-bit floats: `x` is quantised, and the product gets the scales of both.

use candle_core::backend::BackendStorage;
use candle_core::{DType, Error, Module, Result, Shape, Tensor};
use cutlet::{
    Bias, Element, F8E4M3, Float, Gemm, Matrix, MatrixMut, Order, Quantize, QuantizedElement,
    Stream, View, ViewMut,
};
use half::{bf16, f16};

use crate::linear::rows_of;
use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Operand, Operation, apply};
use crate::place::{Elements, Place, Scalar};

/// A linear layer with a weight of `DType::F8E4M3` and its scales: `x · (scales · weight)ᵀ + bias`.
///
/// The weight has a row for each output, as in candle. Its scales are of `f32`, and their shape says which elements have
/// one together. `x` is `bf16` or `f16`, and has any number of dimensions, of which the last is the inputs. It is quantised
/// to e4m3 by [`cutlet::Quantize`] in each call. The result has the type of `x`, and is rounded to it once.
///
/// | scales of the weight | their shape | scales of `x` |
/// |---|---|---|
/// | one factor | `()` or `1` | of each row |
/// | of each output | `outputs` or `(outputs, 1)` | of each row |
/// | of each 128×128 elements | `(outputs / 128, inputs / 128)`, rounded up | of each 128 elements of a row |
///
/// It needs the CPU, or a GPU of compute capability 9.0 (Hopper). It has no gradient.
///
/// ```
/// use candle_core::{DType, Device, Module, Tensor};
/// use cutlet_candle::Fp8Linear;
///
/// let weight = Tensor::new(&[[1f32, 0.0, 2.0], [0.0, -1.0, 0.0]], &Device::Cpu)?; // 3 inputs, 2 outputs
/// let scales = Tensor::new(&[0.5f32, 4.0], &Device::Cpu)?;
/// let layer = Fp8Linear::new(weight.to_dtype(DType::F8E4M3)?, scales, None)?;
/// let x = Tensor::new(&[[448f32, 2.0, 4.0]], &Device::Cpu)?.to_dtype(DType::BF16)?;
/// let y = layer.forward(&x)?.to_dtype(DType::F32)?;
/// assert_eq!(y.to_vec2::<f32>()?, [[228.0, -8.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fp8Linear {
    weight: Tensor,
    scales: Tensor,
    bias: Option<Tensor>,
    scaled: Scaled,
}

const NAME: &str = "fp8-linear";

/// Inputs, and outputs, whose weights have a scale together.
const BLOCK: usize = 128;

/// Rows of e4m3 begin at multiples of so many elements, so that no product copies them.
const ROW_UNIT: usize = 16;

/// Columns of scales begin at multiples of so many, so that no product copies them.
const SCALES_UNIT: usize = 4;

/// Which elements have a scale together.
#[derive(Clone, Copy, Debug)]
enum Scaled {
    /// Those of a row of `x`, and those of an output's weights, or all weights.
    Rows,
    /// 128 of a row of `x`, and 128×128 weights.
    Blocks,
}

impl Fp8Linear {
    /// A layer. `weight` is (outputs, inputs) of `DType::F8E4M3`, and `bias` is (outputs) of the type of `x`.
    ///
    /// # Errors
    /// If the types are others, or if the scales or the bias have none of these shapes.
    pub fn new(weight: Tensor, scales: Tensor, bias: Option<Tensor>) -> Result<Self> {
        let (outputs, inputs) = weight.dims2()?;
        expect_type("the weight", &weight, DType::F8E4M3)?;
        expect_type("the scales", &scales, DType::F32)?;
        let blocks = [outputs, inputs].map(|extent| extent.div_ceil(BLOCK));
        let scaled = match *scales.dims() {
            [] | [1] | [1, 1] => Scaled::Rows,
            [count] | [count, 1] if count == outputs => Scaled::Rows,
            [rows, columns] if [rows, columns] == blocks => Scaled::Blocks,
            _ => {
                return refuse(format!(
                    "the scales are {:?}, and the weight is [{outputs}, {inputs}]; give one, [{outputs}] for outputs, or \
                     {blocks:?} for blocks",
                    scales.dims()
                ));
            }
        };
        if let Some(bias) = &bias
            && bias.dims() != [outputs]
        {
            return refuse(format!(
                "the bias is {:?}, and there are {outputs} outputs; give one for each",
                bias.dims()
            ));
        }
        Ok(Fp8Linear {
            weight: weight.contiguous()?,
            scales: scales.contiguous()?,
            bias: bias.map(|it| it.contiguous()).transpose()?,
            scaled,
        })
    }

    /// The result's shape. An error if `x` has another width than the weight, or another type than the bias.
    fn check(&self, x: &Tensor) -> Result<Shape> {
        let (outputs, inputs) = self.weight.dims2()?;
        let mut dims = x.dims().to_vec();
        match dims.last_mut() {
            Some(last) if *last == inputs => *last = outputs,
            _ => {
                return refuse(format!(
                    "x is {:?}, and the weight is [{outputs}, {inputs}]; give an x whose last dimension is {inputs}",
                    x.dims()
                ));
            }
        }
        if let Some(bias) = &self.bias {
            expect_type("the bias", bias, x.dtype())?;
        }
        Ok(Shape::from(dims))
    }
}

impl Module for Fp8Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let shape = self.check(x)?;
        if shape.elem_count() == 0 || x.elem_count() == 0 {
            let zeros = Tensor::zeros(shape, x.dtype(), x.device())?;
            return match &self.bias {
                Some(bias) => zeros.broadcast_add(bias),
                None => Ok(zeros),
            };
        }
        let x = readable(NAME, "x", x, |it| {
            rows_of(it).is_some_and(|it| it.has_rows())
        })?;
        let product = ScaledProduct {
            scaled: self.scaled,
        };
        match &self.bias {
            None => apply(&product, [&x, &self.weight, &self.scales]),
            Some(bias) => apply(&product, [&x, &self.weight, &self.scales, bias]),
        }
    }
}

/// Refuses operands because of what was found.
fn refuse<T>(found: String) -> Result<T> {
    Err(Error::Msg(format!("{NAME}: {found}")).bt())
}

/// Refuses a tensor of another type.
fn expect_type(what: &str, tensor: &Tensor, expected: DType) -> Result<()> {
    let found = tensor.dtype();
    match found == expected {
        true => Ok(()),
        false => refuse(format!(
            "{what} of {found:?} cannot be used here; give one of {expected:?}"
        )),
    }
}

/// The product of a layer. Its operands are x, the weight, its scales, and the bias, if there is one.
struct ScaledProduct {
    scaled: Scaled,
}

impl<const OPERANDS: usize> Operation<OPERANDS> for ScaledProduct {
    const NAME: &'static str = NAME;

    fn forward<P: Place>(
        &self,
        operands: [Operand<'_, P>; OPERANDS],
    ) -> Result<(P::Storage, Shape)> {
        match operands[0].storage.dtype() {
            DType::BF16 => self.product::<P, bf16>(&operands),
            DType::F16 => self.product::<P, f16>(&operands),
            found => Err(Error::UnsupportedDTypeForOp(found, NAME).bt()),
        }
    }
}

/// What a product multiplies besides rows of x.
struct Weights<'a, T: Scalar> {
    /// (inputs, outputs)
    elements: Matrix<'a, F8E4M3>,
    scales: View<'a, f32>,
    bias: Option<View<'a, T>>,
}

impl ScaledProduct {
    fn product<P: Place, T: Scalar + QuantizedElement + Float>(
        &self,
        operands: &[Operand<'_, P>],
    ) -> Result<(P::Storage, Shape)>
    where
        F8E4M3: Element<T>,
    {
        let (x, weight, scales, bias) = (operands[0], operands[1], operands[2], operands.get(3));
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
            let from_weight = P::read_e4m3(stream, weight.storage)?;
            let from_scales = P::read::<f32>(stream, scales.storage)?;
            let from_bias = bias
                .map(|it| P::read::<T>(stream, it.storage))
                .transpose()?;
            P::make(stream, x.storage, shape.elem_count(), |y| {
                let some = |count: usize, first: usize| first..first + count;
                let of_scales = some(
                    scales.layout.shape().elem_count(),
                    scales.layout.start_offset(),
                );
                let bias = match (&from_bias, bias) {
                    (Some(from), Some(bias)) => {
                        let elements = some(of_weight.rows, bias.layout.start_offset());
                        Some(from.view().slice(elements)?)
                    }
                    _ => None,
                };
                let weights = Weights {
                    elements: of_weight.matrix(from_weight.view())?.transposed(),
                    scales: from_scales.view().slice(of_scales)?,
                    bias,
                };
                self.enqueue(stream, of_x.matrix(from_x.view())?, &weights, y)
            })
        })?;
        Ok((storage, shape))
    }

    /// Quantises rows of x, and multiplies them.
    fn enqueue<T: Scalar + QuantizedElement + Float>(
        &self,
        stream: &Stream,
        x: Matrix<'_, T>,
        weights: &Weights<'_, T>,
        y: ViewMut<'_, T>,
    ) -> cutlet::Result<()>
    where
        F8E4M3: Element<T>,
    {
        let (rows, inputs, outputs) = (x.rows(), x.columns(), weights.elements.columns());
        let (quantize, scales_of_row) = match self.scaled {
            Scaled::Rows => (Quantize::by_rows(), 1),
            Scaled::Blocks => (Quantize::by_blocks(), inputs.div_ceil(BLOCK)),
        };
        let ld = inputs.next_multiple_of(ROW_UNIT);
        let mut elements = stream.scratch::<F8E4M3>(rows * ld)?;
        let ld_of_scales = rows.next_multiple_of(SCALES_UNIT);
        let mut scales = stream.scratch::<f32>(scales_of_row * ld_of_scales)?;
        quantize.run(
            stream,
            x,
            MatrixMut::with_ld(elements.view_mut(), rows, inputs, Order::RowMajor, ld)?,
            MatrixMut::with_ld(
                scales.view_mut(),
                rows,
                scales_of_row,
                Order::ColMajor,
                ld_of_scales,
            )?,
        )?;
        let mut product = Gemm::new(
            Matrix::with_ld(elements.view(), rows, inputs, Order::RowMajor, ld)?,
            weights.elements,
            MatrixMut::row_major(y, rows, outputs)?,
        );
        if let Some(bias) = weights.bias {
            product = product.bias(Bias::columns(bias));
        }
        match self.scaled {
            Scaled::Rows => product.outer_scales(scales.view().slice(..rows)?, weights.scales),
            Scaled::Blocks => {
                let of_weight =
                    Matrix::row_major(weights.scales, outputs.div_ceil(BLOCK), scales_of_row)?;
                let order = Order::ColMajor;
                product.block_scales(
                    Matrix::with_ld(scales.view(), rows, scales_of_row, order, ld_of_scales)?,
                    of_weight.transposed(),
                )
            }
        }
        .run(stream)
    }
}
