//! Quantisation to e4m3, with scales of rows or of blocks.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::quantize::{
    BLOCK, BlockShape, QuantizeArgs, Scaled8, quantize_bf16, quantize_blocks_bf16,
    quantize_blocks_bf16_any, quantize_blocks_f16, quantize_blocks_f16_any, quantize_blocks_f32,
    quantize_blocks_f32_any, quantize_f16, quantize_f32, swiglu_quantize_bf16,
    swiglu_quantize_bf16_any, swiglu_quantize_f16, swiglu_quantize_f16_any, swiglu_quantize_f32,
    swiglu_quantize_f32_any,
};
use cutlet_layout_core::{Int, Layout, tiles};
use half::{bf16, f16};

use super::operand::{check_read, layout_of_rows, read, rows_of, written, written_rows};
use super::space::{HasRows, RowSet};
use super::{ForRows, refuse};
use crate::into_tensor::one_stride;
use crate::matrix::{disjoint, in_stream};
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// The operation's name in errors.
const NAME: &str = "quantize";
/// What is said of operands of which some have no elements.
const SOME_ARE_EMPTY: &str = "some of the tensors have no elements; give them the same shape";

/// An element type that [`Quantize`] reads: `f32`, `f16` or `bf16`.
pub trait QuantizedElement: DeviceData + sealed::Kernels {}
impl QuantizedElement for f32 {}
impl QuantizedElement for f16 {}
impl QuantizedElement for bf16 {}

/// A kernel of a quantisation.
type QuantizeKernel<T> = Kernel<(Global<T>, GlobalMut<F8E4M3>, GlobalMut<f32>, QuantizeArgs)>;

mod sealed {
    use super::{DeviceData, ForRows, QuantizeKernel};

    /// The kernels for an element type: for rows, and for blocks, alone or after SwiGLU, whose vectors are aligned or not.
    pub trait Kernels: DeviceData {
        const ROWS: ForRows<QuantizeKernel<Self>>;
        const BLOCKS: [&'static QuantizeKernel<Self>; 2];
        const SWIGLU: [&'static QuantizeKernel<Self>; 2];
    }
}

macro_rules! kernels {
    ($($element:ty: $module:ident $warp:ident $block:ident $warp_any:ident $block_any:ident, $vectors:ident $any:ident,
        $swiglu:ident $swiglu_any:ident;)+)
        => {$(
        impl sealed::Kernels for $element {
            const ROWS: ForRows<QuantizeKernel<Self>> = ForRows {
                warp: &$module::$warp,
                block: &$module::$block,
                warp_any: &$module::$warp_any,
                block_any: &$module::$block_any,
            };
            const BLOCKS: [&'static QuantizeKernel<Self>; 2] = [&$vectors, &$any];
            const SWIGLU: [&'static QuantizeKernel<Self>; 2] = [&$swiglu, &$swiglu_any];
        }
    )+};
}
kernels! {
    f32: quantize_f32 quantize_f32_warp quantize_f32_block quantize_f32_warp_any quantize_f32_block_any,
        quantize_blocks_f32 quantize_blocks_f32_any, swiglu_quantize_f32 swiglu_quantize_f32_any;
    f16: quantize_f16 quantize_f16_warp quantize_f16_block quantize_f16_warp_any quantize_f16_block_any,
        quantize_blocks_f16 quantize_blocks_f16_any, swiglu_quantize_f16 swiglu_quantize_f16_any;
    bf16: quantize_bf16 quantize_bf16_warp quantize_bf16_block quantize_bf16_warp_any quantize_bf16_block_any,
        quantize_blocks_bf16 quantize_blocks_bf16_any, swiglu_quantize_bf16 swiglu_quantize_bf16_any;
}

/// Which elements of a row have a scale together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaled {
    Rows,
    Blocks,
}

/// Quantisation to e4m3: `y = x / scale`, where `scale` is the largest magnitude of a row, or of each 128 elements of it,
/// divided by 448, the largest number of e4m3.
///
/// [`Gemm::block_scales`](crate::Gemm::block_scales) takes the scales of blocks as those of A. Numbers are rounded to the
/// nearest, ties to even, and the scale of zeros is 1. NaN stays NaN and does not count in a scale. Infinity becomes 448.
///
/// ```
/// use cutlet::{Device, DeviceTensor, F8E4M3, Quantize};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, -7.0, 3.5, 0.0], [2, 2])?;
/// let mut y = DeviceTensor::<F8E4M3>::zeroed(&stream, [2, 2])?;
/// let mut scales = DeviceTensor::<f32>::zeroed(&stream, [2])?;
/// Quantize::by_rows().run(&stream, &x, &mut y, &mut scales)?;
/// assert_eq!(scales.download(&stream)?, [7.0 / 448.0, 3.5 / 448.0]);
/// let y: Vec<f32> = y.download(&stream)?.iter().map(|y| y.to_f32()).collect();
/// assert_eq!(y, [64.0, -448.0, 448.0, 0.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quantize {
    scaled: Scaled,
    powers: bool,
}

impl Quantize {
    /// With a scale for each row.
    pub fn by_rows() -> Self {
        Quantize {
            scaled: Scaled::Rows,
            powers: false,
        }
    }

    /// With a scale for each 128 elements of a row. The last ones may be fewer.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, F8E4M3, Quantize, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let mut numbers = vec![bf16::ONE; 256];
    /// numbers[200] = bf16::from_f32(-896.0);
    /// let x = DeviceTensor::upload(&stream, &numbers, [1, 256])?;
    /// let mut y = DeviceTensor::<F8E4M3>::zeroed(&stream, [1, 256])?;
    /// let mut scales = DeviceTensor::<f32>::zeroed(&stream, [1, 2])?;
    /// Quantize::by_blocks().powers_of_two().run(&stream, &x, &mut y, &mut scales)?;
    /// assert_eq!(scales.download(&stream)?, [1.0 / 256.0, 2.0]);
    /// let y = y.download(&stream)?;
    /// assert_eq!([y[0], y[128], y[200]].map(F8E4M3::to_f32), [256.0, 0.5, -448.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn by_blocks() -> Self {
        Quantize {
            scaled: Scaled::Blocks,
            powers: false,
        }
    }

    /// With scales that are powers of two: the next one that is not smaller.
    pub fn powers_of_two(self) -> Self {
        Quantize {
            powers: true,
            ..self
        }
    }

    /// Whether each 128 elements of a row have a scale.
    pub(crate) fn is_by_blocks(&self) -> bool {
        self.scaled == Scaled::Blocks
    }

    /// Whether scales are powers of two.
    pub(crate) fn has_powers(&self) -> bool {
        self.powers
    }

    /// Enqueues the quantisation of the rows of `x` into `y`, which has its shape. A row is the last mode, and is
    /// contiguous. Scales of rows have the modes before, and may have a last mode of one element. Scales of blocks have
    /// these modes and a last one with a scale for each block, of any stride.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - `y` or the scales overlap another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    pub fn run<'a, T: QuantizedElement>(
        &self,
        stream: &Stream,
        x: impl IntoTensor<'a, Element = T>,
        y: impl IntoTensorMut<'a, Element = F8E4M3>,
        scales: impl IntoTensorMut<'a, Element = f32>,
    ) -> Result<()> {
        match (read(x)?, written(y)?, written(scales)?) {
            (Some(x), Some(y), Some(scales)) => {
                self.launch(stream, &x, x.layout, y, scales, T::BLOCKS)
            }
            (None, None, _) => Ok(()),
            _ => refuse(NAME, SOME_ARE_EMPTY.to_string()),
        }
    }

    /// Enqueues the quantisation of what SwiGLU makes of gates and ups: `y[r, c] = x / scale` of
    /// `x = silu(source[r, 2c]) · source[r, 2c + 1]`, where `silu(g) = g / (1 + e⁻ᵍ)`. It is one launch for
    /// [`swiglu`](fn@crate::swiglu) and [`run`](Self::run), and `x` is not rounded between them.
    ///
    /// Gates and ups alternate in a row of the source, as a product with weights does whose columns alternate. `y` has the
    /// modes of the source, and half as many elements in the last one. Scales are those of blocks, as for
    /// [`run`](Self::run).
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, F8E4M3, Quantize};
    ///
    /// let stream = Device::auto().stream()?;
    /// let source = DeviceTensor::upload(&stream, &[100.0f32, 4.48, 0.0, 5.0, -100.0, 3.0], [1, 6])?;
    /// let mut y = DeviceTensor::<F8E4M3>::zeroed(&stream, [1, 3])?;
    /// let mut scales = DeviceTensor::<f32>::zeroed(&stream, [1, 1])?;
    /// Quantize::by_blocks().swiglu(&stream, &source, &mut y, &mut scales)?;
    /// assert!((scales.download(&stream)?[0] - 1.0).abs() < 1e-6);
    /// let y = y.download(&stream)?;
    /// assert_eq!([y[0], y[1], y[2]].map(F8E4M3::to_f32), [448.0, 0.0, 0.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run), and also if rows have one scale, or if the source has not twice as many elements in its last
    /// mode as `y`.
    pub fn swiglu<'a, T: QuantizedElement>(
        &self,
        stream: &Stream,
        source: impl IntoTensor<'a, Element = T>,
        y: impl IntoTensorMut<'a, Element = F8E4M3>,
        scales: impl IntoTensorMut<'a, Element = f32>,
    ) -> Result<()> {
        if self.scaled == Scaled::Rows {
            return refuse(
                NAME,
                "rows have one scale, and SwiGLU was asked for; use `by_blocks`".to_string(),
            );
        }
        match (read(source)?, written(y)?, written(scales)?) {
            (Some(source), Some(y), Some(scales)) => {
                let results = results_of(&source.layout)?;
                self.launch(stream, &source, results, y, scales, T::SWIGLU)
            }
            (None, None, _) => Ok(()),
            _ => refuse(NAME, SOME_ARE_EMPTY.to_string()),
        }
    }

    /// Launches a kernel for rows, or one of these for blocks. `rows` are those of `x`, with the shape of `y`.
    fn launch<T: QuantizedElement>(
        &self,
        stream: &Stream,
        x: &Tensor<'_, T>,
        rows: Layout,
        mut y: TensorMut<'_, F8E4M3>,
        mut scales: TensorMut<'_, f32>,
        of_blocks: [&'static QuantizeKernel<T>; 2],
    ) -> Result<()> {
        in_stream(NAME, stream, "y", y.view.view())?;
        in_stream(NAME, stream, "the scales", scales.view.view())?;
        check_read(NAME, stream, "x", x, &y)?;
        check_read(NAME, stream, "x", x, &scales)?;
        disjoint(NAME, "the scales", scales.addresses(), y.addresses())?;
        let (of_scales, to_next_scale) = self.places_of_scales(&scales.layout, &y.layout)?;
        let of_scales = HasRows {
            what: "the scales",
            layout: &of_scales,
            address: 0,
            bytes: 0,
        };
        let of_x = HasRows {
            layout: &rows,
            ..rows_of("x", x)
        };
        let rows = RowSet::of(NAME, &[of_x, written_rows("y", &y), of_scales])?;
        let args = QuantizeArgs {
            x: rows.strides[0],
            y: rows.strides[1],
            scales: rows.strides[2],
            to_next_scale,
            space: rows.space,
            powers: u32::from(self.powers),
            padding: 0,
        };
        let (kernel, blocks) = match self.scaled {
            Scaled::Rows => T::ROWS.choose::<T>(&rows),
            Scaled::Blocks => {
                let [down, across] =
                    tiles::<<Scaled8 as BlockShape>::Tile>([rows.space.rows, rows.space.columns]);
                let Some(blocks) = down.checked_mul(across).filter(|&it| it < 1 << 31) else {
                    return refuse(
                        NAME,
                        "there are too many blocks; give parts of x".to_string(),
                    );
                };
                (of_blocks[usize::from(!rows.is_aligned)], blocks)
            }
        };
        let kernel = stream.device().load(&PTX, kernel)?;
        // SAFETY: the rows were checked against the tensors' memory, and there is a scale for each row or block. What is
        // written overlaps nothing else.
        unsafe {
            let args = (x.view, y.view.reborrow(), scales.view.reborrow(), args);
            Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
        }
    }

    /// Where the scales of rows begin, and the elements from one scale of a row to the next.
    fn places_of_scales(&self, scales: &Layout, y: &Layout) -> Result<(Layout, i64)> {
        if self.scaled == Scaled::Rows {
            return Ok((layout_of_rows(NAME, "the scales", scales, y)?, 0));
        }
        let last = y.rank() - 1;
        let blocks = (y.mode(last).size() as usize).div_ceil(BLOCK);
        let strided = match scales.rank() == y.rank() {
            true => one_stride(scales, last).filter(|(count, _)| *count == blocks),
            false => None,
        };
        let Some((_, to_next_scale)) = strided else {
            return refuse(
                NAME,
                format!(
                    "the scales are {}, and y is {}; give the same modes, and {blocks} scales in the last one",
                    scales.to_dynamic(),
                    y.to_dynamic()
                ),
            );
        };
        // The first scale of each row.
        let one = Layout::leaf(Int::dynamic(1), Int::dynamic(0));
        let first = match y.rank() {
            1 => one,
            _ => scales.replace(last, &one),
        };
        Ok((
            layout_of_rows(NAME, "the scales", &first, y)?,
            to_next_scale as i64,
        ))
    }
}

/// The rows that SwiGLU makes of those of gates and ups, in the places of these.
fn results_of(source: &Layout) -> Result<Layout> {
    let last = source.rank() - 1;
    match one_stride(source, last) {
        Some((pairs, 1)) if pairs.is_multiple_of(2) => {
            let half = Layout::leaf(Int::dynamic((pairs / 2) as i64), Int::dynamic(1));
            Ok(match source.rank() {
                1 => half,
                _ => source.replace(last, &half),
            })
        }
        _ => refuse(
            NAME,
            format!(
                "the source is {}, whose last mode has no pairs of contiguous gates and ups; copy it with `permute`",
                source.to_dynamic()
            ),
        ),
    }
}
