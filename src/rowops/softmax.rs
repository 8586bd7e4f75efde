//! Softmax and log-softmax.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::softmax::{SoftmaxArgs, softmax_bf16, softmax_f16, softmax_f32};
use half::{bf16, f16};

use super::operand::{Read, check_read, optional, read, rows_of, written, written_rows};
use super::space::RowSet;
use super::{ForRows, refuse};
use crate::matrix::{divisor, in_stream};
use crate::{IntoTensor, IntoTensorMut, MAX_EXTENT, Result, Tensor, TensorMut};

/// The operation's name in errors.
const NAME: &str = "softmax";

/// An element type of [`Softmax`]: `f32`, `f16` or `bf16`.
pub trait SoftmaxElement: DeviceData + sealed::Kernels {}
impl SoftmaxElement for f32 {}
impl SoftmaxElement for f16 {}
impl SoftmaxElement for bf16 {}

/// A kernel of a softmax.
type SoftmaxKernel<T> = Kernel<(Global<T>, Global<T>, GlobalMut<T>, SoftmaxArgs)>;

mod sealed {
    use super::{DeviceData, ForRows, SoftmaxKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        const KERNELS: ForRows<SoftmaxKernel<Self>>;
    }
}

macro_rules! kernels {
    ($($element:ty: $module:ident $warp:ident $block:ident $warp_any:ident $block_any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const KERNELS: ForRows<SoftmaxKernel<Self>> = ForRows {
                warp: &$module::$warp,
                block: &$module::$block,
                warp_any: &$module::$warp_any,
                block_any: &$module::$block_any,
            };
        }
    )+};
}
kernels! {
    f32: softmax_f32 softmax_f32_warp softmax_f32_block softmax_f32_warp_any softmax_f32_block_any;
    f16: softmax_f16 softmax_f16_warp softmax_f16_block softmax_f16_warp_any softmax_f16_block_any;
    bf16: softmax_bf16 softmax_bf16_warp softmax_bf16_block softmax_bf16_warp_any softmax_bf16_block_any;
}

/// Softmax of rows, or its logarithm: `e^(z − max z) / Σ e^(z − max z)`, where `z` is `x · scale + mask`.
///
/// A row is the last mode of a tensor, and is contiguous. The other modes may have any strides, as far as up to three of
/// them remain once those that continue one another are merged. The arithmetic is in f32, and a result is rounded once.
///
/// A row that is −∞ everywhere, because of its elements or of a mask, becomes 0: it has no probabilities. Its logarithms
/// are −∞. A row with NaN or +∞ becomes NaN.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Softmax};
///
/// let stream = Device::auto().stream()?;
/// let scores = DeviceTensor::upload(&stream, &[0.0f32, 9.0, 9.0, 1.0, 1.0, 9.0], [2, 3])?;
/// let mut weights = DeviceTensor::<f32>::zeroed(&stream, [2, 3])?;
/// Softmax::new().scale(0.125).causal(0).run(&stream, &scores, &mut weights)?;
/// assert_eq!(weights.download(&stream)?, [1.0, 0.0, 0.0, 0.5, 0.5, 0.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Softmax<'a, T: SoftmaxElement> {
    scale: f32,
    log: bool,
    past: Option<usize>,
    mask: Option<Tensor<'a, T>>,
    /// What was wrong with an operand.
    operands: Result<()>,
}

impl<T: SoftmaxElement> Default for Softmax<'_, T> {
    fn default() -> Self {
        Softmax {
            scale: 1.0,
            log: false,
            past: None,
            mask: None,
            operands: Ok(()),
        }
    }
}

impl<'a, T: SoftmaxElement> Softmax<'a, T> {
    /// The softmax of the elements as they are.
    pub fn new() -> Self {
        Softmax::default()
    }

    /// Multiplies the elements by a finite number first.
    pub fn scale(self, scale: f32) -> Self {
        Softmax { scale, ..self }
    }

    /// The logarithm of the softmax.
    pub fn log(self) -> Self {
        Softmax { log: true, ..self }
    }

    /// Row `q` of the mode before the last sees the first `past + q + 1` columns alone: those of the past, and those of
    /// this sequence up to its own. The other elements count as −∞.
    pub fn causal(self, past: usize) -> Self {
        let past = Some(past);
        Softmax { past, ..self }
    }

    /// Adds a mask of the shape of `x`. Modes of stride 0 repeat it. −∞ hides an element.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Softmax, Tensor, layout};
    ///
    /// let stream = Device::auto().stream()?;
    /// let mut x = DeviceTensor::upload(&stream, &[5.0f32; 6], [2, 3])?;
    /// let mask = stream.upload(&[0.0f32, 0.0, f32::NEG_INFINITY])?;
    /// let mask = Tensor::new(&mask, layout!((2, 3):(0, 1)))?; // the same for both rows
    /// Softmax::new().mask(mask).run_in_place(&stream, &mut x)?;
    /// assert_eq!(x.download(&stream)?, [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn mask(mut self, mask: impl IntoTensor<'a, Element = T>) -> Self {
        match read(mask) {
            Ok(mask) => self.mask = mask,
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Enqueues the softmax of `x` into `y`, which has its shape.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - The scale is not finite.
    /// - `y` overlaps another operand.
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
                NAME,
                "one of x and y has no elements; give them the same shape".to_string(),
            ),
        }
    }

    /// Enqueues the softmax of `x` in its place.
    ///
    /// # Errors
    /// As [`run`](Self::run).
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

    fn launch(self, stream: &Stream, x: Read<'_, T>, mut y: TensorMut<'_, T>) -> Result<()> {
        self.operands?;
        if !self.scale.is_finite() {
            return refuse(
                NAME,
                format!("the scale is {}; give a finite one", self.scale),
            );
        }
        in_stream(NAME, stream, "y", y.view.view())?;
        x.check(NAME, stream, "x", &y)?;
        let (of_x, of_y) = (x.rows("x", &y), written_rows("y", &y));
        let rows = match &self.mask {
            None => RowSet::of(NAME, &[of_x, of_y])?,
            Some(mask) => {
                check_read(NAME, stream, "the mask", mask, &y)?;
                let of_mask = rows_of("the mask", mask);
                RowSet::of(NAME, &[of_x, of_y, of_mask])?
            }
        };
        let args = SoftmaxArgs {
            x: rows.strides[0],
            y: rows.strides[1],
            mask: rows.strides[2],
            space: rows.space_ahead(stream.device()),
            queries: divisor(rows.queries),
            // No row has more columns.
            past: self.past.unwrap_or(0).min(MAX_EXTENT) as i32,
            scale: self.scale,
            causal: u32::from(self.past.is_some()),
            masked: u32::from(self.mask.is_some()),
            log: u32::from(self.log),
        };
        let (kernel, blocks) = T::KERNELS.choose::<T>(&rows);
        let function = stream.device().load(&PTX, kernel)?;
        let source = x.source(&y);
        // SAFETY: the rows were checked against the tensors' memory. A mask that is absent is not accessed. `y` overlaps
        // nothing else but an `x` that it is.
        unsafe {
            let args = (
                source,
                optional(self.mask.as_ref()),
                y.view.reborrow(),
                args,
            );
            Ok(stream.launch(&function, LaunchConfig::dependent(blocks), args)?)
        }
    }
}

/// Enqueues the softmax of each row: `y = e^(x − max x) / Σ e^(x − max x)`.
///
/// [`Softmax`] does the same in place, scaled, masked, or its logarithm.
///
/// # Errors
/// As [`Softmax::run`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, softmax};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[7.0f32, 7.0, 1000.0, 0.0], [2, 2])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// softmax(&stream, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn softmax<'a, T: SoftmaxElement>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    Softmax::new().run(stream, x, y)
}
