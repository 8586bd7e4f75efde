//! `cutlet gemm`: one GEMM on random matrices, timed and checked.

pub mod arithmetic;
pub mod elements;
pub mod reference;
pub mod report;

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cutlet::{Buffer, DeviceData, Gemm, Matrix, MatrixMut, Precision, Stream};
use cutlet_host::Backend;
use cutlet_kernels::gemm::epilogue::Accumulator;

use crate::deviation::Deviation;
use crate::host_memory::{self, TooLittle, room};
use crate::measure::epilogue::Epilogue;
use crate::measure::scales::{DeviceScales, HostScales, Places, Scale, Scales};
use crate::output::Output;
use crate::progress::Progress;
use crate::timed::{TimedArgs, extent, extent_or_zero};
use arithmetic::{Element, Factor, Stored};
use cutlet_cli::cublas::{self, Compute, Cublas, CublasError, Major, Operand, Problem};
use elements::{ElementsArgs, ForElements};
use report::Report;

/// Multiply two random matrices and time it: C = activation(alpha·A·B + beta·C + bias).
#[derive(Args, Clone, Debug)]
pub struct GemmArgs {
    /// Rows of A and C: 4096 on a GPU and 512 on the CPU unless given, like the other extents.
    #[arg(long, value_parser = extent, allow_hyphen_values = true)]
    m: Option<usize>,
    /// Columns of B and C.
    #[arg(long, value_parser = extent, allow_hyphen_values = true)]
    n: Option<usize>,
    /// Columns of A, rows of B. With 0, the product is 0 and C is scaled.
    #[arg(long, value_parser = extent_or_zero, allow_hyphen_values = true)]
    k: Option<usize>,
    #[command(flatten)]
    elements: ElementsArgs,
    /// Which elements of A, and of B, have a scale in common, if they are 8-bit floats.
    #[arg(long, value_enum, default_value_t)]
    scales: Scales,
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
    pub timed: TimedArgs,
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
    /// x·Φ(x), where Φ is the distribution function of the normal distribution.
    GeluErf,
}

impl GemmArgs {
    /// The options on this backend, which says the extents that are not given.
    fn on(&self, backend: Backend) -> Self {
        let extent = match backend {
            Backend::Gpu => 4096,
            Backend::Cpu => 512,
        };
        let [m, n, k] = [self.m, self.n, self.k].map(|given| given.or(Some(extent)));
        GemmArgs {
            m,
            n,
            k,
            ..self.clone()
        }
    }

    /// m, n and k. One that is not given is 0 before [`on`](Self::on).
    fn extents(&self) -> [usize; 3] {
        [self.m, self.n, self.k].map(Option::unwrap_or_default)
    }

    /// Where the scales lie.
    fn places(&self) -> Places {
        Places {
            are: self.scales,
            extents: self.extents(),
            matrices: [1; 2],
        }
    }

    /// Whether computing all of C in f64 takes about a second.
    fn is_quick(&self) -> bool {
        let [m, n, k] = self.extents();
        m.saturating_mul(n).saturating_mul(k) <= QUICK
    }

    fn epilogue(&self) -> Epilogue {
        Epilogue {
            bias: self.bias,
            activation: self.activation.map(|activation| match activation {
                Activation::Relu => cutlet::Activation::Relu,
                Activation::Gelu => cutlet::Activation::Gelu,
                Activation::Silu => cutlet::Activation::Silu,
                Activation::GeluErf => cutlet::Activation::GeluErf,
            }),
        }
    }
}

/// Multiply-adds in f64 that take about a second.
pub const QUICK: usize = 1 << 30;

/// The order of a matrix in memory.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Order {
    /// Rows are contiguous.
    #[default]
    Row,
    /// Columns are contiguous.
    Col,
}

impl Order {
    /// The number in memory of the element at a row and a column of a packed matrix.
    fn index(self, [rows, columns]: [usize; 2], [i, j]: [usize; 2]) -> usize {
        match self {
            Order::Row => i * columns + j,
            Order::Col => j * rows + i,
        }
    }
}

impl From<Order> for cutlet::Order {
    fn from(order: Order) -> Self {
        match order {
            Order::Row => cutlet::Order::RowMajor,
            Order::Col => cutlet::Order::ColMajor,
        }
    }
}

/// Runs the command.
pub fn run(args: &GemmArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    struct Run<'a>(&'a GemmArgs);
    impl ForElements for Run<'_> {
        type Output = Result<ExitCode, Box<dyn std::error::Error>>;

        fn run<T: Element<D>, D: Stored>(self) -> Self::Output {
            run_as::<T, D>(self.0, None)
        }

        fn run_scaled<T: Element<D>, D: Stored>(self, scale: Scale<T, D>) -> Self::Output {
            run_as::<T, D>(self.0, Some(scale))
        }
    }
    args.elements.expect_scales(args.scales)?;
    args.elements.run(Run(args))?
}

/// alpha and beta.
#[derive(Clone, Copy, Debug)]
pub struct Factors<F> {
    pub alpha: F,
    pub beta: F,
}

fn run_as<T: Element<D>, D: Stored>(
    args: &GemmArgs,
    scale: Option<Scale<T, D>>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let factors = Factors {
        alpha: T::Factor::of(args.alpha)?,
        beta: T::Factor::of(args.beta)?,
    };
    let stream = args.timed.stream()?;
    let args = &args.on(stream.device().backend());
    host_memory::expect(host_bytes::<T, D>(args, stream.device().backend()))?;
    let output = &args.timed.output;
    let progress = &args.timed.progress();
    let inputs = Inputs::<T, D>::random(args, factors.beta, progress)?;
    progress.wait("upload");
    let mut on_device = inputs.upload(&stream)?;

    progress.wait("first product");
    multiply(&stream, args, factors, scale, &mut on_device)?;
    let found = stream.download(&on_device.c)?;
    let again = || multiply(&stream, args, factors, scale, &mut on_device);
    let time = args.timed.median(&stream, progress, "products", again)?;
    let cublas = cublas_time(&stream, args, factors, &on_device, progress);
    let check = args
        .check
        .then(|| reference::deviation(args, factors, &inputs, &found, progress));
    progress.end();
    let cublas = cublas.unwrap_or_else(|error| {
        // cutlet's own figures are worth a report.
        output.warning(format!("cuBLASLt was not timed: {error}"));
        None
    });
    output.result(&Report::new(args, &stream, time, cublas, check))?;
    let [.., k] = args.extents();
    Ok(verdict(output, check, args.elements.tolerance(k)))
}

/// The exit code. Prints what the check found to be wrong, if anything.
pub fn verdict(output: &Output, check: Option<Deviation>, tolerance: f64) -> ExitCode {
    match check {
        Some(check) if !check.within(tolerance) => {
            let wrong = check.no_numbers().unwrap_or_else(|| {
                format!("the result is further from the reference than {tolerance:.1e}")
            });
            output.error(wrong);
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The matrices, the bias and the scales on the host.
struct Inputs<T, D> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<D>,
    bias: Vec<D>,
    scales: HostScales,
}

impl<T: Element<D>, D: Stored> Inputs<T, D> {
    /// Random ones. A C that is not read is NaN. All memory is reserved before any of it is filled, so that a problem
    /// that is too large is refused at once.
    fn random(args: &GemmArgs, beta: T::Factor, progress: &Progress) -> Result<Self, TooLittle> {
        let [m, n, k] = args.extents();
        let seed = args.timed.seed;
        let (mut a, mut b, mut c) = (room(m * k)?, room(k * n)?, room(m * n)?);
        let mut bias = room(n)?;
        progress.begin("random matrices", m * k + k * n + m * n + n);
        progress.extend(&mut a, T::random(seed).take(m * k));
        progress.extend(&mut b, T::random(seed.wrapping_add(1)).take(k * n));
        if beta == T::Factor::ZERO {
            c.resize(m * n, D::nearest(f64::NAN));
            progress.advance(m * n);
        } else {
            progress.extend(&mut c, D::random(seed.wrapping_add(2)).take(m * n));
        }
        progress.extend(&mut bias, D::random(seed.wrapping_add(3)).take(n));
        let scales = HostScales::random(args.places(), seed.wrapping_add(4));
        Ok(Inputs {
            a,
            b,
            c,
            bias,
            scales,
        })
    }

    fn upload(&self, stream: &Stream) -> cutlet::Result<OnDevice<T, D>> {
        Ok(OnDevice {
            a: stream.upload(&self.a)?,
            b: stream.upload(&self.b)?,
            c: stream.upload(&self.c)?,
            bias: Rc::new(stream.upload(&self.bias)?),
            scales: self.scales.upload(stream)?,
        })
    }
}

/// The matrices, the bias and the scales on the device.
struct OnDevice<T: DeviceData, D: DeviceData> {
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<D>,
    bias: Rc<Buffer<D>>,
    scales: DeviceScales,
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<T, D>(args: &GemmArgs, backend: Backend) -> u128 {
    let [m, n, k] = args.extents().map(|extent| extent as u128);
    let [of_t, of_d] = [size_of::<T>(), size_of::<D>()].map(|bytes| bytes as u128);
    let result = m * n * of_d;
    let [of_a, of_b] = args.places().counts();
    let scales = (of_a + of_b) as u128 * size_of::<f32>() as u128;
    let data = (m * k + k * n) * of_t + n * of_d + result + scales;
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
    scale: Option<Scale<T, D>>,
    data: &mut OnDevice<T, D>,
) -> cutlet::Result<()> {
    let [m, n, k] = args.extents();
    let order = |order: Order| cutlet::Order::from(order);
    let gemm = Gemm::new(
        Matrix::packed(&data.a, m, k, order(args.a))?,
        Matrix::packed(&data.b, k, n, order(args.b))?,
        MatrixMut::packed(&mut data.c, m, n, order(args.c))?,
    );
    let gemm = args.epilogue().fuse(gemm, &data.bias);
    let gemm = gemm.alpha(factors.alpha).beta(factors.beta);
    let mut gemm = gemm.precision(args.elements.precision());
    if let Some(scale) = scale {
        gemm = scale(gemm, &data.scales)?;
    }
    if let Some(kernel) = &args.kernel {
        gemm = gemm.instance(kernel);
    }
    gemm.run(stream)
}

/// The time of cuBLASLt for the same product, by the algorithm that it chooses; `None` where there is no cuBLAS, no GPU
/// or no such product.
fn cublas_time<T: Element<D>, D: Stored>(
    stream: &Stream,
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    OnDevice {
        a, b, bias, scales, ..
    }: &OnDevice<T, D>,
    progress: &Progress,
) -> Result<Option<Duration>, Box<dyn std::error::Error>> {
    let Some(problem) = cublas_problem(args, factors) else {
        return Ok(None);
    };
    let cublas = match Cublas::new(stream.device()) {
        Ok(cublas) => cublas,
        Err(CublasError::Missing { .. } | CublasError::NoGpu) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let compute = match args.elements.precision() {
        Precision::Tf32 => Compute::Tf32,
        // cuBLASLt has no product of three.
        Precision::Exact | Precision::Tf32x3 => T::COMPUTE,
        Precision::FastAccumulation => Compute::FastF8,
    };
    let Some(epilogue) = cublas_epilogue(args, bias) else {
        return Ok(None);
    };
    let matmul = match cublas.matmul_by::<T, D>(problem, compute, epilogue, scales.for_cublas(), 1)
    {
        Ok(matmul) => matmul,
        // cuBLASLt cannot read all rows, and has no algorithm for some products.
        Err(CublasError::BadProblem(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let [m, n, _] = args.extents();
    let mut c = stream.zeroed::<D>(m * n)?;
    let multiply = || matmul.run(stream, 0, a.view(), b.view(), &mut c.view_mut());
    let time = args.timed.median(stream, progress, "cuBLASLt", multiply)?;
    Ok(Some(time))
}

/// The product in cuBLASLt's terms; `None` if k is 0, which cuBLASLt refuses.
fn cublas_problem<F: Factor>(args: &GemmArgs, factors: Factors<F>) -> Option<Problem> {
    let [m, n, k] = args.extents();
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
    (k > 0).then(|| Problem {
        m,
        n,
        k,
        a: operand(args.a, m, k),
        b: operand(args.b, k, n),
        c: operand(args.c, m, n),
        alpha: factors.alpha.value(),
        beta: factors.beta.value(),
        batch: 1,
    })
}

/// cuBLASLt's epilogue for the options; `None` if there is none. Its bias has a number for each place in a contiguous
/// run of C.
fn cublas_epilogue<D: Stored>(
    args: &GemmArgs,
    bias: &Rc<Buffer<D>>,
) -> Option<cublas::Epilogue<D>> {
    let has_bias = !args.bias || matches!(args.c, Order::Row);
    let epilogue = args.epilogue().for_cublas(bias);
    epilogue.filter(|_| has_bias)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use half::bf16;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        gemm: GemmArgs,
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
