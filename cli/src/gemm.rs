//! `cutlet gemm`: one GEMM on random matrices, timed and checked.

pub mod arithmetic;

use std::fmt;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cutlet::{Buffer, Matrix, MatrixMut, Stream};
use cutlet_host::Backend;
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;

use crate::deviation::{Deviation, Entry};
use crate::host_memory::{self, room};
use crate::measure::dtype::Dtype;
use crate::measure::epilogue::Epilogue;
use crate::normal::generator;
use crate::output::complain;
use crate::timed::{TimedArgs, extent, extent_or_zero};
use arithmetic::{Element, Factor, Stored};
use cutlet_cli::cublas::{Compute, Cublas, CublasError, Major, Operand, Problem};

/// Multiply two random matrices and time it: C = activation(alpha·A·B + beta·C + bias).
#[derive(Args, Debug)]
pub struct GemmArgs {
    /// Rows of A and C.
    #[arg(long, default_value_t = 512, value_parser = extent, allow_hyphen_values = true)]
    m: usize,
    /// Columns of B and C.
    #[arg(long, default_value_t = 512, value_parser = extent, allow_hyphen_values = true)]
    n: usize,
    /// Columns of A, rows of B. With 0, the product is 0 and C is scaled.
    #[arg(long, default_value_t = 512, value_parser = extent_or_zero, allow_hyphen_values = true)]
    k: usize,
    /// The type of the elements, accumulated in f32, or in f64 (f64) and i32 (i8). CUDA cores multiply f32, tensor
    /// cores the other types. `cutlet doctor` lists those that a GPU multiplies.
    #[arg(long, value_enum, default_value_t)]
    dtype: Elements,
    /// The type of C and of the bias, if it differs from A's and B's. Of i8 it is i32.
    #[arg(long, value_enum)]
    c_dtype: Option<ElementsOfC>,
    /// The precision of products of f32. Where there are no tensor cores for it, products are exact.
    #[arg(long, value_enum, default_value_t)]
    precision: Precision,
    /// The order of A in memory.
    #[arg(long, value_enum, default_value_t)]
    a: Order,
    /// The order of B in memory.
    #[arg(long, value_enum, default_value_t)]
    b: Order,
    /// The order of C in memory.
    #[arg(long, value_enum, default_value_t)]
    c: Order,
    /// Factor of the product.
    #[arg(long, default_value_t = 1.0, allow_hyphen_values = true)]
    alpha: f64,
    /// Factor of the old C.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    beta: f64,
    /// Add a random number to each column.
    #[arg(long)]
    bias: bool,
    /// The function applied last.
    #[arg(long, value_enum)]
    activation: Option<Activation>,
    /// The kernel, instead of the one that is estimated to be the fastest.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Compare with a reference in f64, exact for i8: all of C if that takes about a second, else 8192 entries.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    timed: TimedArgs,
}

/// The element types of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Elements {
    #[default]
    F32,
    Bf16,
    F16,
    F64,
    I8,
}

impl Elements {
    fn name(self) -> &'static str {
        match self {
            Elements::F32 => "f32",
            Elements::Bf16 => "bf16",
            Elements::F16 => "f16",
            Elements::F64 => "f64",
            Elements::I8 => "i8",
        }
    }

    /// The type of C if none is named.
    fn of_c(self) -> ElementsOfC {
        match self {
            Elements::F32 => ElementsOfC::F32,
            Elements::Bf16 => ElementsOfC::Bf16,
            Elements::F16 => ElementsOfC::F16,
            Elements::F64 => ElementsOfC::F64,
            Elements::I8 => ElementsOfC::I32,
        }
    }
}

/// The element types of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ElementsOfC {
    F32,
    Bf16,
    F16,
    F64,
    I32,
}

impl ElementsOfC {
    fn name(self) -> &'static str {
        match self {
            ElementsOfC::F32 => "f32",
            ElementsOfC::Bf16 => "bf16",
            ElementsOfC::F16 => "f16",
            ElementsOfC::F64 => "f64",
            ElementsOfC::I32 => "i32",
        }
    }

    /// The types with its tolerance.
    fn dtype(self) -> Dtype {
        match self {
            ElementsOfC::F32 => Dtype::F32,
            ElementsOfC::Bf16 => Dtype::Bf16,
            ElementsOfC::F16 => Dtype::F16,
            ElementsOfC::F64 => Dtype::F64,
            ElementsOfC::I32 => Dtype::I8,
        }
    }
}

/// The precisions of products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// Operands as they are.
    #[default]
    Exact,
    /// Operands rounded to tf32.
    Tf32,
    /// Three products of tf32 for each product.
    #[value(name = "3xtf32")]
    Tf32x3,
}

impl From<Precision> for cutlet::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Exact => cutlet::Precision::Exact,
            Precision::Tf32 => cutlet::Precision::Tf32,
            Precision::Tf32x3 => cutlet::Precision::Tf32x3,
        }
    }
}

/// The activations.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Activation {
    /// max(x, 0).
    Relu,
    /// x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.
    Gelu,
    /// x/(1 + e⁻ˣ).
    Silu,
}

impl GemmArgs {
    /// The type of C.
    fn c_dtype(&self) -> ElementsOfC {
        self.c_dtype.unwrap_or(self.dtype.of_c())
    }

    /// The largest relative distance of a right C from its reference.
    fn tolerance(&self) -> f64 {
        let of_c = self.c_dtype().dtype().tolerance(self.k);
        match self.precision {
            Precision::Exact => of_c,
            Precision::Tf32 => of_c.max(Dtype::Tf32.tolerance(self.k)),
            Precision::Tf32x3 => of_c.max(Dtype::Tf32x3.tolerance(self.k)),
        }
    }

    /// Whether computing all of C in f64 takes about a second.
    fn is_quick(&self) -> bool {
        self.m.saturating_mul(self.n).saturating_mul(self.k) <= QUICK
    }

    fn epilogue(&self) -> Epilogue {
        Epilogue {
            bias: self.bias,
            activation: self.activation.map(|activation| match activation {
                Activation::Relu => cutlet::Activation::Relu,
                Activation::Gelu => cutlet::Activation::Gelu,
                Activation::Silu => cutlet::Activation::Silu,
            }),
        }
    }
}

/// The order of a matrix in memory.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Order {
    /// Rows are contiguous.
    #[default]
    Row,
    /// Columns are contiguous.
    Col,
}

impl From<Order> for cutlet::Order {
    fn from(order: Order) -> Self {
        match order {
            Order::Row => cutlet::Order::RowMajor,
            Order::Col => cutlet::Order::ColMajor,
        }
    }
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    backend: String,
    dtype: &'static str,
    c_dtype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<String>,
    m: usize,
    n: usize,
    k: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    epilogue: String,
    microseconds: f64,
    tflops: f64,
    cublas_microseconds: Option<f64>,
    check: Option<Deviation>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            dtype,
            c_dtype,
            precision,
            m,
            n,
            k,
            microseconds,
            tflops,
            ..
        } = self;
        writeln!(f, "backend  {}", self.backend)?;
        let epilogue = match self.epilogue.as_str() {
            "" => String::new(),
            epilogue => format!(" {epilogue}"),
        };
        let into = match c_dtype == dtype {
            true => String::new(),
            false => format!(" into {c_dtype}"),
        };
        let precision = match precision {
            Some(precision) => format!(" in {precision}"),
            None => String::new(),
        };
        writeln!(
            f,
            "problem  {dtype}{into}{precision} {m} x {n} x {k}{epilogue}"
        )?;
        let unit = match *dtype {
            "i8" => "TOP/s",
            _ => "TFLOP/s",
        };
        write!(f, "time     {microseconds:.1} us, {tflops:.3} {unit}")?;
        if let Some(cublas) = self.cublas_microseconds {
            write!(
                f,
                "\ncuBLASLt {cublas:.1} us, {:.2}x its speed",
                cublas / microseconds
            )?;
        }
        let Some(check) = self.check else {
            return Ok(());
        };
        if let Some(no_numbers) = check.no_numbers() {
            return write!(f, "\nerror    {no_numbers}");
        }
        let Deviation {
            relative,
            max,
            entries,
            rightly_none,
            ..
        } = check;
        write!(
            f,
            "\nerror    {relative:.2e} relative, {max:.2e} at most, of {entries} entries"
        )?;
        match rightly_none {
            0 => Ok(()),
            _ => write!(
                f,
                ", of which {rightly_none} are infinite or NaN as they must be"
            ),
        }
    }
}

/// Runs the command.
pub fn run(args: &GemmArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    use {Elements as Of, ElementsOfC as OfC};
    match (args.dtype, args.c_dtype()) {
        (Of::F32, OfC::F32) => run_as::<f32, f32>(args),
        (Of::F32, OfC::Bf16) => run_as::<f32, bf16>(args),
        (Of::F32, OfC::F16) => run_as::<f32, f16>(args),
        (Of::Bf16, OfC::F32) => run_as::<bf16, f32>(args),
        (Of::Bf16, OfC::Bf16) => run_as::<bf16, bf16>(args),
        (Of::Bf16, OfC::F16) => run_as::<bf16, f16>(args),
        (Of::F16, OfC::F32) => run_as::<f16, f32>(args),
        (Of::F16, OfC::Bf16) => run_as::<f16, bf16>(args),
        (Of::F16, OfC::F16) => run_as::<f16, f16>(args),
        (Of::F64, OfC::F64) => run_as::<f64, f64>(args),
        (Of::I8, OfC::I32) => run_as::<i8, i32>(args),
        (of, of_c) => Err(format!(
            "a product of {} was asked for in a C of {}; leave out --c-dtype, or name f32, bf16 or f16 for operands of \
             these types",
            of.name(),
            of_c.name()
        )
        .into()),
    }
}

/// alpha and beta.
#[derive(Clone, Copy, Debug)]
struct Factors<F> {
    alpha: F,
    beta: F,
}

fn run_as<T: Element<D>, D: Stored>(
    args: &GemmArgs,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let GemmArgs { m, n, k, .. } = *args;
    let factors = Factors {
        alpha: T::Factor::of(args.alpha)?,
        beta: T::Factor::of(args.beta)?,
    };
    let (stream, seed) = (args.timed.stream()?, args.timed.seed);

    // All memory is reserved before any of it is filled, so that a problem that is too large is refused at once.
    host_memory::expect(host_bytes::<T, D>(args, stream.device().backend()))?;
    let (mut a, mut b, mut c) = (room(m * k)?, room(k * n)?, room(m * n)?);
    let mut bias = room(n)?;
    a.extend(T::random(seed).take(m * k));
    b.extend(T::random(seed.wrapping_add(1)).take(k * n));
    if factors.beta == T::Factor::ZERO {
        c.resize(m * n, D::nearest(f64::NAN));
    } else {
        c.extend(D::random(seed.wrapping_add(2)).take(m * n));
    }
    bias.extend(D::random(seed.wrapping_add(3)).take(n));
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let on_bias = Rc::new(stream.upload(&bias)?);
    let mut on_c = stream.upload(&c)?;

    let mut run = || multiply(&stream, args, factors, [&on_a, &on_b], &on_bias, &mut on_c);
    run()?;
    let found = stream.download(&on_c)?;
    let mut run = || multiply(&stream, args, factors, [&on_a, &on_b], &on_bias, &mut on_c);
    let time = args.timed.median(&stream, &mut run)?;
    let cublas = cublas_time(&stream, args, factors, &on_a, &on_b, &on_bias);
    let cublas = cublas.unwrap_or_else(|error| {
        // cutlet's own figures are worth a report.
        complain(format!("warning: cuBLASLt was not timed: {error}"));
        None
    });
    let check = args
        .check
        .then(|| deviation(args, factors, [&a, &b], &bias, &c, &found));
    let precision = cutlet::Precision::from(args.precision);
    let report = Report {
        backend: stream.device().describe().to_string(),
        dtype: args.dtype.name(),
        c_dtype: args.c_dtype().name(),
        precision: (args.precision != Precision::Exact).then(|| precision.to_string()),
        m,
        n,
        k,
        epilogue: match args.epilogue() {
            none if none.is_none() => String::new(),
            epilogue => epilogue.to_string(),
        },
        microseconds: time.as_secs_f64() * 1e6,
        tflops: 2.0 * m as f64 * n as f64 * k as f64 / time.as_secs_f64() / 1e12,
        cublas_microseconds: cublas.map(|time| time.as_secs_f64() * 1e6),
        check,
    };
    args.timed.print(&report)?;
    let tolerance = args.tolerance();
    match check {
        Some(check) if !check.within(tolerance) => {
            let wrong = check.no_numbers().unwrap_or_else(|| {
                format!("the result is further from the reference than {tolerance:.1e}")
            });
            complain(format!("error: {wrong}"));
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<T, D>(args: &GemmArgs, backend: Backend) -> u128 {
    let [m, n, k] = [args.m, args.n, args.k].map(|extent| extent as u128);
    let [of_t, of_d] = [size_of::<T>(), size_of::<D>()].map(|bytes| bytes as u128);
    let result = m * n * of_d;
    let data = (m * k + k * n) * of_t + n * of_d + result;
    let on_device = match backend {
        Backend::Gpu => 0,
        Backend::Cpu => data,
    };
    let checked = match args.check && args.is_quick() {
        true => m * n * size_of::<[(usize, usize); 2]>() as u128,
        false => 0,
    };
    // The result is downloaded to memory of its own.
    data + on_device + result + checked
}

fn multiply<T: Element<D>, D: Stored>(
    stream: &Stream,
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    [a, b]: [&Buffer<T>; 2],
    bias: &Buffer<D>,
    c: &mut Buffer<D>,
) -> cutlet::Result<()> {
    let GemmArgs { m, n, k, .. } = *args;
    let Factors { alpha, beta } = factors;
    let order = |order: Order| cutlet::Order::from(order);
    let gemm = args.epilogue().gemm(bias);
    let gemm = match &args.kernel {
        Some(kernel) => gemm.instance(kernel),
        None => gemm,
    };
    gemm.precision(args.precision.into()).run(
        stream,
        alpha,
        Matrix::packed(a, m, k, order(args.a))?,
        Matrix::packed(b, k, n, order(args.b))?,
        beta,
        MatrixMut::packed(c, m, n, order(args.c))?,
    )
}

/// The time of cuBLASLt for the same product, by the algorithm that it chooses; `None` where there is no cuBLAS, no GPU
/// or no such product.
fn cublas_time<T: Element<D>, D: Stored>(
    stream: &Stream,
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    a: &Buffer<T>,
    b: &Buffer<T>,
    bias: &Rc<Buffer<D>>,
) -> Result<Option<Duration>, Box<dyn std::error::Error>> {
    let GemmArgs { m, n, k, .. } = *args;
    let Factors { alpha, beta } = factors;
    if k == 0 {
        // cuBLASLt has no product of nothing.
        return Ok(None);
    }
    let cublas = match Cublas::new(stream.device()) {
        Ok(cublas) => cublas,
        Err(CublasError::Missing { .. } | CublasError::NoGpu) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let operand = |order: Order, rows: usize, columns: usize| match order {
        Order::Row => Operand {
            major: Major::Row,
            leading: columns,
        },
        Order::Col => Operand {
            major: Major::Column,
            leading: rows,
        },
    };
    let problem = Problem {
        m,
        n,
        k,
        a: operand(args.a, m, k),
        b: operand(args.b, k, n),
        c: operand(args.c, m, n),
        alpha: alpha.value(),
        beta: beta.value(),
        batch: 1,
    };
    let compute = match args.precision {
        Precision::Tf32 => Compute::Tf32,
        // cuBLASLt has no product of three.
        Precision::Exact | Precision::Tf32x3 => T::COMPUTE,
    };
    // cuBLASLt's bias has a number for each place in a contiguous run of C.
    let Some(epilogue) = args
        .epilogue()
        .for_cublas(bias)
        .filter(|_| !args.bias || matches!(args.c, Order::Row))
    else {
        return Ok(None);
    };
    let matmul = match cublas.matmul_by::<T, D>(problem, compute, epilogue, 1) {
        Ok(matmul) => matmul,
        // cuBLASLt cannot read all rows, and has no algorithm for some products.
        Err(CublasError::BadProblem(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut c = stream.zeroed::<D>(m * n)?;
    let mut multiply = || matmul.run(stream, 0, a.view(), b.view(), &mut c.view_mut());
    Ok(Some(args.timed.median(stream, &mut multiply)?))
}

/// Entries of C that are compared where all would take too long.
const SAMPLES: usize = 8192;
/// Multiply-adds in f64 that take about a second.
const QUICK: usize = 1 << 30;

/// The step of a difference quotient, relative to the size of a sum's terms.
const SMALL: f64 = 1e-6;

fn deviation<T: Element<D>, D: Stored>(
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    [a, b]: [&[T]; 2],
    bias: &[D],
    old: &[D],
    found: &[D],
) -> Deviation {
    let GemmArgs { m, n, k, .. } = *args;
    let Factors { alpha, beta } = factors;
    let at = |order: Order, rows: usize, columns: usize, i: usize, j: usize| match order {
        Order::Row => i * columns + j,
        Order::Col => j * rows + i,
    };
    let entries: Vec<(usize, usize)> = if args.is_quick() {
        (0..m * n).map(|entry| (entry / n, entry % n)).collect()
    } else {
        // Mistakes at edges show in the last row and column: they get half of the samples.
        let mut random = generator(args.timed.seed);
        (0..SAMPLES)
            .map(|sample| match sample % 4 {
                0 => (m - 1, random.usize(..n)),
                1 => (random.usize(..m), n - 1),
                _ => (random.usize(..m), random.usize(..n)),
            })
            .collect()
    };
    let activation = Epilogue {
        bias: false,
        ..args.epilogue()
    };
    let entries: Vec<Entry> = entries
        .par_iter()
        .map(|&(i, j)| {
            let terms = (0..k)
                .map(|l| a[at(args.a, m, k, i, l)].to_f64() * b[at(args.b, k, n, l, j)].to_f64());
            let (product, squares) = terms.fold((0.0, 0.0), |(product, squares), term| {
                (product + term, squares + term * term)
            });
            let entry = at(args.c, m, n, i, j);
            let bias = if args.bias { bias[j].to_f64() } else { 0.0 };
            let old = old[entry].to_f64();
            let sum = T::Factor::reference(alpha, product, beta, old, bias);
            let activated = |sum: f64| activation.apply(sum, 0.0);
            let reference = activated(sum);
            // Where the terms cancel, the sum's rounding is relative to the terms, and the activation passes it on.
            let terms = alpha.value().abs() * squares.sqrt();
            let passed_on = (activated(sum + SMALL * terms) - reference).abs() / SMALL;
            let of_overflow = T::Factor::overflows(alpha, product, beta, old);
            let compared = Entry {
                found: found[entry].to_f64(),
                reference,
                scale: reference.abs().max(passed_on),
            };
            right_or_compared::<D>(compared, of_overflow.into_iter().map(activated))
        })
        .collect();
    Deviation::of_entries(entries)
}

/// The entry as it is compared. One that is right though it is infinite, or made of an infinite term, is compared with
/// itself, and is nothing that the errors of other entries are relative to.
fn right_or_compared<D: Stored>(entry: Entry, mut of_overflow: impl Iterator<Item = f64>) -> Entry {
    let Entry {
        found,
        reference,
        scale,
    } = entry;
    let is_of_overflow =
        of_overflow.any(|right| found == right || found.is_nan() && right.is_nan());
    let is_rounded = found.is_infinite() && is_beyond::<D>(found, reference, scale);
    match is_of_overflow || is_rounded {
        true => Entry {
            found,
            reference: found,
            scale: 0.0,
        },
        false => entry,
    }
}

/// How far a sum near C's largest number may be from its reference, relative to its scale.
const NEAR_THE_LARGEST: f64 = 1e-2;

/// Whether a sum that is right may round to this infinity in C's type.
fn is_beyond<D: Stored>(infinity: f64, reference: f64, scale: f64) -> bool {
    let furthest = reference + (NEAR_THE_LARGEST * scale).copysign(infinity);
    D::nearest(furthest).to_f64() == infinity
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        gemm: GemmArgs,
    }

    #[test]
    fn infinities_are_right_beyond_the_largest_number() {
        let infinity = f64::INFINITY;
        let is_right = |of, reference: f64| is_beyond::<f16>(of, reference, reference.abs());
        assert!(
            is_right(infinity, 1e6) && is_right(infinity, 65000.0) && is_right(-infinity, -1e6)
        );
        assert!(
            !is_right(infinity, 60000.0) && !is_right(infinity, -1e6) && !is_right(-infinity, 1.0)
        );
        assert!(is_beyond::<f32>(infinity, 1e39, 1e39) && !is_beyond::<f32>(infinity, 1e38, 1e38));
    }

    #[test]
    fn all_memory_of_the_data_is_counted() {
        let bytes = |options: &str, backend| {
            let words = format!("gemm {options}");
            let Alone { gemm } = Alone::parse_from(words.split(' '));
            host_bytes::<bf16, f32>(&gemm, backend)
        };
        let (a, b, c, bias) = (2 * 20 * 40, 2 * 40 * 30, 4 * 20 * 30, 4 * 30);
        let small = "--m 20 --n 30 --k 40";
        let on_gpu = a + b + 2 * c + bias;
        assert_eq!(bytes(small, Backend::Gpu), on_gpu);
        assert_eq!(bytes(small, Backend::Cpu), on_gpu + a + b + c + bias);
        // The indices of each compared entry, and both values.
        let checked = format!("{small} --check");
        assert_eq!(bytes(&checked, Backend::Gpu), on_gpu + 20 * 30 * 32);
        let large = "--m 60000 --n 60000 --k 60000";
        assert_eq!(
            bytes(&format!("{large} --check"), Backend::Cpu),
            bytes(large, Backend::Cpu)
        );
    }
}
