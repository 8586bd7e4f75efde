//! `swiglu` and `silu_mul`: the gated activation of a feed-forward network.

use cutlet::GatedElement;
use pyo3::prelude::*;

use crate::array::{Array, Shaped, tuple};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::rows::for_sums;

/// `silu(source[..., 0::2]) * source[..., 1::2]`: gates and ups alternate in the last dimension.
///
/// Arguments:
///     source: (..., 2 * n), float32, float16 or bfloat16, of rows at equal distances.
///     out: (..., n).
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps `source`.
#[pyfunction]
#[pyo3(signature = (source, *, out=None, stream=None))]
pub fn swiglu<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "swiglu";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("source", source)?;
    let mut shape = from.shape().to_vec();
    match shape.last_mut() {
        Some(last) if last.is_multiple_of(2) => *last /= 2,
        _ => {
            return wrong_value(format!(
                "{NAME}: source is {}; give a last dimension in which gates and ups alternate",
                tuple(from.shape())
            ));
        }
    }
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(source, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    fits(NAME, &to, &shape, from.data_type)?;
    let rows = [Rows::of(NAME, &from)?, Rows::of(NAME, &to)?];
    for_sums!(NAME, from, enqueue_swiglu(&call, rows))?;
    Ok(out)
}

/// `silu(gates) * ups`.
///
/// Arguments:
///     gates, ups: Arrays of one shape, float32, float16 or bfloat16, of rows at equal distances.
///     out: An array of that shape.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps an operand.
#[pyfunction]
#[pyo3(signature = (gates, ups, *, out=None, stream=None))]
pub fn silu_mul<'py>(
    py: Python<'py>,
    gates: &Bound<'py, PyAny>,
    ups: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "silu_mul";
    let mut call = Call::new(py, NAME, stream);
    let (from_gates, from_ups) = (call.read("gates", gates)?, call.read("ups", ups)?);
    let (shape, data_type) = (from_gates.shape(), from_gates.data_type);
    fits(NAME, &from_ups, shape, data_type)?;
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(gates, shape, None)?,
    };
    let to = call.write("out", &out)?;
    fits(NAME, &to, shape, data_type)?;
    let rows = [
        Rows::of(NAME, &from_gates)?,
        Rows::of(NAME, &from_ups)?,
        Rows::of(NAME, &to)?,
    ];
    for_sums!(NAME, from_gates, enqueue_silu_mul(&call, rows))?;
    Ok(out)
}

/// An array as a matrix whose rows are its last dimension.
#[derive(Clone, Copy)]
struct Rows<'a> {
    array: &'a Array,
    shaped: Shaped,
}

impl<'a> Rows<'a> {
    fn of(operation: &'static str, array: &'a Array) -> Result<Rows<'a>> {
        let shaped = array.rows(operation)?;
        Ok(Rows { array, shaped })
    }
}

fn enqueue_swiglu<T: GatedElement>(call: &Call<'_>, [from, to]: [Rows<'_>; 2]) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let source = from.shaped.of::<T>(from.array, context)?;
        let output = to.shaped.of_mut::<T>(to.array, context)?;
        cutlet::swiglu(&context.stream, source, output)
    })
}

fn enqueue_silu_mul<T: GatedElement>(
    call: &Call<'_>,
    [gates, ups, to]: [Rows<'_>; 3],
) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let gates = gates.shaped.of::<T>(gates.array, context)?;
        let ups = ups.shaped.of::<T>(ups.array, context)?;
        let output = to.shaped.of_mut::<T>(to.array, context)?;
        cutlet::silu_mul(&context.stream, gates, ups, output)
    })
}

/// Returns an error unless an array has this shape and type.
fn fits(operation: &str, array: &Array, shape: &[usize], data_type: DataType) -> Result<()> {
    array.expect_type(operation, data_type)?;
    match array.shape() == shape {
        true => Ok(()),
        false => wrong_value(format!(
            "{operation}: {} is {}; give {}",
            array.name,
            tuple(array.shape()),
            tuple(shape)
        )),
    }
}
