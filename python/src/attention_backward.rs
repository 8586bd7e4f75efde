//! `attention_backward`: the gradients of the queries, keys and values of `attention`.

use cutlet::{Attention, AttentionElement};
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::attention::{Laid, Packed, PackedArrays, PyPacked, by_type, read_heads, window_of};
use crate::call::{Argument, Call};
use crate::data_type::DataType;
use crate::error::{Result, wrong_value};

const NAME: &str = "attention_backward";

/// Three arrays, as Python has them.
type Three<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The gradients of `queries`, `keys` and `values`, of the gradient of what `attention` made of them.
///
/// Arguments:
///     queries, keys, values: As in `attention`, of up to 128 features.
///     output: What `attention` returned, with the same window, scale and packing, and with any sinks.
///     log_sum_exp: (sequences, queries, heads), float32, which `attention` wrote.
///     output_gradient: As `output`.
///     causal, window, scale, packed: As in `attention`.
///     deterministic: The results are the same in each run, which takes longer.
///     out: The three results, which do not overlap.
///     stream: As in `gemm`.
///
/// Returns:
///     The gradients of the queries, the keys and the values. Where heads share keys, the gradients of these are sums.
///
/// Raises:
///     TypeError, ValueError: As `attention`.
///     RuntimeError: The GPU has another compute capability than 9.0.
#[pyfunction]
#[pyo3(signature = (
    queries, keys, values, output, log_sum_exp, output_gradient, *, causal=false, window=None, scale=None, packed=None,
    deterministic=false, out=None, stream=None
))]
#[expect(clippy::too_many_arguments, reason = "most are keywords")]
pub fn attention_backward<'py>(
    py: Python<'py>,
    queries: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    output: &Bound<'py, PyAny>,
    log_sum_exp: &Bound<'py, PyAny>,
    output_gradient: &Bound<'py, PyAny>,
    causal: bool,
    window: Option<(Option<usize>, Option<usize>)>,
    scale: Option<f32>,
    packed: Option<PyPacked<'py>>,
    deterministic: bool,
    out: Option<Three<'py>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Three<'py>> {
    let mut call = Call::new(py, NAME, stream);
    let given = read_heads(&mut call, queries, keys, values)?;
    let of_type = given[0].data_type;
    let mut read = |name, array, data_type| -> Result<_> {
        let array = call.read(name, array)?;
        array.expect_type(NAME, data_type)?;
        Ok(array)
    };
    let output = read("output", output, of_type)?;
    let sums = read("log_sum_exp", log_sum_exp, DataType::F32)?;
    let output_gradient = read("output_gradient", output_gradient, of_type)?;
    let packed = Packed::read(&mut call, packed.as_ref())?;
    let out = match out {
        Some(out) => out,
        None => (
            call.empty(queries, given[0].shape(), None)?,
            call.empty(keys, given[1].shape(), None)?,
            call.empty(values, given[2].shape(), None)?,
        ),
    };
    let written = [
        gradient(&mut call, "out[0]", &out.0, &given[0])?,
        gradient(&mut call, "out[1]", &out.1, &given[1])?,
        gradient(&mut call, "out[2]", &out.2, &given[2])?,
    ];
    let laid = |array| Laid::of(NAME, array);
    let operands = Operands {
        queries: laid(&given[0])?,
        keys: laid(&given[1])?,
        values: laid(&given[2])?,
        output: laid(&output)?,
        log_sum_exp: laid(&sums)?,
        output_gradient: laid(&output_gradient)?,
        of_queries: laid(&written[0])?,
        of_keys: laid(&written[1])?,
        of_values: laid(&written[2])?,
        packed: packed.as_ref().map(|it| it.arrays(NAME)).transpose()?,
        window: window_of(NAME, window, causal)?,
        scale,
        deterministic,
    };
    by_type(
        &call,
        &given[0],
        |call| operands.enqueue::<cutlet::f16>(call),
        |call| operands.enqueue::<cutlet::bf16>(call),
    )?;
    Ok(out)
}

/// The array of a gradient, which has its array's type and shape.
fn gradient<'py>(
    call: &mut Call<'py>,
    name: &'static str,
    array: &Bound<'py, PyAny>,
    like: &Array,
) -> Result<Argument> {
    let array = call.write(name, array)?;
    array.expect_type(NAME, like.data_type)?;
    if array.shape() != like.shape() {
        return wrong_value(format!(
            "{NAME}: {name} is {}; give {}",
            tuple(array.shape()),
            tuple(like.shape())
        ));
    }
    Ok(array)
}

/// What a call gets.
struct Operands<'a> {
    queries: Laid<'a>,
    keys: Laid<'a>,
    values: Laid<'a>,
    output: Laid<'a>,
    log_sum_exp: Laid<'a>,
    output_gradient: Laid<'a>,
    of_queries: Laid<'a>,
    of_keys: Laid<'a>,
    of_values: Laid<'a>,
    packed: Option<PackedArrays<'a>>,
    window: Option<[usize; 2]>,
    scale: Option<f32>,
    deterministic: bool,
}

impl Operands<'_> {
    fn enqueue<T: AttentionElement>(&self, call: &Call<'_>) -> Result<()> {
        let context = call.context();
        call.run(false, || {
            let mut attention = Attention::new();
            if let Some([before, after]) = self.window {
                attention = attention.window(before, after);
            }
            if let Some(scale) = self.scale {
                attention = attention.scale(scale);
            }
            if let Some(packed) = &self.packed {
                attention = packed.of(attention, context)?;
            }
            if self.deterministic {
                attention = attention.deterministic();
            }
            attention.backward(
                &context.stream,
                (
                    self.queries.tensor::<T>(context)?,
                    self.keys.tensor::<T>(context)?,
                    self.values.tensor::<T>(context)?,
                ),
                (
                    self.output.tensor::<T>(context)?,
                    self.log_sum_exp.tensor::<f32>(context)?,
                ),
                self.output_gradient.tensor::<T>(context)?,
                (
                    self.of_queries.tensor_mut::<T>(context)?,
                    self.of_keys.tensor_mut::<T>(context)?,
                    self.of_values.tensor_mut::<T>(context)?,
                ),
            )
        })
    }
}
