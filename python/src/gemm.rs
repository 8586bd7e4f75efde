//! `gemm` and `gemm_batched`.

use cutlet::BiasAlong;
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::call::{Argument, Call};
use crate::error::{Result, wrong_value};
use crate::options::{self, Follows};
use crate::product::{Product, Sizes, type_of_product};

/// The product of two matrices: `activation(alpha * a @ b + beta * out + bias)`, or with a residual in the place of `out`.
///
/// Arguments:
///     a: (m, k), and b: (k, n), of one type, or each of a format of 8-bit floats. Each has one stride of 1, and another one of any length.
///     out: (m, n). Without it, the framework of `a` makes one of the type `dtype`, or else of `a`'s; of int8, int32.
///     alpha, beta: Factors. With a `beta`, so many times `out` as it was is added, or the residual.
///     bias: (n,), or (m,) with `bias_along="rows"`, of `out`'s type.
///     residual: (m, n), of `out`'s type. It is added once, or `beta` times.
///     activation: "relu", "gelu" with the hyperbolic tangent, "gelu_erf" without an approximation, "silu", or "swiglu":
///         columns of b are gates and ups by turns, and out is (m, n / 2).
///     precision: "exact", "tf32" or "3xtf32", for float32; "exact" or "fast-accumulation", for 8-bit floats.
///     scale_a, scale_b: Scales of blocks of 8-bit floats, of float32: (m, k / 128) for 1×128 elements of a, and
///         (k / 128, n / 128) for 128×128 elements of b, rounded up. A scale_a whose columns are contiguous, and such a
///         scale_b, are not copied. Or scales of 8-bit floats and of int8 into a float, of float32: m or 1 for rows of
///         a, and n or 1 for columns of b, as (m,) and (n,) or (m, 1) and (1, n).
///     stream: A stream of PyTorch or CuPy or a handle. Without it, the current stream of `a`'s framework.
///
/// Types are float32, bfloat16 and float16 into one another, float64 into float64, and int8 into int32, float32, bfloat16
/// and float16. float8_e4m3fn and float8_e5m2 are multiplied into float32, bfloat16 and float16; without `dtype`, into
/// bfloat16. a and b may be of different 8-bit formats, and out is then row-major.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError: An argument is no array, or there are no products of its type.
///     ValueError: Shapes or strides do not fit, arrays are on different devices, or `out` overlaps an operand or is
///         read-only. Nothing is written.
#[pyfunction]
#[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=None, bias=None, bias_along="columns", residual=None,
    activation=None, precision=None, scale_a=None, scale_b=None, dtype=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn gemm<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    alpha: f64,
    beta: Option<f64>,
    bias: Option<&Bound<'py, PyAny>>,
    bias_along: &str,
    residual: Option<&Bound<'py, PyAny>>,
    activation: Option<&str>,
    precision: Option<&str>,
    scale_a: Option<&Bound<'py, PyAny>>,
    scale_b: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, "gemm", stream);
    let asked = Asked {
        a,
        b,
        out,
        alpha,
        beta,
        bias,
        bias_along,
        residual,
        activation,
        precision,
        scale_a,
        scale_b,
        dtype,
    };
    asked.product(&mut call, |call, product, out| {
        product.run(call)?;
        Ok(out.clone())
    })
}

/// What a product of two matrices is asked for with.
pub struct Asked<'a, 'py> {
    pub a: &'a Bound<'py, PyAny>,
    pub b: &'a Bound<'py, PyAny>,
    pub out: Option<&'a Bound<'py, PyAny>>,
    pub alpha: f64,
    pub beta: Option<f64>,
    pub bias: Option<&'a Bound<'py, PyAny>>,
    pub bias_along: &'a str,
    pub residual: Option<&'a Bound<'py, PyAny>>,
    pub activation: Option<&'a str>,
    pub precision: Option<&'a str>,
    pub scale_a: Option<&'a Bound<'py, PyAny>>,
    pub scale_b: Option<&'a Bound<'py, PyAny>>,
    pub dtype: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Asked<'_, 'py> {
    /// Reads the arrays, makes an output if none was passed, and does something with the product and the output.
    ///
    /// # Errors
    /// If an argument is none that a product has, and those of the work.
    pub fn product<R>(
        &self,
        call: &mut Call<'py>,
        work: impl FnOnce(&Call<'py>, &Product<'_>, &Bound<'py, PyAny>) -> Result<R>,
    ) -> Result<R> {
        let name = call.operation;
        let (from_a, from_b) = (call.read("a", self.a)?, call.read("b", self.b)?);
        from_a.expect_rank(name, 2)?;
        from_b.expect_rank(name, 2)?;
        let follows = options::activation(name, self.activation)?;
        let residual = match self.residual {
            Some(residual) => Some(call.read("residual", residual)?),
            None => None,
        };
        let bias = read_bias(call, self.bias, self.bias_along)?;
        let scales = read_scales(call, [self.scale_a, self.scale_b])?;
        let out = match self.out {
            Some(out) => out.clone(),
            None => {
                beta_needs_out(name, self.beta.filter(|_| residual.is_none()))?;
                let shape = [from_a.shape()[0], columns(&from_b, follows)];
                made(call, self.a, &from_a, self.dtype, &shape)?
            }
        };
        let to_c = call.write("out", &out)?;
        to_c.expect_rank(name, 2)?;
        let product = Product {
            a: &from_a,
            b: &from_b,
            c: &to_c,
            alpha: self.alpha,
            beta: self.beta,
            bias: bias.as_ref().map(|(bias, along)| (&**bias, *along)),
            residual: residual.as_deref(),
            scales: scales.as_ref().map(|[of_a, of_b]| [&**of_a, &**of_b]),
            follows,
            precision: options::precision(name, self.precision)?,
            sizes: Sizes::None,
        };
        work(call, &product, &out)
    }
}

/// Products of matrices of a batch: `activation(alpha * a[i] @ b[i] + beta * out[i] + bias)`.
///
/// Arguments:
///     a: (count, m, k), and b: (count, k, n), of one type. One of them may be a matrix, which is multiplied with each
///         of the others.
///     out: (count, m, n), of any strides of which one of the last two is 1.
///     scale_a, scale_b: Those of each matrix. Of blocks, they are (count, m, k / 128) and (count, k / 128, n / 128). Of
///         rows and columns, they are (count, m, 1) and (count, 1, n), or (count, m) and (count, n). One scale for each
///         matrix is (count,), or one number for all.
///     Others as in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: As `gemm`.
#[pyfunction]
#[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=None, bias=None, bias_along="columns", activation=None,
    precision=None, scale_a=None, scale_b=None, dtype=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn gemm_batched<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    alpha: f64,
    beta: Option<f64>,
    bias: Option<&Bound<'py, PyAny>>,
    bias_along: &str,
    activation: Option<&str>,
    precision: Option<&str>,
    scale_a: Option<&Bound<'py, PyAny>>,
    scale_b: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, "gemm_batched", stream);
    let (from_a, from_b) = (call.read("a", a)?, call.read("b", b)?);
    let count = batch(&from_a, &from_b)?;
    let follows = options::activation("gemm_batched", activation)?;
    let bias = read_bias(&mut call, bias, bias_along)?;
    let scales = read_scales(&mut call, [scale_a, scale_b])?;
    let out = match out {
        Some(out) => out.clone(),
        None => {
            beta_needs_out("gemm_batched", beta)?;
            let rows = from_a.shape()[from_a.rank() - 2];
            let shape = [count, rows, columns(&from_b, follows)];
            made(&call, a, &from_a, dtype, &shape)?
        }
    };
    let to_c = call.write("out", &out)?;
    to_c.expect_rank("gemm_batched", 3)?;
    let product = Product {
        a: &from_a,
        b: &from_b,
        c: &to_c,
        alpha,
        beta,
        bias: bias.as_ref().map(|(bias, along)| (&**bias, *along)),
        residual: None,
        scales: scales.as_ref().map(|[of_a, of_b]| [&**of_a, &**of_b]),
        follows,
        precision: options::precision("gemm_batched", precision)?,
        sizes: Sizes::None,
    };
    product.run(&call)?;
    Ok(out)
}

/// The columns of C.
pub fn columns(b: &Array, follows: Follows) -> usize {
    let columns = b.shape()[b.rank() - 1];
    match follows {
        Follows::SwiGlu => columns / 2,
        Follows::Nothing | Follows::Activation(_) => columns,
    }
}

/// Without an output, there is nothing that beta multiplies.
pub fn beta_needs_out(operation: &str, beta: Option<f64>) -> Result<()> {
    match beta {
        Some(beta) if beta != 0.0 => wrong_value(format!(
            "{operation}: beta is {beta}, and there is no out that it multiplies; pass out"
        )),
        _ => Ok(()),
    }
}

/// An output that the framework of `a` makes, of the type `dtype` or of that of products of `a`.
pub fn made<'py>(
    call: &Call<'py>,
    a: &Bound<'py, PyAny>,
    from_a: &Array,
    dtype: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
) -> Result<Bound<'py, PyAny>> {
    let data_type = match dtype {
        Some(asked) => options::data_type(call.operation, asked)?,
        None => type_of_product(from_a.data_type),
    };
    call.empty(
        a,
        shape,
        Some(data_type).filter(|it| *it != from_a.data_type),
    )
}

/// Reads the arguments `bias` and `bias_along`.
fn read_bias<'py>(
    call: &mut Call<'py>,
    bias: Option<&Bound<'py, PyAny>>,
    bias_along: &str,
) -> Result<Option<(Argument, BiasAlong)>> {
    match bias {
        Some(bias) => Ok(Some((call.read("bias", bias)?, along(bias_along)?))),
        None => Ok(None),
    }
}

/// Reads the arguments `scale_a` and `scale_b`.
pub fn read_scales<'py>(
    call: &mut Call<'py>,
    scales: [Option<&Bound<'py, PyAny>>; 2],
) -> Result<Option<[Argument; 2]>> {
    match scales {
        [None, None] => Ok(None),
        [Some(of_a), Some(of_b)] => Ok(Some([
            call.read("scale_a", of_a)?,
            call.read("scale_b", of_b)?,
        ])),
        _ => wrong_value(format!(
            "{}: one of scale_a and scale_b was given; give both",
            call.operation
        )),
    }
}

/// Reads the argument `bias_along`.
fn along(word: &str) -> Result<BiasAlong> {
    match word {
        "columns" => Ok(BiasAlong::Columns),
        "rows" => Ok(BiasAlong::Rows),
        other => wrong_value(format!(
            "gemm: bias_along is \"{other}\"; give columns, for an element for each column, or rows"
        )),
    }
}

/// How many products a batch has. A matrix is multiplied with each matrix of the other operand.
fn batch(a: &Array, b: &Array) -> Result<usize> {
    match (a.rank(), b.rank(), a.shape(), b.shape()) {
        (3, 3, [of_a, ..], [of_b, ..]) if of_a == of_b => Ok(*of_a),
        (3, 2, [count, ..], _) | (2, 3, _, [count, ..]) => Ok(*count),
        _ => wrong_value(format!(
            "gemm_batched: a is {} and b is {}; give batches (count, rows, columns) of the same length, or a matrix and \
             a batch",
            tuple(a.shape()),
            tuple(b.shape())
        )),
    }
}
