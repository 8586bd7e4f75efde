//! `plan_gemm`: a product that is checked and whose kernel is chosen once, before it runs again and again.

use cutlet::{BiasAlong, Precision};
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::call::{Argument, Call};
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::gemm::{Asked, columns};
use crate::options::Follows;
use crate::product::{Factors, Gating, Matrices, Multiplied, Product, Sizes, described, for_types};

const NAME: &str = "plan_gemm";

/// Plans the product of matrices like these: its options are read and its kernel is chosen once. A call of the plan checks
/// its arrays, and launches that kernel.
///
/// Arguments:
///     kernel: The name of the kernel to run, as `Plan.kernel` or `tune` has it. Without it, the one of a tuning, or else
///         the one that is estimated to be the fastest.
///     Others as in `gemm`. No element is read or written.
///
/// Returns:
///     A `Plan`: `plan(a, b, out=c)` is `gemm(a, b, out=c)` with the options that were given here.
///
/// Raises:
///     TypeError, ValueError: As `gemm`, and if there is no kernel of this name for the product.
#[pyfunction]
#[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=None, bias=None, bias_along="columns", residual=None,
    activation=None, precision=None, dtype=None, kernel=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn plan_gemm<'py>(
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
    dtype: Option<&Bound<'py, PyAny>>,
    kernel: Option<&str>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Plan> {
    let mut call = Call::new(py, NAME, stream);
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
        scale_a: None,
        scale_b: None,
        dtype,
    };
    asked.product(&mut call, |call, product, _| {
        Plan::of(call, product, kernel)
    })
}

/// A product whose kernel is chosen. `plan_gemm` makes it.
///
/// It holds no arrays, and runs on all with the shapes, types, strides and alignments of those that it was made for. It
/// keeps its kernel, whatever tuning is installed later.
#[pyclass(frozen, module = "cutlet")]
pub struct Plan {
    chosen: Box<dyn Chosen>,
    /// The types of A and B, and of C.
    types: [DataType; 2],
    /// The device, shapes and types, in words.
    device: String,
    product: String,
    /// What a tuning knows the product by.
    problem: Option<String>,
    alpha: f64,
    beta: Option<f64>,
    bias: Option<BiasAlong>,
    has_residual: bool,
    follows: Follows,
    precision: Precision,
}

/// A plan of the library, of whatever types.
trait Chosen: Send + Sync {
    fn kernel(&self) -> Option<&'static str>;

    fn run(&self, call: &Call<'_>, product: &Product<'_>, matrices: Matrices) -> Result<()>;
}

struct Typed<T: Multiplied<D>, D: Gating> {
    plan: cutlet::Plan<T, D>,
    factors: Factors<T::Factor>,
}

impl<T: Multiplied<D>, D: Gating> Chosen for Typed<T, D> {
    fn kernel(&self) -> Option<&'static str> {
        self.plan.kernel()
    }

    fn run(&self, call: &Call<'_>, product: &Product<'_>, matrices: Matrices) -> Result<()> {
        let context = call.context();
        call.run(false, || {
            let mut gemm = described::<T, D>(product, matrices, self.factors, None, context)?;
            self.plan.run(&context.stream, &mut gemm)
        })
    }
}

/// A plan of these types, and the problem's key.
fn chosen<T: Multiplied<D>, D: Gating>(
    call: &Call<'_>,
    product: &Product<'_>,
    matrices: Matrices,
    kernel: Option<&str>,
) -> Result<(Box<dyn Chosen>, Option<String>)> {
    let factors = Factors::of(call.operation, product)?;
    let context = call.context();
    let (plan, key) = call.run(false, || {
        let stream = &context.stream;
        let mut gemm = described::<T, D>(product, matrices, factors, None, context)?;
        if let Some(kernel) = kernel {
            gemm = gemm.instance(kernel);
        }
        Ok((gemm.plan(stream)?, gemm.problem_key(stream)?))
    })?;
    Ok((
        Box::new(Typed { plan, factors }),
        key.map(|it| it.to_string()),
    ))
}

impl Plan {
    fn of(call: &Call<'_>, product: &Product<'_>, kernel: Option<&str>) -> Result<Plan> {
        let Product { a, b, c, .. } = *product;
        let matrices = product.matrices(NAME)?;
        let (chosen, problem) = for_types!(
            NAME,
            [a.data_type, b.data_type],
            c.data_type,
            chosen(call, product, matrices, kernel)
        )?;
        let (of_a, of_b) = (tuple(a.shape()), tuple(b.shape()));
        let product_in_words = format!(
            "{} {of_a} @ {of_b} into {} {}",
            a.data_type.name(),
            c.data_type.name(),
            tuple(c.shape())
        );
        Ok(Plan {
            chosen,
            types: [a.data_type, c.data_type],
            device: call.context().stream.device().name().to_string(),
            product: product_in_words,
            problem,
            alpha: product.alpha,
            beta: product.beta,
            bias: product.bias.map(|(_, along)| along),
            has_residual: product.residual.is_some(),
            follows: product.follows,
            precision: product.precision,
        })
    }

    /// An array that was passed exactly if the plan has one.
    fn read<'py>(
        call: &mut Call<'py>,
        name: &'static str,
        has_one: bool,
        given: Option<&Bound<'py, PyAny>>,
    ) -> Result<Option<Argument>> {
        match (has_one, given) {
            (true, Some(given)) => Ok(Some(call.read(name, given)?)),
            (false, None) => Ok(None),
            (true, None) => wrong_value(format!("plan: it was made with a {name}; pass one")),
            (false, Some(_)) => wrong_value(format!(
                "plan: it was made without a {name}; make one with it"
            )),
        }
    }

    /// Returns an error unless the elements of an array are those of the plan's.
    fn expect_type(array: &Array, expected: DataType) -> Result<()> {
        match array.data_type == expected {
            true => Ok(()),
            false => wrong_type(format!(
                "plan: {} is {}, and the plan was made for {}",
                array.name,
                array.data_type.name(),
                expected.name()
            )),
        }
    }
}

#[pymethods]
impl Plan {
    /// The product: `plan(a, b, out=c)`.
    ///
    /// Arguments:
    ///     a, b, out, bias, residual: As in `gemm`, of the shapes, types, strides and alignments that the plan was made
    ///         for. Without `out`, the framework of `a` makes one.
    ///     stream: As in `gemm`.
    ///
    /// Returns:
    ///     `out`.
    ///
    /// Raises:
    ///     TypeError, ValueError: An array is not like the one that the plan was made for. Nothing is written.
    #[pyo3(signature = (a, b, *, out=None, bias=None, residual=None, stream=None))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        bias: Option<&Bound<'py, PyAny>>,
        residual: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let mut call = Call::new(py, "plan", stream);
        let (from_a, from_b) = (call.read("a", a)?, call.read("b", b)?);
        from_a.expect_rank("plan", 2)?;
        from_b.expect_rank("plan", 2)?;
        Plan::expect_type(&from_a, self.types[0])?;
        let bias = Plan::read(&mut call, "bias", self.bias.is_some(), bias)?;
        let residual = Plan::read(&mut call, "residual", self.has_residual, residual)?;
        let out = match out {
            Some(out) => out.clone(),
            None => {
                let shape = [from_a.shape()[0], columns(&from_b, self.follows)];
                let [of_a, of_c] = self.types;
                call.empty(a, &shape, Some(of_c).filter(|it| *it != of_a))?
            }
        };
        let to_c = call.write("out", &out)?;
        to_c.expect_rank("plan", 2)?;
        Plan::expect_type(&to_c, self.types[1])?;
        let product = Product {
            a: &from_a,
            b: &from_b,
            c: &to_c,
            alpha: self.alpha,
            beta: self.beta,
            bias: bias.as_deref().zip(self.bias),
            residual: residual.as_deref(),
            scales: None,
            follows: self.follows,
            precision: self.precision,
            sizes: Sizes::None,
        };
        let matrices = product.matrices("plan")?;
        self.chosen.run(&call, &product, matrices)?;
        Ok(out)
    }

    /// The name of the kernel that runs. None for a product without elements.
    #[getter]
    fn kernel(&self) -> Option<&'static str> {
        self.chosen.kernel()
    }

    /// What runs where: the product, its device and its kernel, and the line that a tuning knows the product by.
    fn explain(&self) -> String {
        let kernel = self.kernel().unwrap_or("none, as there are no elements");
        let problem = self.problem.as_deref().unwrap_or("none, it is not tuned");
        format!(
            "product: {}\ndevice:  {}\nkernel:  {kernel}\nproblem: {problem}",
            self.product, self.device
        )
    }

    fn __repr__(&self) -> String {
        let kernel = self.kernel().unwrap_or("no kernel");
        format!("Plan({}, {kernel})", self.product)
    }
}
