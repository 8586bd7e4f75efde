//! Operations on each row of an array, which is its last dimension: norms, softmax, the largest element, quantisation.
//! And sums and extremes along any dimensions.

use cutlet::{
    DeviceData, F8E4M3, Layout, Norm, NormElement, Quantize, QuantizedElement, ReducedElement,
    Reduction, Softmax, SoftmaxElement, Tensor, TensorMut,
};
use pyo3::prelude::*;

use crate::array::Array;
use crate::call::{Argument, Call};
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::rows::for_sums;
use crate::stream::Context;

/// RMSNorm of the last dimension: `x / sqrt(mean(x²) + eps) * weight`.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows.
///     weight: (n,).
///     eps: Added to the mean of the squares.
///     residual: An array of the shape of `x`, which is added to it first. It becomes the sum.
///     out: An array of the shape of `x`, or `x` itself.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps another operand.
#[pyfunction]
#[pyo3(signature = (x, weight=None, *, eps=1e-6, residual=None, out=None, stream=None))]
pub fn rms_norm<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    weight: Option<&Bound<'py, PyAny>>,
    eps: f32,
    residual: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "rms_norm";
    let given = Given {
        x,
        lists: [weight, None],
        residual,
        out,
    };
    given.normalised(NAME, Call::new(py, NAME, stream), eps, false)
}

/// LayerNorm of the last dimension: `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows.
///     weight, bias: (n,).
///     eps: Added to the variance.
///     residual: An array of the shape of `x`, which is added to it first. It becomes the sum.
///     out: An array of the shape of `x`, or `x` itself.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps another operand.
#[pyfunction]
#[pyo3(signature = (x, weight=None, bias=None, *, eps=1e-5, residual=None, out=None, stream=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub fn layer_norm<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    weight: Option<&Bound<'py, PyAny>>,
    bias: Option<&Bound<'py, PyAny>>,
    eps: f32,
    residual: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "layer_norm";
    let given = Given {
        x,
        lists: [weight, bias],
        residual,
        out,
    };
    given.normalised(NAME, Call::new(py, NAME, stream), eps, true)
}

/// The arrays of a norm.
struct Given<'a, 'py> {
    x: &'a Bound<'py, PyAny>,
    /// Weights and biases.
    lists: [Option<&'a Bound<'py, PyAny>>; 2],
    residual: Option<&'a Bound<'py, PyAny>>,
    out: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Given<'_, 'py> {
    fn normalised(
        self,
        operation: &'static str,
        mut call: Call<'py>,
        epsilon: f32,
        is_layer: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let x = call.read("x", self.x)?;
        let read = |call: &mut Call<'py>, name, array: Option<&Bound<'py, PyAny>>| {
            array.map(|it| call.read(name, it)).transpose()
        };
        let weight = read(&mut call, "weight", self.lists[0])?;
        let bias = read(&mut call, "bias", self.lists[1])?;
        let residual = self
            .residual
            .map(|it| call.write("residual", it))
            .transpose()?;
        let out = match self.out {
            Some(out) => out.clone(),
            None => call.empty(self.x, x.shape(), None)?,
        };
        let y = call.write("out", &out)?;
        for array in [weight.as_ref(), bias.as_ref(), residual.as_ref(), Some(&y)] {
            let Some(array) = array else { continue };
            array.expect_type(operation, x.data_type)?;
        }
        if x.shape().contains(&0) {
            return Ok(out);
        }
        let place = |array: Option<&'_ Argument>| array.map(|it| it.layout(operation)).transpose();
        let of_lists = [
            place(weight.as_ref())?,
            place(bias.as_ref())?,
            place(residual.as_ref())?,
        ];
        let arrays = NormArrays {
            is_layer,
            epsilon,
            x: (&x, x.layout(operation)?),
            y: (&y, y.layout(operation)?),
            weight: weight.as_deref().zip(of_lists[0]),
            bias: bias.as_deref().zip(of_lists[1]),
            residual: residual.as_deref().zip(of_lists[2]),
        };
        for_sums!(operation, x, enqueue_norm(&call, arrays))?;
        Ok(out)
    }
}

/// An array and its layout.
pub(crate) type Placed<'a> = (&'a Array, Layout);

pub(crate) fn read<'a, T: DeviceData>(
    (array, layout): Placed<'a>,
    context: &'static Context,
) -> cutlet::Result<Tensor<'a, T>> {
    array.tensor(context, layout)
}

pub(crate) fn written<'a, T: DeviceData>(
    (array, layout): Placed<'a>,
    context: &'static Context,
) -> cutlet::Result<TensorMut<'a, T>> {
    array.tensor_mut(context, layout)
}

/// Whether two arrays are the same elements.
pub(crate) fn are_same(x: Placed<'_>, y: Placed<'_>) -> bool {
    x.0.address() == y.0.address() && x.1 == y.1
}

/// What is normalised, and how.
#[derive(Clone, Copy)]
struct NormArrays<'a> {
    is_layer: bool,
    epsilon: f32,
    x: Placed<'a>,
    y: Placed<'a>,
    weight: Option<Placed<'a>>,
    bias: Option<Placed<'a>>,
    residual: Option<Placed<'a>>,
}

fn enqueue_norm<T: NormElement>(call: &Call<'_>, arrays: NormArrays<'_>) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let mut norm = match arrays.is_layer {
            true => Norm::<T>::layer(arrays.epsilon),
            false => Norm::<T>::rms(arrays.epsilon),
        };
        if let Some(weight) = arrays.weight {
            norm = norm.weight(read(weight, context)?);
        }
        if let Some(bias) = arrays.bias {
            norm = norm.bias(read(bias, context)?);
        }
        if let Some(residual) = arrays.residual {
            norm = norm.residual(written(residual, context)?);
        }
        let y = written(arrays.y, context)?;
        match are_same(arrays.x, arrays.y) {
            true => norm.run_in_place(&context.stream, y),
            false => norm.run(&context.stream, read(arrays.x, context)?, y),
        }
    })
}

/// Softmax of the last dimension, or its logarithm: of `x * scale + mask`.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows.
///     scale: A finite number.
///     mask: An array of the shape and type of `x`, of any strides: `numpy.broadcast_to` repeats one.
///     causal: The number of columns before a sequence: row `q` of the dimension before the last sees `causal + q + 1`.
///     log: Whether the result is the logarithm.
///     out: An array of the shape of `x`, or `x` itself.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`. A row that is hidden as a whole is 0, or -inf in logarithms.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps another operand.
#[pyfunction]
#[pyo3(signature = (x, *, scale=1.0, mask=None, causal=None, log=false, out=None, stream=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub fn softmax<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    scale: f32,
    mask: Option<&Bound<'py, PyAny>>,
    causal: Option<usize>,
    log: bool,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "softmax";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let mask = mask.map(|it| call.read("mask", it)).transpose()?;
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(x, from.shape(), None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    if from.shape().contains(&0) {
        return Ok(out);
    }
    let of_mask = match &mask {
        Some(mask) => {
            mask.expect_type(NAME, from.data_type)?;
            Some(mask.layout(NAME)?)
        }
        None => None,
    };
    let arrays = SoftmaxArrays {
        x: (&from, from.layout(NAME)?),
        y: (&to, to.layout(NAME)?),
        mask: mask.as_deref().zip(of_mask),
        scale,
        causal,
        log,
    };
    for_sums!(NAME, from, enqueue_softmax(&call, arrays))?;
    Ok(out)
}

/// What a softmax is of.
#[derive(Clone, Copy)]
struct SoftmaxArrays<'a> {
    x: Placed<'a>,
    y: Placed<'a>,
    mask: Option<Placed<'a>>,
    scale: f32,
    causal: Option<usize>,
    log: bool,
}

fn enqueue_softmax<T: SoftmaxElement>(call: &Call<'_>, arrays: SoftmaxArrays<'_>) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let mut softmax = Softmax::<T>::new().scale(arrays.scale);
        if let Some(past) = arrays.causal {
            softmax = softmax.causal(past);
        }
        if let Some(mask) = arrays.mask {
            softmax = softmax.mask(read(mask, context)?);
        }
        if arrays.log {
            softmax = softmax.log();
        }
        let y = written(arrays.y, context)?;
        match are_same(arrays.x, arrays.y) {
            true => softmax.run_in_place(&context.stream, y),
            false => softmax.run(&context.stream, read(arrays.x, context)?, y),
        }
    })
}

/// The index of the largest element of each row. Of equal elements, it is the first one's. NaN is the largest.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows.
///     out: (...,), or (1,) for one row, int32.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit.
#[pyfunction]
#[pyo3(signature = (x, *, out=None, stream=None))]
pub fn argmax<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "argmax";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let shape = match from.shape() {
        [] | [_] => vec![1],
        [of_rows @ .., _] => of_rows.to_vec(),
    };
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(x, &shape, Some(DataType::I32))?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, DataType::I32)?;
    let (of_from, of_to) = ((&*from, from.layout(NAME)?), (&*to, to.layout(NAME)?));
    for_sums!(NAME, from, enqueue_argmax(&call, of_from, of_to))?;
    Ok(out)
}

fn enqueue_argmax<T: ReducedElement>(
    call: &Call<'_>,
    x: Placed<'_>,
    out: Placed<'_>,
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        cutlet::argmax(
            &context.stream,
            read::<T>(x, context)?,
            written(out, context)?,
        )
    })
}

/// The sum, the mean or an extreme along dimensions. Sums are in float32, and their order does not depend on the run. NaN
/// makes its result NaN.
///
/// Arguments:
///     x: float32, float16 or bfloat16, one dimension of which is contiguous.
///     reduction: "sum", "mean", "max", "min", or "amax": the largest magnitude.
///     axis: A dimension, or several; all of them without it. Negative ones count from the last one.
///     keepdims: Whether dimensions that are reduced stay, with one element.
///     out: An array for the results. If all dimensions are reduced, it is (1,).
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps `x`.
#[pyfunction]
#[pyo3(signature = (x, reduction, *, axis=None, keepdims=false, out=None, stream=None))]
pub fn reduce<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    reduction: &str,
    axis: Option<Axes>,
    keepdims: bool,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "reduce";
    let reduction = match reduction {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "max" => Reduction::Max,
        "min" => Reduction::Min,
        "amax" => Reduction::Amax,
        _ => {
            return wrong_value(format!(
                "{NAME}: reduction is \"{reduction}\"; give sum, mean, max, min or amax"
            ));
        }
    };
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let rank = from.shape().len();
    let modes = Axes::modes(axis, rank)?;
    let is_reduced = |(mode, _): &(usize, &usize)| modes.contains(mode);
    let shape: Vec<usize> = match (keepdims, modes.len() == rank) {
        (true, _) => from
            .shape()
            .iter()
            .enumerate()
            .map(|it| if is_reduced(&it) { 1 } else { *it.1 })
            .collect(),
        (false, true) => vec![1],
        (false, false) => {
            let kept = from.shape().iter().enumerate().filter(|it| !is_reduced(it));
            kept.map(|(_, extent)| *extent).collect()
        }
    };
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(x, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    if from.shape().contains(&0) {
        return match shape.contains(&0) {
            true => Ok(out),
            false => wrong_value(format!(
                "{NAME}: x is {}, and nothing has no {shape:?} results; give an x with elements",
                crate::array::tuple(from.shape())
            )),
        };
    }
    let (of_from, of_to) = ((&*from, from.layout(NAME)?), (&*to, to.layout(NAME)?));
    for_sums!(
        NAME,
        from,
        enqueue_reduction(&call, reduction, of_from, &modes, of_to)
    )?;
    Ok(out)
}

/// Dimensions, as Python names them.
#[derive(FromPyObject)]
pub enum Axes {
    One(isize),
    Several(Vec<isize>),
}

impl Axes {
    /// The modes of an array of this rank. All of them, if none are named.
    fn modes(axes: Option<Axes>, rank: usize) -> Result<Vec<usize>> {
        let axes = match axes {
            None => return Ok((0..rank).collect()),
            Some(Axes::One(axis)) => vec![axis],
            Some(Axes::Several(axes)) => axes,
        };
        let mode = |axis: &isize| {
            let from_first = if *axis < 0 {
                axis + rank as isize
            } else {
                *axis
            };
            usize::try_from(from_first).ok().filter(|&it| it < rank)
        };
        match axes.iter().map(mode).collect() {
            Some(modes) => Ok(modes),
            None => wrong_value(format!(
                "reduce: axis is {axes:?}, and x has {rank} dimensions; give some of these"
            )),
        }
    }
}

fn enqueue_reduction<T: ReducedElement>(
    call: &Call<'_>,
    reduction: Reduction,
    x: Placed<'_>,
    modes: &[usize],
    out: Placed<'_>,
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let (x, out) = (read::<T>(x, context)?, written(out, context)?);
        cutlet::reduce_modes(&context.stream, reduction, x, modes, out)
    })
}

/// Quantises to float8_e4m3fn: `out = x / scale`, where `scale` is the largest magnitude of a row, or of each 128 elements
/// of it, divided by 448.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows.
///     out: float8_e4m3fn, of the shape of `x`.
///     scales: float32: (...,) or (..., 1) for rows, and (..., ceil(n / 128)) for blocks.
///     by: "rows" or "blocks".
///     powers_of_two: Whether a scale is the next power of two that is not smaller.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`, `scales`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or an output overlaps another operand.
#[pyfunction]
#[pyo3(signature = (x, out, scales, *, by="rows", powers_of_two=false, stream=None))]
pub fn quantize<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    scales: &Bound<'py, PyAny>,
    by: &str,
    powers_of_two: bool,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    const NAME: &str = "quantize";
    let quantize = match by {
        "rows" => Quantize::by_rows(),
        "blocks" => Quantize::by_blocks(),
        _ => return wrong_value(format!("{NAME}: by is \"{by}\"; give rows or blocks")),
    };
    let quantize = match powers_of_two {
        true => quantize.powers_of_two(),
        false => quantize,
    };
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let to = call.write("out", out)?;
    let of_blocks = call.write("scales", scales)?;
    to.expect_type(NAME, DataType::F8E4M3)?;
    of_blocks.expect_type(NAME, DataType::F32)?;
    let arrays = [
        (&*from, from.layout(NAME)?),
        (&*to, to.layout(NAME)?),
        (&*of_blocks, of_blocks.layout(NAME)?),
    ];
    for_sums!(NAME, from, enqueue_quantize(&call, quantize, arrays))?;
    Ok((out.clone(), scales.clone()))
}

fn enqueue_quantize<T: QuantizedElement>(
    call: &Call<'_>,
    quantize: Quantize,
    [x, out, scales]: [Placed<'_>; 3],
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let (x, out) = (read::<T>(x, context)?, written::<F8E4M3>(out, context)?);
        quantize.run(&context.stream, x, out, written(scales, context)?)
    })
}
