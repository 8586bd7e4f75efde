//! `cast`: elements of another type.

use cutlet::{CastElement, DeviceData, F8E4M3, bf16, f16};
use pyo3::prelude::*;

use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type};
use crate::options;
use crate::rowops::{Placed, read, written};

const NAME: &str = "cast";

/// Converts elements to another type. Numbers are rounded to the nearest, ties to even.
///
/// Arguments:
///     x: float32, float16, bfloat16 or float8_e4m3fn, of contiguous rows.
///     dtype: Another one of these types. It is needed without `out`.
///     out: An array of the shape of `x`.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`. Numbers beyond 448 become 448 in float8_e4m3fn.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps `x`.
#[pyfunction]
#[pyo3(signature = (x, dtype=None, *, out=None, stream=None))]
pub fn cast<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let asked = dtype.map(|it| options::data_type(NAME, it)).transpose()?;
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let out = match (out, asked) {
        (Some(out), _) => out.clone(),
        (None, Some(asked)) => call.empty(x, from.shape(), Some(asked))?,
        (None, None) => {
            return wrong_type(format!("{NAME}: there is neither dtype nor out; give one"));
        }
    };
    let to = call.write("out", &out)?;
    if let Some(asked) = asked {
        to.expect_type(NAME, asked)?;
    }
    if from.shape().contains(&0) {
        return Ok(out);
    }
    let placed = [(&*from, from.layout(NAME)?), (&*to, to.layout(NAME)?)];
    enqueue_any(&call, placed)?;
    Ok(out)
}

/// Enqueues a cast between the types of two arrays.
fn enqueue_any(call: &Call<'_>, placed: [Placed<'_>; 2]) -> Result<()> {
    use DataType::{Bf16, F8E4M3 as E4M3, F16, F32};
    let [from, to] = placed.map(|(array, _)| array.data_type);
    match (from, to) {
        (F32, F16) => enqueue::<f32, f16>(call, placed),
        (F32, Bf16) => enqueue::<f32, bf16>(call, placed),
        (F32, E4M3) => enqueue::<f32, F8E4M3>(call, placed),
        (F16, F32) => enqueue::<f16, f32>(call, placed),
        (F16, Bf16) => enqueue::<f16, bf16>(call, placed),
        (F16, E4M3) => enqueue::<f16, F8E4M3>(call, placed),
        (Bf16, F32) => enqueue::<bf16, f32>(call, placed),
        (Bf16, F16) => enqueue::<bf16, f16>(call, placed),
        (Bf16, E4M3) => enqueue::<bf16, F8E4M3>(call, placed),
        (E4M3, F32) => enqueue::<F8E4M3, f32>(call, placed),
        (E4M3, F16) => enqueue::<F8E4M3, f16>(call, placed),
        (E4M3, Bf16) => enqueue::<F8E4M3, bf16>(call, placed),
        _ => wrong_type(format!(
            "{NAME}: x is {} and out is {}; give two different ones of float32, float16, bfloat16 and float8_e4m3fn",
            from.name(),
            to.name()
        )),
    }
}

fn enqueue<F: CastElement<T>, T: DeviceData>(
    call: &Call<'_>,
    [x, out]: [Placed<'_>; 2],
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        cutlet::cast(
            &context.stream,
            read::<F>(x, context)?,
            written::<T>(out, context)?,
        )
    })
}
