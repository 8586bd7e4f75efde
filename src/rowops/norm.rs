//! RMSNorm and LayerNorm.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::norm::{NormArgs, Parts, norm_bf16, norm_f16, norm_f32};
use half::{bf16, f16};

use super::operand::{
    Read, check_list, check_read, optional, optional_mut, read, written, written_rows,
};
use super::space::RowSet;
use super::{ForRows, refuse};
use crate::matrix::{disjoint, in_stream};
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// An element type of [`Norm`]: `f32`, `f16` or `bf16`.
pub trait NormElement: DeviceData + sealed::Kernels {}
impl NormElement for f32 {}
impl NormElement for f16 {}
impl NormElement for bf16 {}

/// A kernel of a normalisation.
type NormKernel<T> = Kernel<(
    Global<T>,
    GlobalMut<T>,
    Global<T>,
    Global<T>,
    GlobalMut<T>,
    NormArgs,
)>;

mod sealed {
    use super::{DeviceData, ForRows, NormKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        const KERNELS: ForRows<NormKernel<Self>>;
    }
}

macro_rules! kernels {
    ($($element:ty: $module:ident $warp:ident $block:ident $warp_any:ident $block_any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const KERNELS: ForRows<NormKernel<Self>> = ForRows {
                warp: &$module::$warp,
                block: &$module::$block,
                warp_any: &$module::$warp_any,
                block_any: &$module::$block_any,
            };
        }
    )+};
}
kernels! {
    f32: norm_f32 norm_f32_warp norm_f32_block norm_f32_warp_any norm_f32_block_any;
    f16: norm_f16 norm_f16_warp norm_f16_block norm_f16_warp_any norm_f16_block_any;
    bf16: norm_bf16 norm_bf16_warp norm_bf16_block norm_bf16_warp_any norm_bf16_block_any;
}

/// Which normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rms,
    Layer,
}

impl Kind {
    /// The operation's name in errors.
    fn name(self) -> &'static str {
        match self {
            Kind::Rms => "rms_norm",
            Kind::Layer => "layer_norm",
        }
    }
}

/// RMSNorm or LayerNorm of rows, with weights, biases and a residual.
///
/// A row is the last mode of a tensor, and is contiguous. The other modes may have any strides, as far as up to three of
/// them remain once those that continue one another are merged. The arithmetic is in f32, and a result is rounded once.
/// A row with a NaN, or with an infinity, gets NaN where the formula does.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Norm};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let weight = DeviceTensor::upload(&stream, &[1.0f32, 10.0], [2])?;
/// let mut residual = DeviceTensor::upload(&stream, &[2.0f32, 2.0, -3.0, 0.0], [2, 2])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// Norm::rms(0.0).weight(&weight).residual(&mut residual).run(&stream, &x, &mut y)?;
/// assert_eq!(residual.download(&stream)?, [3.0, 4.0, 0.0, 4.0]);
/// let y = y.download(&stream)?;
/// let root = 12.5f32.sqrt(); // of the mean of 9 and 16
/// assert!((y[0] - 3.0 / root).abs() < 1e-6 && (y[1] - 40.0 / root).abs() < 1e-5);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Norm<'a, T: NormElement> {
    kind: Kind,
    epsilon: f32,
    weight: Option<Tensor<'a, T>>,
    bias: Option<Tensor<'a, T>>,
    residual: Option<TensorMut<'a, T>>,
    /// What was wrong with an operand.
    operands: Result<()>,
}

impl<'a, T: NormElement> Norm<'a, T> {
    /// RMSNorm: `x / √(mean of x² + epsilon)`.
    pub fn rms(epsilon: f32) -> Self {
        Norm::new(Kind::Rms, epsilon)
    }

    /// LayerNorm: `(x − mean) / √(mean of (x − mean)² + epsilon)`.
    pub fn layer(epsilon: f32) -> Self {
        Norm::new(Kind::Layer, epsilon)
    }

    fn new(kind: Kind, epsilon: f32) -> Self {
        Norm {
            kind,
            epsilon,
            weight: None,
            bias: None,
            residual: None,
            operands: Ok(()),
        }
    }

    /// Multiplies the normalised elements of each row by these: one mode of as many elements as a row has.
    pub fn weight(mut self, weight: impl IntoTensor<'a, Element = T>) -> Self {
        match weight.into_tensor() {
            Ok(weight) => self.weight = Some(weight),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Adds these to each row last: one mode of as many elements as a row has.
    pub fn bias(mut self, bias: impl IntoTensor<'a, Element = T>) -> Self {
        match bias.into_tensor() {
            Ok(bias) => self.bias = Some(bias),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Adds `x` to this tensor first, and normalises the sums as they are rounded to its elements. It has the shape of
    /// `x`.
    pub fn residual(mut self, residual: impl IntoTensorMut<'a, Element = T>) -> Self {
        match written(residual) {
            Ok(residual) => self.residual = residual,
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Enqueues the normalisation of `x` into `y`, which has its shape.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - `y` or the residual overlaps another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    pub fn run<'x>(
        self,
        stream: &Stream,
        x: impl IntoTensor<'x, Element = T>,
        y: impl IntoTensorMut<'x, Element = T>,
    ) -> Result<()> {
        match (read(x)?, written(y)?) {
            (Some(x), Some(y)) => self.launch(stream, Read(Some(x)), y),
            (None, None) => self.operands,
            _ => refuse(
                self.kind.name(),
                "one of x and y has no elements; give them the same shape".to_string(),
            ),
        }
    }

    /// Enqueues the normalisation of `x` in its place.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Norm};
    ///
    /// let stream = Device::auto().stream()?;
    /// let mut x = DeviceTensor::upload(&stream, &[1.0f32, 3.0, -7.0, -7.0], [2, 2])?;
    /// Norm::layer(1e-12).run_in_place(&stream, &mut x)?;
    /// assert_eq!(x.download(&stream)?, [-1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn run_in_place<'x>(
        self,
        stream: &Stream,
        x: impl IntoTensorMut<'x, Element = T>,
    ) -> Result<()> {
        match written(x)? {
            Some(x) => self.launch(stream, Read(None), x),
            None => self.operands,
        }
    }

    fn launch(mut self, stream: &Stream, x: Read<'_, T>, mut y: TensorMut<'_, T>) -> Result<()> {
        std::mem::replace(&mut self.operands, Ok(()))?;
        let rows = self.check(stream, &x, &y)?;
        let args = NormArgs {
            x: rows.strides[0],
            y: rows.strides[1],
            residual: rows.strides[2],
            space: rows.space_ahead(stream.device()),
            parts: Parts {
                centred: u32::from(self.kind == Kind::Layer),
                residual: u32::from(self.residual.is_some()),
                weight: u32::from(self.weight.is_some()),
                bias: u32::from(self.bias.is_some()),
            },
            epsilon: self.epsilon,
            padding: 0,
        };
        let (kernel, blocks) = T::KERNELS.choose::<T>(&rows);
        let function = stream.device().load(&PTX, kernel)?;
        let source = x.source(&y);
        // SAFETY: the rows were checked against the tensors' memory, and weights and biases have an element for each
        // column. Operands that are absent are not accessed. What is written overlaps nothing else that is accessed but
        // an `x` that is `y`.
        unsafe {
            let args = (
                source,
                optional_mut(self.residual.as_mut()),
                optional(self.weight.as_ref()),
                optional(self.bias.as_ref()),
                y.view.reborrow(),
                args,
            );
            Ok(stream.launch(&function, LaunchConfig::dependent(blocks), args)?)
        }
    }

    /// The rows of `x`, `y` and the residual, if all operands fit.
    fn check(&self, stream: &Stream, x: &Read<'_, T>, y: &TensorMut<'_, T>) -> Result<RowSet> {
        let operation = self.kind.name();
        in_stream(operation, stream, "y", y.view.view())?;
        x.check(operation, stream, "x", y)?;
        let (of_x, of_y) = (x.rows("x", y), written_rows("y", y));
        let mut rows = match &self.residual {
            None => RowSet::of(operation, &[of_x, of_y])?,
            Some(residual) => {
                in_stream(operation, stream, "the residual", residual.view.view())?;
                let written = residual.addresses();
                disjoint(operation, "the residual", written.clone(), y.addresses())?;
                if let Some(x) = &x.0 {
                    disjoint(operation, "x", x.addresses(), written)?;
                }
                let of_residual = written_rows("the residual", residual);
                RowSet::of(operation, &[of_x, of_y, of_residual])?
            }
        };
        let [_, columns] = rows.extent();
        let lists = [("the weight", &self.weight), ("the bias", &self.bias)];
        for (what, list) in lists {
            let Some(list) = list else { continue };
            check_list(operation, what, list, columns)?;
            check_read(operation, stream, what, list, y)?;
            if let Some(residual) = &self.residual {
                disjoint(operation, what, list.addresses(), residual.addresses())?;
            }
            rows.is_aligned &= list.view.address().is_multiple_of(super::WIDEST as u64);
        }
        Ok(rows)
    }
}

/// Enqueues the RMSNorm of each row: `y = x / √(mean of x² + epsilon) · weight`.
///
/// [`Norm`] does the same in place, without weights, or with a residual.
///
/// # Errors
/// As [`Norm::run`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, rms_norm};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[3.0f32, -3.0, 3.0, 3.0], [1, 4])?;
/// let weight = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [4])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [1, 4])?;
/// rms_norm(&stream, &x, &weight, 0.0, &mut y)?;
/// for (y, expected) in y.download(&stream)?.iter().zip([1.0, -2.0, 3.0, 4.0]) {
///     assert!((y - expected).abs() < 1e-6);
/// }
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn rms_norm<'a, T: NormElement>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = T>,
    weight: impl IntoTensor<'a, Element = T>,
    epsilon: f32,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    Norm::rms(epsilon).weight(weight).run(stream, x, y)
}

/// Enqueues the LayerNorm of each row: `y = (x − mean) / √(mean of (x − mean)² + epsilon) · weight + bias`.
///
/// [`Norm`] does the same in place, without weights or biases, or with a residual.
///
/// # Errors
/// As [`Norm::run`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, layer_norm};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[5.0f32, 9.0], [1, 2])?;
/// let weight = DeviceTensor::upload(&stream, &[10.0f32, 10.0], [2])?;
/// let bias = DeviceTensor::upload(&stream, &[0.0f32, 1.0], [2])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [1, 2])?;
/// layer_norm(&stream, &x, &weight, &bias, 0.0, &mut y)?;
/// assert_eq!(y.download(&stream)?, [-10.0, 11.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn layer_norm<'a, T: NormElement>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = T>,
    weight: impl IntoTensor<'a, Element = T>,
    bias: impl IntoTensor<'a, Element = T>,
    epsilon: f32,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let norm = Norm::layer(epsilon).weight(weight).bias(bias);
    norm.run(stream, x, y)
}
