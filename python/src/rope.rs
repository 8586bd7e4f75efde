//! `rope`: rotary position embeddings.

use cutlet::{Pairing, Rope, RopeElement};
use pyo3::prelude::*;

use crate::array::Array;
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::rowops::{Placed, are_same, read, written};
use crate::rows::for_sums;

const NAME: &str = "rope";

/// Rotary position embeddings of the last dimension: pairs of its elements are rotated by the angles of a position.
///
/// Arguments:
///     x: (..., n), float32, float16 or bfloat16, of contiguous rows, such as (tokens, heads, n).
///     positions: int32, of the dimensions of `x` before the last, of any strides: `numpy.broadcast_to` repeats one.
///         A position that is no row of `cosines` makes its row NaN.
///     cosines, sines: (p, n / 2), float32, packed: those of the angles of each position.
///     pairing: "halves", elements i and i + n / 2, as in Llama, or "neighbours", elements 2i and 2i + 1, as in GPT-J.
///     backwards: Whether the rotation is the other way, which is the gradient.
///     out: An array of the shape of `x`, or `x` itself.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps another operand.
#[pyfunction]
#[pyo3(signature = (x, positions, cosines, sines, *, pairing="halves", backwards=false, out=None, stream=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub fn rope<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    positions: &Bound<'py, PyAny>,
    cosines: &Bound<'py, PyAny>,
    sines: &Bound<'py, PyAny>,
    pairing: &str,
    backwards: bool,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let pairing = match pairing {
        "halves" => Pairing::Halves,
        "neighbours" => Pairing::Neighbours,
        other => {
            return wrong_value(format!(
                "{NAME}: pairing is \"{other}\"; give halves or neighbours"
            ));
        }
    };
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("x", x)?;
    let positions = call.read("positions", positions)?;
    let (cosines, sines) = (call.read("cosines", cosines)?, call.read("sines", sines)?);
    positions.expect_type(NAME, DataType::I32)?;
    cosines.expect_type(NAME, DataType::F32)?;
    sines.expect_type(NAME, DataType::F32)?;
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(x, from.shape(), None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    if from.shape().contains(&0) {
        return Ok(out);
    }
    let place = |array: &'_ Array| array.layout(NAME);
    let rotation = Rotation {
        x: (&from, place(&from)?),
        y: (&to, place(&to)?),
        positions: (&positions, place(&positions)?),
        angles: [(&cosines, place(&cosines)?), (&sines, place(&sines)?)],
        pairing,
        backwards,
    };
    for_sums!(NAME, from, enqueue(&call, rotation))?;
    Ok(out)
}

/// What is rotated, and how.
#[derive(Clone, Copy)]
struct Rotation<'a> {
    x: Placed<'a>,
    y: Placed<'a>,
    positions: Placed<'a>,
    /// Cosines and sines.
    angles: [Placed<'a>; 2],
    pairing: Pairing,
    backwards: bool,
}

fn enqueue<T: RopeElement>(call: &Call<'_>, rotation: Rotation<'_>) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let [cosines, sines] = rotation.angles;
        let rope = Rope::of_angles(read(cosines, context)?, read(sines, context)?)?;
        let rope = rope.pairing(rotation.pairing);
        let rope = if rotation.backwards {
            rope.backwards()
        } else {
            rope
        };
        let positions = read(rotation.positions, context)?;
        let y = written::<T>(rotation.y, context)?;
        match are_same(rotation.x, rotation.y) {
            true => rope.run_in_place(&context.stream, positions, y),
            false => rope.run(&context.stream, positions, read(rotation.x, context)?, y),
        }
    })
}
