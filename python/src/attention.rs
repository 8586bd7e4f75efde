//! `attention`: `softmax(Q·Kᵀ · scale)·V`.

use cutlet::{Attention, AttentionElement, DeviceData, Layout, Tensor, TensorMut, View};
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::call::{Argument, Call};
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::stream::Context;

const NAME: &str = "attention";

/// `softmax(scale * queries @ keys.T) @ values`, for all heads of all sequences.
///
/// Arguments:
///     queries: (sequences, queries, heads, features), float16 or bfloat16, of up to 256 features, a multiple of
///         8. Features are contiguous, and other strides are multiples of 16 bytes.
///     keys, values: (sequences, keys, heads of keys, features). Heads of queries share keys if these have fewer heads.
///     causal: A query sees its own key and those before. The last query belongs to the last key.
///     window: (before, after): a query sees so many keys before and after its own; None stands for all.
///     scale: Above 0; `features ** -0.5` by default.
///     soft_cap: Scores become `soft_cap * tanh(score / soft_cap)`.
///     bias: (sequences, heads, queries, keys), float32, which is added to scores. Keys are contiguous.
///     slopes: (heads,), float32: `slope * |key - own key|` is subtracted (ALiBi).
///     sinks: (heads,), float32: a score more in each sum.
///     packed: (first_queries, first_keys, most_queries): sequences lie behind one another in tensors of one sequence.
///         The first two are int32 of one element more than there are sequences, the first row of each and the end.
///     log_sum_exp: (sequences, queries, heads), float32: the logarithm of each query's sum is written to it.
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
    queries, keys, values, *, causal=false, window=None, scale=None, soft_cap=0.0, bias=None, slopes=None, sinks=None,
    packed=None, log_sum_exp=None, out=None, stream=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn attention<'py>(
    py: Python<'py>,
    queries: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    causal: bool,
    window: Option<(Option<usize>, Option<usize>)>,
    scale: Option<f32>,
    soft_cap: f32,
    bias: Option<&Bound<'py, PyAny>>,
    slopes: Option<&Bound<'py, PyAny>>,
    sinks: Option<&Bound<'py, PyAny>>,
    packed: Option<PyPacked<'py>>,
    log_sum_exp: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, NAME, stream);
    let given = read_heads(&mut call, queries, keys, values)?;
    let [q, k, v] = &given;
    let mut read = |name, array, data_type| read_some(&mut call, name, array, data_type);
    let bias = read("bias", bias, DataType::F32)?;
    let slopes = read("slopes", slopes, DataType::F32)?;
    let sinks = read("sinks", sinks, DataType::F32)?;
    let packed = Packed::read(&mut call, packed.as_ref())?;
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
        bias: bias.as_deref().map(laid).transpose()?,
        log_sum_exp: log_sum_exp.as_deref().map(laid).transpose()?,
        slopes: numbers(NAME, slopes.as_deref())?,
        sinks: numbers(NAME, sinks.as_deref())?,
        packed: packed.as_ref().map(|it| it.arrays(NAME)).transpose()?,
        window: window_of(NAME, window, causal)?,
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

/// Reads queries, keys and values, which have one type.
pub fn read_heads<'py>(
    call: &mut Call<'py>,
    queries: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
) -> Result<[Argument; 3]> {
    let given = [
        call.read("queries", queries)?,
        call.read("keys", keys)?,
        call.read("values", values)?,
    ];
    for array in &given {
        array.expect_type(call.operation, given[0].data_type)?;
        array.expect_rank(call.operation, 4)?;
    }
    Ok(given)
}

/// Reads an array that may not be given.
pub fn read_some<'py>(
    call: &mut Call<'py>,
    name: &'static str,
    array: Option<&Bound<'py, PyAny>>,
    data_type: DataType,
) -> Result<Option<Argument>> {
    let Some(array) = array else { return Ok(None) };
    let array = call.read(name, array)?;
    array.expect_type(call.operation, data_type)?;
    Ok(Some(array))
}

/// The output, which is made if it is not given, as the queries.
pub fn output<'py>(
    call: &mut Call<'py>,
    (queries, q): (&Bound<'py, PyAny>, &Array),
    out: Option<&Bound<'py, PyAny>>,
) -> Result<(Bound<'py, PyAny>, Argument)> {
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(queries, q.shape(), None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(call.operation, q.data_type)?;
    if to.shape() != q.shape() {
        return wrong_value(format!(
            "{}: out is {}; give {}",
            call.operation,
            tuple(to.shape()),
            tuple(q.shape())
        ));
    }
    Ok((out, to))
}

/// The array for the logarithms of sums, if it is given.
pub fn write_log_sum_exp<'py>(
    call: &mut Call<'py>,
    array: Option<&Bound<'py, PyAny>>,
) -> Result<Option<Argument>> {
    let Some(array) = array else { return Ok(None) };
    let array = call.write("log_sum_exp", array)?;
    array.expect_type(call.operation, DataType::F32)?;
    Ok(Some(array))
}

/// Enqueues a call for the type of the queries.
pub fn by_type<'py>(
    call: &Call<'py>,
    queries: &Array,
    of_f16: impl FnOnce(&Call<'py>) -> Result<()>,
    of_bf16: impl FnOnce(&Call<'py>) -> Result<()>,
) -> Result<()> {
    match queries.data_type {
        DataType::F16 => of_f16(call),
        DataType::Bf16 => of_bf16(call),
        other => wrong_type(format!(
            "{}: queries is {}; give float16 or bfloat16",
            call.operation,
            other.name()
        )),
    }
}

/// The window that is given, or that of `causal`.
pub fn window_of(
    operation: &str,
    window: Option<(Option<usize>, Option<usize>)>,
    causal: bool,
) -> Result<Option<[usize; 2]>> {
    match (window, causal) {
        (Some(_), true) => wrong_value(format!(
            "{operation}: causal and window are given; give one"
        )),
        (None, true) => Ok(Some([usize::MAX, 0])),
        (None, false) => Ok(None),
        (Some(window), false) => Ok(Some(keys_of(window))),
    }
}

/// Packed sequences, as Python has them.
pub type PyPacked<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, usize);

/// Packed sequences: the first row of each in the queries and in the keys, and the most queries that one has.
pub struct Packed {
    queries: Argument,
    keys: Argument,
    most_queries: usize,
}

impl Packed {
    /// Reads them, if they are given.
    pub fn read<'py>(call: &mut Call<'py>, packed: Option<&PyPacked<'py>>) -> Result<Option<Self>> {
        let Some((queries, keys, most_queries)) = packed else {
            return Ok(None);
        };
        Ok(Some(Packed {
            queries: call.read("packed[0]", queries)?,
            keys: call.read("packed[1]", keys)?,
            most_queries: *most_queries,
        }))
    }

    /// The arrays, which are contiguous and int32.
    pub fn arrays(&self, operation: &str) -> Result<PackedArrays<'_>> {
        for array in [&self.queries, &self.keys] {
            array.expect_type(operation, DataType::I32)?;
            numbers(operation, Some(array))?;
        }
        Ok(PackedArrays {
            queries: &self.queries,
            keys: &self.keys,
            most_queries: self.most_queries,
        })
    }
}

/// The arrays of packed sequences.
pub struct PackedArrays<'a> {
    queries: &'a Array,
    keys: &'a Array,
    most_queries: usize,
}

impl<'a> PackedArrays<'a> {
    /// The attention of these sequences.
    pub fn of(
        &self,
        attention: Attention<'a>,
        context: &'static Context,
    ) -> cutlet::Result<Attention<'a>> {
        let (queries, keys) = (view(self.queries, context)?, view(self.keys, context)?);
        Ok(attention.packed(queries, keys, self.most_queries))
    }
}

/// A window's keys before and after a query's own: None stands for all.
pub fn keys_of((before, after): (Option<usize>, Option<usize>)) -> [usize; 2] {
    [before, after].map(|keys| keys.unwrap_or(usize::MAX))
}

/// An array and its layout.
pub struct Laid<'a> {
    array: &'a Array,
    layout: Layout,
}

impl<'a> Laid<'a> {
    /// The tensor, for reading.
    pub fn tensor<T: DeviceData>(
        &self,
        context: &'static Context,
    ) -> cutlet::Result<Tensor<'a, T>> {
        self.array.tensor(context, self.layout)
    }

    /// The tensor, for writing.
    pub fn tensor_mut<T: DeviceData>(
        &self,
        context: &'static Context,
    ) -> cutlet::Result<TensorMut<'a, T>> {
        self.array.tensor_mut(context, self.layout)
    }

    /// # Errors
    /// If the array has no elements.
    pub fn of(operation: &str, array: &'a Array) -> Result<Self> {
        let layout = array.layout(operation)?;
        Ok(Laid { array, layout })
    }
}

/// An array of numbers that lie behind one another.
pub fn numbers<'a>(operation: &str, array: Option<&'a Array>) -> Result<Option<&'a Array>> {
    if let Some(array) = array {
        array.expect_rank(operation, 1)?;
        array.expect_contiguous(operation)?;
    }
    Ok(array)
}

pub fn view<'a, T: DeviceData>(
    array: &'a Array,
    context: &'static Context,
) -> cutlet::Result<View<'a, T>> {
    array.memory(context)
}

/// What a call gets.
struct Operands<'a> {
    queries: Laid<'a>,
    keys: Laid<'a>,
    values: Laid<'a>,
    output: Laid<'a>,
    bias: Option<Laid<'a>>,
    log_sum_exp: Option<Laid<'a>>,
    slopes: Option<&'a Array>,
    sinks: Option<&'a Array>,
    packed: Option<PackedArrays<'a>>,
    window: Option<[usize; 2]>,
    scale: Option<f32>,
    soft_cap: f32,
}

impl Operands<'_> {
    fn enqueue<T: AttentionElement>(&self, call: &Call<'_>) -> Result<()> {
        let context = call.context();
        call.run(false, || {
            let mut attention = Attention::new().soft_cap(self.soft_cap);
            if let Some([before, after]) = self.window {
                attention = attention.window(before, after);
            }
            if let Some(scale) = self.scale {
                attention = attention.scale(scale);
            }
            if let Some(bias) = &self.bias {
                attention = attention.bias(bias.tensor::<f32>(context)?);
            }
            if let Some(slopes) = self.slopes {
                attention = attention.slopes(view(slopes, context)?);
            }
            if let Some(sinks) = self.sinks {
                attention = attention.sinks(view(sinks, context)?);
            }
            if let Some(packed) = &self.packed {
                attention = packed.of(attention, context)?;
            }
            if let Some(to) = &self.log_sum_exp {
                attention = attention.log_sum_exp(to.tensor_mut::<f32>(context)?);
            }
            let output = self.output.tensor_mut::<T>(context)?;
            let queries = self.queries.tensor::<T>(context)?;
            let keys = self.keys.tensor::<T>(context)?;
            let values = self.values.tensor::<T>(context)?;
            attention.run(&context.stream, queries, keys, values, output)
        })
    }
}
