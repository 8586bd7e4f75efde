//! `contract`: contractions of tensors in einsum's notation.

use cutlet::{Contraction, DeviceData, Element, Layout, Operand, Precision};
use pyo3::prelude::*;

use crate::array::Array;
use crate::call::Call;
use crate::error::{Result, wrong_value};
use crate::gemm::{beta_needs_out, made};
use crate::options;
use crate::product::{Number, for_types};

const NAME: &str = "contract";

/// A contraction of two arrays in einsum's notation: `alpha * einsum(notation, a, b) + beta * out`.
///
/// Arguments:
///     notation: A letter for each dimension, as in "bshd,bthd->bhst".
///     a, b: Arrays of any strides that are not negative, of one type.
///     out: An array of the extents that the notation names, of any strides.
///     alpha, beta, precision, dtype, stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError: An argument is no array, or there are no products of its type.
///     ValueError: The notation does not fit the arrays, an extent differs or is 0, or `out` overlaps an operand.
#[pyfunction]
#[pyo3(signature = (notation, a, b, *, out=None, alpha=1.0, beta=None, precision=None, dtype=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn contract<'py>(
    py: Python<'py>,
    notation: &str,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    alpha: f64,
    beta: Option<f64>,
    precision: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, NAME, stream);
    let (from_a, from_b) = (call.read("a", a)?, call.read("b", b)?);
    from_b.expect_type(NAME, from_a.data_type)?;
    let out = match out {
        Some(out) => out.clone(),
        None => {
            beta_needs_out(NAME, beta)?;
            let shape = shape_of_output(notation, &from_a, &from_b)?;
            made(&call, a, &from_a, dtype, &shape)?
        }
    };
    let to_c = call.write("out", &out)?;
    let contraction = Asked {
        notation,
        operands: [&from_a, &from_b, &to_c],
        layouts: [
            from_a.layout(NAME)?,
            from_b.layout(NAME)?,
            to_c.layout(NAME)?,
        ],
        alpha,
        beta: beta.unwrap_or(0.0),
        precision: options::precision(NAME, precision)?,
    };
    let operands = [from_a.data_type, from_b.data_type];
    for_types!(NAME, operands, to_c.data_type, enqueue(&call, &contraction))?;
    Ok(out)
}

/// A contraction of arrays.
struct Asked<'a> {
    notation: &'a str,
    operands: [&'a Array; 3],
    layouts: [Layout; 3],
    alpha: f64,
    beta: f64,
    precision: Precision,
}

fn enqueue<T, D>(call: &Call<'_>, asked: &Asked<'_>) -> Result<()>
where
    T: Element<D> + Operand<Factor: Number>,
    D: DeviceData,
{
    let alpha = T::Factor::of(NAME, "alpha", asked.alpha)?;
    let beta = T::Factor::of(NAME, "beta", asked.beta)?;
    let context = call.context();
    let ([a, b, c], [of_a, of_b, of_c]) = (asked.operands, asked.layouts);
    call.run(false, || {
        let a = a.tensor::<T>(context, of_a)?;
        let b = b.tensor::<T>(context, of_b)?;
        let c = c.tensor_mut::<D>(context, of_c)?;
        Contraction::new(asked.notation, a, b, c)?
            .alpha(alpha)
            .beta(beta)
            .precision(asked.precision)
            .run(&context.stream)
    })
}

/// The extents of the modes that the output has. The library says what is wrong in a notation; here, only the extents
/// are looked up.
///
/// # Errors
/// If the notation does not name an extent of each mode of the output.
fn shape_of_output(notation: &str, a: &Array, b: &Array) -> Result<Vec<usize>> {
    let asks = "write `ab,bc->ac`: a letter for each dimension of a, b and out";
    let parts = notation.split_once("->").and_then(|(inputs, output)| {
        let (a, b) = inputs.split_once(',')?;
        Some([a, b, output].map(letters))
    });
    let Some([of_a, of_b, of_output]) = parts else {
        return wrong_value(format!(
            "{NAME}: `{notation}` is no contraction of two arrays; {asks}"
        ));
    };
    for (array, letters) in [(a, &of_a), (b, &of_b)] {
        if array.rank() != letters.len() {
            return wrong_value(format!(
                "{NAME}: {}, and `{notation}` has {} letters for it; {asks}",
                array.in_words(),
                letters.len()
            ));
        }
    }
    let extent = |letter: &char| {
        let named = of_a.iter().zip(a.shape()).chain(of_b.iter().zip(b.shape()));
        named
            .filter(|(it, _)| *it == letter)
            .map(|(_, extent)| *extent)
            .next()
    };
    let shape: Option<Vec<usize>> = of_output.iter().map(extent).collect();
    match shape {
        Some(shape) => Ok(shape),
        None => wrong_value(format!(
            "{NAME}: the output of `{notation}` has a letter that no operand has; {asks}"
        )),
    }
}

fn letters(text: &str) -> Vec<char> {
    text.chars().filter(|it| !it.is_whitespace()).collect()
}
