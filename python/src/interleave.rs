//! `interleave_rows`: the rows of two arrays by turns.

use cutlet::DeviceData;
use pyo3::prelude::*;

use crate::array::expect_shape;
use crate::call::Call;
use crate::error::Result;
use crate::rowops::{Placed, read, written};

const NAME: &str = "interleave_rows";

/// The rows of two arrays by turns: `out[::2] = first` and `out[1::2] = second`.
///
/// With weights of gates and of ups, (outputs, inputs) each, it is the weights of a gated layer, which
/// `gemm(x, out.T, activation="swiglu")` takes.
///
/// Arguments:
///     first, second: (rows, ...), of one shape, of any type and strides.
///     out: (2 * rows, ...).
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps another operand.
#[pyfunction]
#[pyo3(signature = (first, second, *, out=None, stream=None))]
pub fn interleave_rows<'py>(
    py: Python<'py>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, NAME, stream);
    let (even, odd) = (call.read("first", first)?, call.read("second", second)?);
    odd.expect_type(NAME, even.data_type)?;
    expect_shape(NAME, &odd, even.shape())?;
    let mut shape = even.shape().to_vec();
    if let Some(rows) = shape.first_mut() {
        *rows *= 2;
    }
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(first, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, even.data_type)?;
    expect_shape(NAME, &to, &shape)?;
    if shape.contains(&0) {
        return Ok(out);
    }
    let placed = [
        (&*even, even.layout(NAME)?),
        (&*odd, odd.layout(NAME)?),
        (&*to, to.layout(NAME)?),
    ];
    match even.data_type.size() {
        1 => enqueue::<u8>(&call, placed),
        2 => enqueue::<u16>(&call, placed),
        4 => enqueue::<u32>(&call, placed),
        _ => enqueue::<u64>(&call, placed),
    }?;
    Ok(out)
}

fn enqueue<T: DeviceData>(call: &Call<'_>, [first, second, out]: [Placed<'_>; 3]) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let (first, second) = (read::<T>(first, context)?, read(second, context)?);
        cutlet::interleave_rows(&context.stream, first, second, written(out, context)?)
    })
}
