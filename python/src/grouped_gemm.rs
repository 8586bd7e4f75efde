//! `grouped_gemm`: products of groups of rows, each with a matrix of its own.

use pyo3::prelude::*;

use crate::array::tuple;
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_value};
use crate::gemm::{beta_needs_out, columns, made};
use crate::options;
use crate::product::{Product, Sizes};

/// Products of groups of rows, each with a matrix of its own, as a mixture of experts has them.
///
/// Arguments:
///     a: (rows, k) with `ends`, or (groups, m, k) with `rows`.
///     b: (groups, k, n).
///     ends: (groups,), int32. Group `g` has the rows of `a` from `ends[g - 1]` to `ends[g]`, and the first group begins
///         at row 0. Ends below 0 count as 0, and ends beyond the rows of `a` as their number.
///     rows: (groups,), int32. The first `rows[g]` rows of `a[g]` are multiplied, and the others are padding. Numbers
///         below 0 count as 0, and numbers beyond m as m.
///     out: (rows, n) or (groups, m, n). Rows that are in no group, and padding, keep their elements. Without `out`, they
///         are not set: read the rows of groups alone, or pass an `out` of zeros. With "swiglu", they hold anything.
///     Others as in `gemm`.
///
/// The numbers of rows stay on the device: nothing waits for them, and on a GPU nothing checks them. Ends must not
/// decrease: a row of two groups gets the product of either of them, or with a `beta` a mixture. The CPU refuses them.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: As `gemm`, and if not one of `ends` and `rows` is given.
#[pyfunction]
#[pyo3(signature = (a, b, *, ends=None, rows=None, out=None, alpha=1.0, beta=None, activation=None, precision=None,
    dtype=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn grouped_gemm<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    ends: Option<&Bound<'py, PyAny>>,
    rows: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    alpha: f64,
    beta: Option<f64>,
    activation: Option<&str>,
    precision: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "grouped_gemm";
    let mut call = Call::new(py, NAME, stream);
    let (from_a, from_b) = (call.read("a", a)?, call.read("b", b)?);
    from_b.expect_rank(NAME, 3)?;
    let (name, sizes, rank) = match (ends, rows) {
        (Some(ends), None) => ("ends", ends, 2),
        (None, Some(rows)) => ("rows", rows, 3),
        _ => {
            return wrong_value(format!(
                "{NAME}: a is {}; give either ends, where the groups of a's rows end, or rows, how many rows of each \
                 matrix of a count",
                tuple(from_a.shape())
            ));
        }
    };
    from_a.expect_rank(NAME, rank)?;
    let from_sizes = call.read(name, sizes)?;
    from_sizes.expect_type(NAME, DataType::I32)?;
    from_sizes.expect_rank(NAME, 1)?;
    from_sizes.expect_contiguous(NAME)?;
    let follows = options::activation(NAME, activation)?;
    let out = match out {
        Some(out) => out.clone(),
        None => {
            beta_needs_out(NAME, beta)?;
            let mut shape = from_a.shape().to_vec();
            shape[rank - 1] = columns(&from_b, follows);
            made(&call, a, &from_a, dtype, &shape)?
        }
    };
    let to_c = call.write("out", &out)?;
    to_c.expect_rank(NAME, rank)?;
    let product = Product {
        a: &from_a,
        b: &from_b,
        c: &to_c,
        alpha,
        beta,
        bias: None,
        residual: None,
        scales: None,
        follows,
        precision: options::precision(NAME, precision)?,
        sizes: match ends {
            Some(_) => Sizes::Ends(&from_sizes),
            None => Sizes::Rows(&from_sizes),
        },
    };
    product.run(&call)?;
    Ok(out)
}
