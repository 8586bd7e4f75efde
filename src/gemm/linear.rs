//! Linear layers that own what they multiply by.

use cutlet_device::DeviceData;
use cutlet_host::{Buffer, Stream};
use cutlet_layout_core::Layout;

use super::epilogue::{Activation, Bias, Gate};
use super::normalised::{self, RmsNorm};
use super::operand::Operand;
use super::precision::Precision;
use super::{Element, Gemm};
use crate::rowops::NormElement;
use crate::swiglu::{GatedElement, gate};
use crate::{DeviceTensor, IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// A linear layer: `y = activation(x · weightsᵀ + bias)`, where `weights` has a row for each output.
///
/// It owns its weights and its bias, and borrows nothing: a struct may have it as a field, beside the buffers that it is
/// run with, and another thread may get it. A stream keeps the kernel that was chosen for each number of rows of x, as
/// for every [`Gemm`]. What a layer does not have, a residual for example, is added to the [`Gemm`] that
/// [`gemm`](Self::gemm) describes.
///
/// ```
/// use cutlet::{Activation, Device, DeviceTensor, Linear, Stream, bf16};
///
/// struct Mlp {
///     up: Linear<bf16>,
///     down: Linear<bf16>,
///     hidden: DeviceTensor<bf16>,
/// }
///
/// impl Mlp {
///     fn run(&mut self, stream: &Stream, x: &DeviceTensor<bf16>, y: &mut DeviceTensor<bf16>) -> cutlet::Result<()> {
///         self.up.run(stream, x, &mut self.hidden)?;
///         self.down.run(stream, &self.hidden, y)
///     }
/// }
///
/// let stream = Device::auto().stream()?;
/// let (rows, width, inner) = (2, 8, 16);
/// let half = |count: usize| vec![bf16::from_f32(0.5); count];
/// let up = DeviceTensor::upload(&stream, &half(inner * width), [inner, width])?;
/// let down = DeviceTensor::upload(&stream, &half(width * inner), [width, inner])?;
/// let mut mlp = Mlp {
///     up: Linear::new(up)?.bias(stream.upload(&half(inner))?).activation(Activation::Relu),
///     down: Linear::new(down)?,
///     hidden: DeviceTensor::zeroed(&stream, [rows, inner])?,
/// };
/// let x = DeviceTensor::upload(&stream, &half(rows * width), [rows, width])?;
/// let mut y = DeviceTensor::zeroed(&stream, [rows, width])?;
/// mlp.run(&stream, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?[0].to_f32(), 20.0); // 16 · 0.5 · (8 · 0.25 + 0.5)
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Linear<T: DeviceData, D: DeviceData = T> {
    weights: DeviceTensor<T>,
    /// The layout of the transposed weights: B's.
    transposed: Layout,
    bias: Option<Buffer<D>>,
    activation: Option<Activation>,
    gate: Option<Gate<D>>,
    precision: Precision,
    norm: Option<Normalised<T, D>>,
}

/// The norm of a layer's x, and what enqueues it with the product: a function of the element types that can be normalised.
#[derive(Debug)]
struct Normalised<T: DeviceData, D: DeviceData> {
    norm: RmsNorm<T>,
    run: NormalisedRun<T, D>,
}

type NormalisedRun<T, D> =
    fn(&Linear<T, D>, &RmsNorm<T>, &Stream, Tensor<'_, T>, TensorMut<'_, D>) -> Result<()>;

impl<T: DeviceData> Linear<T> {
    /// The layer with these weights, (outputs, inputs), and neither bias nor activation. Rows are contiguous, or columns.
    /// Outputs are of the weights' type.
    ///
    /// # Errors
    /// [`Error::Tensor`](crate::Error::Tensor) if the weights do not have two modes.
    pub fn new(weights: DeviceTensor<T>) -> Result<Self> {
        Linear::with_types(weights)
    }
}

impl<T: DeviceData, D: DeviceData> Linear<T, D> {
    /// As [`new`](Linear::new), with outputs and a bias of another type.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Linear, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let weights = DeviceTensor::upload(&stream, &[bf16::from_f32(1.5); 4], [2, 2])?;
    /// let layer = Linear::<bf16, f32>::with_types(weights)?.bias(stream.upload(&[0.25, 0.5])?);
    /// let x = DeviceTensor::upload(&stream, &[bf16::ONE; 2], [1, 2])?;
    /// let mut y = DeviceTensor::zeroed(&stream, [1, 2])?;
    /// layer.run(&stream, &x, &mut y)?;
    /// assert_eq!(y.download(&stream)?, [3.25f32, 3.5]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Linear::new).
    pub fn with_types(weights: DeviceTensor<T>) -> Result<Self> {
        let transposed = *weights.tensor().transpose()?.layout();
        Ok(Linear {
            weights,
            transposed,
            bias: None,
            activation: None,
            gate: None,
            precision: Precision::Exact,
            norm: None,
        })
    }

    /// Adds an element of this bias to each output. It has as many elements as there are outputs.
    pub fn bias(self, bias: Buffer<D>) -> Self {
        let bias = Some(bias);
        Linear { bias, ..self }
    }

    /// Applies this function last.
    pub fn activation(self, activation: Activation) -> Self {
        let activation = Some(activation);
        Linear { activation, ..self }
    }

    /// Gates the product, as [`Gemm::swiglu`] does: even rows of the weights are those of gates, and odd ones those of
    /// ups. [`interleave_rows`](crate::interleave_rows) makes them of two matrices. Y has half as many columns as there
    /// are rows of weights.
    pub fn swiglu(self) -> Self
    where
        D: GatedElement,
    {
        let gate = Some(gate::<D> as Gate<D>);
        Linear { gate, ..self }
    }

    /// Normalises the rows of x by RMSNorm before they are multiplied: `x / √(mean of x² + epsilon) · weights`, with a
    /// weight for each input.
    ///
    /// One row of bf16 or f16 takes one launch. Then what is multiplied is not rounded. More rows are
    /// [normalised](crate::Norm) in a launch of their own.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Linear, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let numbers = |value: f32, count| vec![bf16::from_f32(value); count];
    /// let weights = DeviceTensor::upload(&stream, &numbers(0.5, 2 * 8), [2, 8])?;
    /// let layer = Linear::new(weights)?.rms_norm(stream.upload(&numbers(3.0, 8))?, 1e-6);
    /// let x = DeviceTensor::upload(&stream, &numbers(-70.0, 8), [1, 8])?;
    /// let mut y = DeviceTensor::zeroed(&stream, [1, 2])?;
    /// layer.run(&stream, &x, &mut y)?;
    /// assert_eq!(y.download(&stream)?[0].to_f32(), -12.0); // 8 · 0.5 · (−1 · 3)
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn rms_norm(self, weights: Buffer<T>, epsilon: f32) -> Self
    where
        T: Element<D> + NormElement,
    {
        let norm = Some(Normalised {
            norm: RmsNorm { weights, epsilon },
            run: |layer, norm, stream, x, y| normalised::run(stream, layer.product(x, y), norm),
        });
        Linear { norm, ..self }
    }

    /// Multiplies in this [`Precision`].
    pub fn precision(self, precision: Precision) -> Self {
        Linear { precision, ..self }
    }

    /// The weights, (outputs, inputs).
    pub fn weights(&self) -> &DeviceTensor<T> {
        &self.weights
    }
}

impl<T: Operand, D: DeviceData> Linear<T, D> {
    /// The product of x, (rows, inputs), with the layer's weights into y, (rows, outputs), and what the layer fuses with
    /// it: to add a residual, to [plan](Gemm::plan) it, or to name a kernel. It is refused for a layer that
    /// [normalises](Self::rms_norm) x, which [`run`](Self::run) alone does.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Linear};
    ///
    /// let stream = Device::auto().stream()?;
    /// let weights = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let layer = Linear::new(weights)?;
    /// let x = DeviceTensor::upload(&stream, &[1.0f32, 10.0], [1, 2])?;
    /// let mut y = DeviceTensor::zeroed(&stream, [1, 2])?;
    /// layer.gemm(&x, &mut y).residual(&x).run(&stream)?;
    /// assert_eq!(y.download(&stream)?, [22.0, 53.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn gemm<'a>(
        &'a self,
        x: impl IntoTensor<'a, Element = T>,
        y: impl IntoTensorMut<'a, Element = D>,
    ) -> Gemm<'a, T, D> {
        match self.norm {
            None => self.product(x, y),
            Some(_) => Gemm::of(Err(
                "the layer normalises x, and a `Gemm` does not; use `Linear::run`".to_string(),
            )),
        }
    }

    /// The product without the norm.
    fn product<'a>(
        &'a self,
        x: impl IntoTensor<'a, Element = T>,
        y: impl IntoTensorMut<'a, Element = D>,
    ) -> Gemm<'a, T, D> {
        let weights = Tensor {
            view: self.weights.view(),
            layout: self.transposed,
        };
        let mut gemm = Gemm::new(x, weights, y).precision(self.precision);
        gemm.epilogue.bias = self.bias.as_ref().map(Bias::columns);
        gemm.epilogue.activation = self.activation;
        gemm.epilogue.gate = self.gate;
        gemm
    }
}

impl<T: Element<D>, D: DeviceData> Linear<T, D> {
    /// Enqueues `y = activation(x · weightsᵀ + bias)`, where x is (rows, inputs), normalised if the layer does, and y is
    /// (rows, outputs).
    ///
    /// # Errors
    /// As [`Gemm::run`].
    pub fn run<'a>(
        &'a self,
        stream: &Stream,
        x: impl IntoTensor<'a, Element = T>,
        y: impl IntoTensorMut<'a, Element = D>,
    ) -> Result<()> {
        match &self.norm {
            None => self.product(x, y).run(stream),
            Some(Normalised { norm, run }) => {
                run(self, norm, stream, x.into_tensor()?, y.into_tensor_mut()?)
            }
        }
    }
}
