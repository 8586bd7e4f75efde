//! `attention_decode`: attention of few queries a sequence to a cache of keys and values.

use cutlet::{AttentionDecode, AttentionElement};
use pyo3::prelude::*;

use crate::array::Array;
use crate::attention::{
    Laid, by_type, keys_of, numbers, output, read_heads, read_some, view, write_log_sum_exp,
};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::Result;

const NAME: &str = "attention_decode";

/// `softmax(scale * queries @ keys.T) @ values` of few queries a sequence, which belong to the last keys of a long cache:
/// a step of decoding.
///
/// A query sees its own key and those before, unless there is a window. What lies behind a sequence's last key is not
/// read.
///
/// Arguments:
///     queries: (sequences, queries, heads, features), float16 or bfloat16, of up to 256 features, a multiple of 8.
///     keys, values: (sequences, keys, heads of keys, features), or with a table (pages, keys of a page, heads of keys,
///         features). They have one shape and the same strides. Heads of queries share keys if these have fewer heads.
///     lengths: (sequences,), int32: the keys of each sequence; all of the tensor by default.
///     table: (sequences, pages of a sequence), int32: key t of sequence b is in page `table[b, t // keys_of_a_page]`.
///     longest: No sequence has more keys. The work is split by it.
///     splits: So many parts of the keys, for results that do not depend on the batch.
///     window: (before, after): a query sees so many keys before and after its own; None stands for all.
///     scale: Above 0; `features ** -0.5` by default.
///     soft_cap: Scores become `soft_cap * tanh(score / soft_cap)`.
///     sinks: (heads,), float32: a score more in each sum.
///     log_sum_exp: (sequences, queries, heads), float32: the logarithm of each query's sum is written to it. With it,
///         outputs for parts of a cache can be joined.
///     out: As `queries`.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types, shapes, strides or numbers do not fit, or `out` overlaps another array.
///     RuntimeError: The GPU has a compute capability below 8.0.
#[pyfunction]
#[pyo3(signature = (
    queries, keys, values, *, lengths=None, table=None, longest=None, splits=None, window=None, scale=None, soft_cap=0.0,
    sinks=None, log_sum_exp=None, out=None, stream=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn attention_decode<'py>(
    py: Python<'py>,
    queries: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    lengths: Option<&Bound<'py, PyAny>>,
    table: Option<&Bound<'py, PyAny>>,
    longest: Option<usize>,
    splits: Option<usize>,
    window: Option<(Option<usize>, Option<usize>)>,
    scale: Option<f32>,
    soft_cap: f32,
    sinks: Option<&Bound<'py, PyAny>>,
    log_sum_exp: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, NAME, stream);
    let given = read_heads(&mut call, queries, keys, values)?;
    let [q, k, v] = &given;
    let lengths = read_some(&mut call, "lengths", lengths, DataType::I32)?;
    let table = read_some(&mut call, "table", table, DataType::I32)?;
    let sinks = read_some(&mut call, "sinks", sinks, DataType::F32)?;
    let (out, to) = output(&mut call, (queries, q), out)?;
    let log_sum_exp = write_log_sum_exp(&mut call, log_sum_exp)?;
    if q.shape().contains(&0) {
        return Ok(out);
    }
    let laid = |array| Laid::of(NAME, array);
    let operands = Operands {
        queries: laid(q)?,
        keys: laid(k)?,
        values: laid(v)?,
        output: laid(&to)?,
        table: table.as_deref().map(laid).transpose()?,
        lengths: numbers(NAME, lengths.as_deref())?,
        sinks: numbers(NAME, sinks.as_deref())?,
        log_sum_exp: log_sum_exp.as_deref().map(laid).transpose()?,
        longest,
        splits,
        window: window.map(keys_of),
        scale,
        soft_cap,
    };
    by_type(
        &call,
        q,
        |call| operands.enqueue::<cutlet::f16>(call),
        |call| operands.enqueue::<cutlet::bf16>(call),
    )?;
    Ok(out)
}

/// What a call gets.
struct Operands<'a> {
    queries: Laid<'a>,
    keys: Laid<'a>,
    values: Laid<'a>,
    output: Laid<'a>,
    table: Option<Laid<'a>>,
    lengths: Option<&'a Array>,
    sinks: Option<&'a Array>,
    log_sum_exp: Option<Laid<'a>>,
    longest: Option<usize>,
    splits: Option<usize>,
    window: Option<[usize; 2]>,
    scale: Option<f32>,
    soft_cap: f32,
}

impl Operands<'_> {
    fn enqueue<T: AttentionElement>(&self, call: &Call<'_>) -> Result<()> {
        let context = call.context();
        call.run(false, || {
            let mut attention = AttentionDecode::new().soft_cap(self.soft_cap);
            if let Some([before, after]) = self.window {
                attention = attention.window(before, after);
            }
            if let Some(scale) = self.scale {
                attention = attention.scale(scale);
            }
            if let Some(sinks) = self.sinks {
                attention = attention.sinks(view(sinks, context)?);
            }
            if let Some(to) = &self.log_sum_exp {
                attention = attention.log_sum_exp(to.tensor_mut::<f32>(context)?);
            }
            if let Some(lengths) = self.lengths {
                attention = attention.lengths(view(lengths, context)?);
            }
            if let Some(table) = &self.table {
                attention = attention.paged(table.tensor::<i32>(context)?);
            }
            if let Some(longest) = self.longest {
                attention = attention.longest(longest);
            }
            if let Some(splits) = self.splits {
                attention = attention.splits(splits);
            }
            let (queries, keys) = (
                self.queries.tensor::<T>(context)?,
                self.keys.tensor(context)?,
            );
            let (values, output) = (
                self.values.tensor(context)?,
                self.output.tensor_mut(context)?,
            );
            attention.run(&context.stream, queries, keys, values, output)
        })
    }
}
