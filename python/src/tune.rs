//! `tune`: measures all kernels that multiply matrices like the caller's, and keeps the fastest in a tuning.

mod operands;

use std::path::PathBuf;

use cutlet::{Activation, Error, Gemm, Precision, ProblemKey, Tuning, TuningEntry};
use cutlet_host::{Autotuner, Candidates};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::gemm::Asked;
use crate::options::Follows;
use crate::product::{Factors, Gating, Matrices, Multiplied, Product, described, for_types};
use crate::stream::{Context, Place};
use operands::{Operands, Random, Template};

const NAME: &str = "tune";

/// Measures all kernels that multiply matrices like these on their GPU, and has products like this one run the fastest.
///
/// Arguments:
///     path: A tuning file to add the kernel to, which is made if there is none. `install_tuning` and `CUTLET_TUNING`
///         take it.
///     install: Whether products of this process run the kernel from now on.
///     Others as in `gemm`. No element is read or written: kernels are measured on other matrices of the same shapes,
///         strides and alignments, with random numbers.
///
/// It takes seconds, and about 600 MB of the GPU's memory beyond that of the matrices. Nothing else should run on the
/// GPU. A kernel counts as faster than the one that is estimated to be the fastest if it is so in each of several
/// rounds, and by more than 1 % in the median. Otherwise there is no entry for the product.
///
/// Returns:
///     A `Tuned`, which prints as a table of the kernels.
///
/// Raises:
///     RuntimeError: The matrices are not on a GPU, or the file is damaged, or of another GPU or version.
///     TypeError, ValueError: As `gemm`, and if the product is none that is tuned: gated, or without elements.
#[pyfunction]
#[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=None, bias=None, bias_along="columns", residual=None,
    activation=None, precision=None, dtype=None, path=None, install=true))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn tune<'py>(
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
    path: Option<PathBuf>,
    install: bool,
) -> Result<Tuned> {
    let mut call = Call::new(py, NAME, None);
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
        let context = call.context();
        if context.place == Place::Cpu {
            return Err(PyRuntimeError::new_err(format!(
                "{NAME}: a is on the CPU, whose times say nothing about a GPU; pass arrays on the GPU that is tuned"
            ))
            .into());
        }
        let tuning = opened(context, path.as_ref())?;
        let tuned = measured(call, product)?;
        tuned.keep(context, tuning, path, install)?;
        Ok(tuned)
    })
}

/// The tuning in a file, or an empty one if there is none.
fn opened(context: &Context, path: Option<&PathBuf>) -> Result<Tuning> {
    let device = context.stream.device();
    let Some(path) = path.filter(|path| path.exists()) else {
        return Ok(Tuning::new(device));
    };
    let there = Tuning::load(path)?;
    match there.merge_refusal(device) {
        None => Ok(there),
        Some(refusal) => Err(PyRuntimeError::new_err(format!(
            "{NAME}: {} cannot be added to: {refusal}; give another path, or remove this file",
            path.display()
        ))
        .into()),
    }
}

/// What `tune` found out about a product. It prints as a table of the kernels, the fastest first.
#[pyclass(frozen, module = "cutlet")]
pub struct Tuned {
    problem: ProblemKey,
    /// The name of the kernel to run.
    #[pyo3(get)]
    kernel: String,
    /// The name of the kernel that is estimated to be the fastest, and runs without a tuning.
    #[pyo3(get)]
    estimated: String,
    /// The median time of a product by `kernel`.
    #[pyo3(get)]
    microseconds: f64,
    /// The time of `estimated` over that of `kernel`, the median of several rounds. 1 if they are the same kernel.
    #[pyo3(get)]
    gain: f64,
    table: String,
}

#[pymethods]
impl Tuned {
    /// The line that a tuning knows the product by.
    #[getter]
    fn problem(&self) -> String {
        self.problem.to_string()
    }

    fn __str__(&self) -> &str {
        &self.table
    }

    fn __repr__(&self) -> String {
        format!(
            "Tuned({}, {:.2} µs, {:.3} times as fast as {})",
            self.kernel, self.microseconds, self.gain, self.estimated
        )
    }
}

impl Tuned {
    /// Enters the kernel into a tuning where it is a gain, writes the file, and installs the entry.
    fn keep(
        &self,
        context: &Context,
        mut tuning: Tuning,
        path: Option<PathBuf>,
        install: bool,
    ) -> Result<()> {
        let is_gain = self.kernel != self.estimated;
        let entry = || TuningEntry {
            problem: self.problem,
            kernel: self.kernel.clone(),
            microseconds: (self.microseconds * 1e3).round() / 1e3,
        };
        match is_gain {
            true => tuning.insert(entry()),
            false => tuning.remove(&self.problem),
        }
        if let Some(path) = path {
            tuning.save(path)?;
        }
        if install {
            // Also without a gain: an entry of an earlier tuning counts no more.
            let mut alone = Tuning::new(context.stream.device());
            alone.insert(entry());
            alone.install();
        }
        Ok(())
    }
}

/// Measures the kernels of a product.
fn measured(call: &Call<'_>, product: &Product<'_>) -> Result<Tuned> {
    let matrices = product.matrices(NAME)?;
    if product.follows == Follows::SwiGlu || product.a.shape()[1] == 0 {
        return not_tuned();
    }
    let of_a = product.a.data_type;
    if product.b.data_type != of_a {
        return wrong_type(format!(
            "{NAME}: a is {} and b is {}; products of two formats are not tuned",
            of_a.name(),
            product.b.data_type.name()
        ));
    }
    for_types!(of one:
        NAME,
        of_a,
        product.c.data_type,
        measure(call, product, matrices)
    )
}

fn not_tuned<T>() -> Result<T> {
    wrong_value(format!(
        "{NAME}: the product is gated or has no elements, and such products are not tuned; give others"
    ))
}

/// The candidates of a product: the kernel that is estimated to be the fastest, and then all others.
struct Kernels {
    problem: ProblemKey,
    names: Vec<String>,
}

fn measure<T: Multiplied<D> + Random, D: Gating + Random>(
    call: &Call<'_>,
    product: &Product<'_>,
    matrices: Matrices,
) -> Result<Tuned> {
    let factors = Factors::<T::Factor>::of(NAME, product)?;
    let context = call.context();
    let gemm = || described::<T, D>(product, matrices, factors, None, context);
    let Some(kernels) = call.run(true, || kernels(context, gemm))? else {
        return not_tuned();
    };
    call.run(true, || {
        let template = Template::<T, D>::new(product);
        let make = |stream: &cutlet::Stream| template.make(stream);
        let mut candidates = Candidates::new(template.bytes(), make);
        for name in &kernels.names {
            candidates =
                candidates.candidate(name, move |stream, operands: &mut Operands<T, D>| {
                    operands.with(product, |own| {
                        let gemm = described::<T, D>(own, matrices, factors, None, context)?;
                        gemm.instance(name).run(stream)
                    })
                });
        }
        let (tolerance, c) = (tolerance(product), product.c);
        let is_whole = c.span() == c.shape().iter().product::<usize>();
        let candidates = match is_whole && product.beta.unwrap_or(0.0) == 0.0 {
            true => candidates.output(tolerance, Operands::c),
            false => candidates.in_out(tolerance, Operands::c),
        };
        // A stream of its own: work of the caller's does not run meanwhile.
        context.stream.synchronize()?;
        let device = context.stream.device();
        let stream = device.stream()?;
        let tuned = Autotuner::new(device).tune(&stream, kernels.problem, candidates)?;
        Ok(found(&kernels, &tuned))
    })
}

/// The kernels that multiply matrices of a description; `None` for products that are not tuned.
fn kernels<'a, T: Multiplied<D>, D: Gating>(
    context: &Context,
    described: impl Fn() -> cutlet::Result<Gemm<'a, T, D>>,
) -> cutlet::Result<Option<Kernels>> {
    let stream = &context.stream;
    let mut gemm = described()?.untuned();
    let (problem, estimated) = (gemm.problem_key(stream)?, gemm.plan(stream)?.kernel());
    let (Some(problem), Some(estimated)) = (problem, estimated) else {
        return Ok(None);
    };
    let mut names = vec![estimated.to_string()];
    for name in gemm.candidates(stream)? {
        // Lists have kernels that take other alignments, too. Other errors are told with the measurement.
        let plan = described()?.instance(&name).plan(stream);
        if name != estimated && !matches!(plan, Err(Error::Instance { .. })) {
            names.push(name);
        }
    }
    Ok(Some(Kernels { problem, names }))
}

/// The outcome of a measurement.
fn found(kernels: &Kernels, tuned: &cutlet_host::Tuned) -> Tuned {
    let estimated = &kernels.names[0];
    let mut ranking = tuned.ranking().iter();
    let estimated_ranks = ranking.find(|it| it.name == *estimated);
    let ratio = estimated_ranks.map(|it| match it.ratio {
        Some(ratio) => ratio.median,
        // Far slower: it was looked at once.
        None => it.microseconds.median / tuned.microseconds().unwrap_or(f64::NAN),
    });
    Tuned {
        problem: kernels.problem,
        kernel: tuned.name().to_string(),
        estimated: estimated.clone(),
        microseconds: tuned.microseconds().unwrap_or(f64::NAN),
        gain: ratio.unwrap_or(f64::NAN),
        table: tuned.to_string(),
    }
}

/// How far two right products may be apart, as a share of an element's size plus that of all.
fn tolerance(product: &Product<'_>) -> f64 {
    let of_c: f64 = match product.c.data_type {
        DataType::Bf16 => 1.6e-2,
        DataType::F16 => 2e-3,
        DataType::F64 => 1e-10,
        DataType::I32 => 0.0,
        _ => 1e-4,
    };
    let of_products = match product.precision {
        Precision::Tf32 => 4e-3,
        // That of 8-bit floats, too, of which there are no products here.
        _ => 0.0,
    };
    let of_activation = match product.follows {
        Follows::Activation(Activation::Gelu) => 4e-3,
        _ => 0.0,
    };
    of_c.max(of_products).max(of_activation)
}
