//! `grouped_gemm`: products of groups of rows, each with a matrix of its own.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_value};
use crate::gemm::{beta_needs_out, columns, made, read_scales};
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
///     scale_a: Scales of 8-bit floats: of blocks, with the last dimension of `a` divided by 128, rounded up; or of rows,
///         (rows,) or (groups, m), also with a last dimension of 1; with `rows`, (groups,); or one of all.
///     scale_b: Of blocks, (groups, k / 128, n / 128); or of columns, (groups, n) or (groups, 1, n); or (groups,); or one
///         of all.
///     Others as in `gemm`.
///
/// The numbers of rows stay on the device: nothing waits for them, and on a GPU nothing checks them. Ends must not
/// decrease: a row of two groups gets the product of either of them, or with a `beta` a mixture. The CPU refuses them.
///
/// With an `a` (m, rows) and a `b` (rows, n), groups are of the rows of `b` alone, and each has a product (m, n) of its
/// own, as gradients of weights have: `out[g] = a[:, ends[g - 1]:ends[g]] @ b[ends[g - 1]:ends[g]]`. Each is launched
/// by itself, so the call waits for `ends`, and no graph has it.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: As `gemm`, and if not one of `ends` and `rows` is given.
///     RuntimeError: A graph is captured, and the call would wait.
#[pyfunction]
#[pyo3(signature = (a, b, *, ends=None, rows=None, out=None, alpha=1.0, beta=None, activation=None, precision=None,
    scale_a=None, scale_b=None, dtype=None, stream=None))]
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
    scale_a: Option<&Bound<'py, PyAny>>,
    scale_b: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "grouped_gemm";
    let mut call = Call::new(py, NAME, stream);
    let (from_a, from_b) = (call.read("a", a)?, call.read("b", b)?);
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
    let is_of_k = ends.is_some() && from_b.rank() == 2;
    if !is_of_k {
        from_b.expect_rank(NAME, 3)?;
    }
    let from_sizes = call.read(name, sizes)?;
    from_sizes.expect_type(NAME, DataType::I32)?;
    from_sizes.expect_rank(NAME, 1)?;
    from_sizes.expect_contiguous(NAME)?;
    let follows = options::activation(NAME, activation)?;
    let scales = read_scales(&mut call, [scale_a, scale_b])?;
    if is_of_k && scales.is_some() {
        return wrong_value(format!(
            "{NAME}: b is {}, of which groups of rows are multiplied, and scale_a and scale_b were given; give b a matrix \
             for each group",
            tuple(from_b.shape())
        ));
    }
    let out = match out {
        Some(out) => out.clone(),
        None => {
            beta_needs_out(NAME, beta)?;
            let mut shape = from_a.shape().to_vec();
            shape[rank - 1] = columns(&from_b, follows);
            if is_of_k {
                shape.insert(0, from_sizes.shape()[0]);
            }
            made(&call, a, &from_a, dtype, &shape)?
        }
    };
    let to_c = call.write("out", &out)?;
    to_c.expect_rank(NAME, if is_of_k { 3 } else { rank })?;
    let product = Product {
        a: &from_a,
        b: &from_b,
        c: &to_c,
        alpha,
        beta,
        bias: None,
        residual: None,
        scales: scales.as_ref().map(|[of_a, of_b]| [&**of_a, &**of_b]),
        follows,
        precision: options::precision(NAME, precision)?,
        sizes: match ends {
            Some(_) if is_of_k => Sizes::None,
            Some(_) => Sizes::Ends(&from_sizes),
            None => Sizes::Rows(&from_sizes),
        },
    };
    match is_of_k {
        true => run_groups_of_k(&call, &product, &from_sizes)?,
        false => product.run(&call)?,
    }
    Ok(out)
}

/// Enqueues a product for each group of A's columns and B's rows. No kernel reads the ends of such groups from memory.
fn run_groups_of_k(call: &Call<'_>, product: &Product<'_>, ends: &Array) -> Result<()> {
    let (groups, len) = (ends.shape()[0], product.b.shape()[0]);
    if product.c.shape()[0] != groups || product.a.shape()[1] != len {
        return wrong_value(format!(
            "{}: a is {}, b is {}, there are {groups} ends, and out is {}; give (m, rows), (rows, n) and (groups, m, n)",
            call.operation,
            tuple(product.a.shape()),
            tuple(product.b.shape()),
            tuple(product.c.shape())
        ));
    }
    let mut start = 0;
    for (group, end) in read_ends(call, ends)?.into_iter().enumerate() {
        // Ends beyond the rows are cut off, as kernels do.
        let end = usize::try_from(end).unwrap_or(0).min(len);
        if end < start {
            return wrong_value(format!(
                "{}: ends[{group}] is {end}, and an earlier group ends at {start}; give ends that do not decrease",
                call.operation
            ));
        }
        let rows = start..end;
        let (a, b) = (product.a.part(1, rows.clone()), product.b.part(0, rows));
        let c = product.c.nth(group);
        let of_group = Product {
            a: &a,
            b: &b,
            c: &c,
            ..*product
        };
        of_group.run(call)?;
        start = end;
    }
    Ok(())
}

/// Waits for the ends of groups.
fn read_ends(call: &Call<'_>, ends: &Array) -> Result<Vec<i32>> {
    let context = call.context();
    if context.stream.is_capturing()? {
        return Err(PyRuntimeError::new_err(format!(
            "{}: a graph is captured, and the call waits for the ends of groups of b's rows; make it before or after",
            call.operation
        ))
        .into());
    }
    call.run(true, || {
        Ok(context.stream.download(ends.memory::<i32>(context)?)?)
    })
}
