//! `sample`: random tokens by the softmax of logits.

use cutlet::{SampledElement, Sampling};
use pyo3::prelude::*;

use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type};
use crate::rowops::{Placed, read, written};
use crate::rows::for_sums;

const NAME: &str = "sample";

/// A random place of each row, by the softmax of `logits / temperature`: the next tokens of a model.
///
/// A random number depends on the seed, on the row, and on the row's counter. A CUDA graph that is replayed draws other
/// tokens once the counters have changed, and the same counters draw the same tokens again.
///
/// Arguments:
///     logits: (..., n), float32, float16 or bfloat16, of contiguous rows. NaN and -inf are never drawn.
///     counters: int64 or uint64, of the dimensions of `logits` before the last, of any strides.
///     seed: Other seeds draw other tokens.
///     temperature: From 0 on. At 0, the largest logit is taken.
///     top_k: Only so many of the most probable tokens are drawn.
///     top_p: Only the most probable tokens that have this share of the probability together are drawn.
///     out: int32, of the shape of `counters`.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`. A row of NaN and -inf alone gets -1.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or a number is out of its range.
#[pyfunction]
#[pyo3(signature = (logits, counters, *, seed=0, temperature=1.0, top_k=None, top_p=1.0, out=None, stream=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub fn sample<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    counters: &Bound<'py, PyAny>,
    seed: u64,
    temperature: f32,
    top_k: Option<usize>,
    top_p: f32,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let sampling = Sampling::new(seed)
        .temperature(temperature)
        .top_k(top_k.unwrap_or(usize::MAX))
        .top_p(top_p);
    let mut call = Call::new(py, NAME, stream);
    let (from, counted) = (
        call.read("logits", logits)?,
        call.read("counters", counters)?,
    );
    if !matches!(counted.data_type, DataType::I64 | DataType::U64) {
        return wrong_type(format!(
            "{NAME}: counters is {}; give int64 or uint64",
            counted.data_type.name()
        ));
    }
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(logits, counted.shape(), Some(DataType::I32))?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, DataType::I32)?;
    if from.shape().contains(&0) {
        return Ok(out);
    }
    let arrays = [
        (&*from, from.layout(NAME)?),
        (&*counted, counted.layout(NAME)?),
        (&*to, to.layout(NAME)?),
    ];
    for_sums!(NAME, from, enqueue(&call, sampling, arrays))?;
    Ok(out)
}

fn enqueue<T: SampledElement>(
    call: &Call<'_>,
    sampling: Sampling,
    [logits, counters, out]: [Placed<'_>; 3],
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let (logits, counters) = (read::<T>(logits, context)?, read(counters, context)?);
        sampling.run(&context.stream, logits, counters, written(out, context)?)
    })
}
