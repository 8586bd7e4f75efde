//! `cutlet gemm`: one GEMM on random matrices, timed and checked.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cutlet::{Buffer, Matrix, MatrixMut, Stream, gemm};
use rayon::prelude::*;
use serde::Serialize;

use crate::deviation::Deviation;
use crate::normal::normal;
use crate::timed::{TimedArgs, extent};
use cutlet_cli::cublas::{Cublas, CublasError, Major, Operand, Problem};

/// Multiply two random matrices and say how long it took: C = alpha·A·B + beta·C in f32.
#[derive(Args, Debug)]
pub struct GemmArgs {
    /// Rows of A and C.
    #[arg(long, default_value_t = 512, value_parser = extent, allow_hyphen_values = true)]
    m: usize,
    /// Columns of B and C.
    #[arg(long, default_value_t = 512, value_parser = extent, allow_hyphen_values = true)]
    n: usize,
    /// Columns of A, rows of B.
    #[arg(long, default_value_t = 512, value_parser = extent, allow_hyphen_values = true)]
    k: usize,
    /// How A lies in memory.
    #[arg(long, value_enum, default_value_t)]
    a: Order,
    /// How B lies in memory.
    #[arg(long, value_enum, default_value_t)]
    b: Order,
    /// How C lies in memory.
    #[arg(long, value_enum, default_value_t)]
    c: Order,
    /// Factor of the product.
    #[arg(long, default_value_t = 1.0, allow_hyphen_values = true)]
    alpha: f32,
    /// Factor of the old C.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    beta: f32,
    /// Compare with an f64 reference: all of C if that is quick, else 8192 entries of it.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    timed: TimedArgs,
}

/// Which direction of a matrix is contiguous.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Order {
    /// Rows are.
    #[default]
    Row,
    /// Columns are.
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

/// What a run found.
#[derive(Debug, Serialize)]
struct Report {
    backend: String,
    m: usize,
    n: usize,
    k: usize,
    microseconds: f64,
    tflops: f64,
    cublas_microseconds: Option<f64>,
    check: Option<Deviation>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            m,
            n,
            k,
            microseconds,
            tflops,
            ..
        } = self;
        writeln!(f, "backend  {}", self.backend)?;
        writeln!(f, "problem  f32 {m} x {n} x {k}")?;
        write!(f, "time     {microseconds:.1} us, {tflops:.3} TFLOP/s")?;
        if let Some(cublas) = self.cublas_microseconds {
            write!(
                f,
                "\ncuBLAS   {cublas:.1} us, {:.2}x its speed",
                cublas / microseconds
            )?;
        }
        if let Some(Deviation {
            relative,
            max,
            entries,
            ..
        }) = self.check
        {
            write!(
                f,
                "\nerror    {relative:.2e} relative, {max:.2e} at most, of {entries} entries"
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &GemmArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let GemmArgs { m, n, k, beta, .. } = *args;
    let (stream, seed) = (args.timed.stream()?, args.timed.seed);

    let len = |rows: usize, columns: usize| {
        rows.checked_mul(columns)
            .ok_or("the matrices have more elements than can be counted")
    };
    let a = normal(len(m, k)?, seed);
    let b = normal(len(k, n)?, seed + 1);
    let c = if beta == 0.0 {
        vec![f32::NAN; len(m, n)?]
    } else {
        normal(len(m, n)?, seed + 2)
    };
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut on_c = stream.upload(&c)?;

    multiply(&stream, args, &on_a, &on_b, &mut on_c)?;
    let found = stream.download(&on_c)?;
    let time = args
        .timed
        .median(&stream, || multiply(&stream, args, &on_a, &on_b, &mut on_c))?;
    let cublas = cublas_time(&stream, args, &on_a, &on_b)?;
    let check = args.check.then(|| deviation(args, &a, &b, &c, &found));
    let report = Report {
        backend: stream.device().describe().to_string(),
        m,
        n,
        k,
        microseconds: time.as_secs_f64() * 1e6,
        tflops: 2.0 * m as f64 * n as f64 * k as f64 / time.as_secs_f64() / 1e12,
        cublas_microseconds: cublas.map(|time| time.as_secs_f64() * 1e6),
        check,
    };
    args.timed.print(&report)?;
    // f32 rounds k products and as many sums; their errors grow like a random walk.
    let tolerance = f32::EPSILON as f64 * (k as f64).sqrt().max(4.0);
    if check.is_some_and(|deviation| !deviation.within(tolerance)) {
        eprintln!("error: the result is further from the reference than {tolerance:.1e}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn multiply(
    stream: &Stream,
    args: &GemmArgs,
    a: &Buffer<f32>,
    b: &Buffer<f32>,
    c: &mut Buffer<f32>,
) -> cutlet::Result<()> {
    let GemmArgs {
        m,
        n,
        k,
        alpha,
        beta,
        ..
    } = *args;
    let order = |order: Order| cutlet::Order::from(order);
    gemm(
        stream,
        alpha,
        Matrix::packed(a, m, k, order(args.a))?,
        Matrix::packed(b, k, n, order(args.b))?,
        beta,
        MatrixMut::packed(c, m, n, order(args.c))?,
    )
}

/// What cuBLAS takes for the same product; nothing where there is no cuBLAS or no GPU.
fn cublas_time(
    stream: &Stream,
    args: &GemmArgs,
    a: &Buffer<f32>,
    b: &Buffer<f32>,
) -> Result<Option<Duration>, Box<dyn std::error::Error>> {
    let GemmArgs {
        m,
        n,
        k,
        alpha,
        beta,
        ..
    } = *args;
    let cublas = match Cublas::new(stream) {
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
        alpha,
        beta,
    };
    let mut c = stream.zeroed::<f32>(m * n)?;
    let mut multiply = || cublas.sgemm(&problem, a.view(), b.view(), &mut c.view_mut());
    Ok(Some(args.timed.median(stream, &mut multiply)?))
}

/// Entries of C that are computed in f64 where all would take too long.
const SAMPLES: usize = 8192;
/// Multiply-adds in f64 that take about a second.
const QUICK: usize = 1 << 30;

fn deviation(args: &GemmArgs, a: &[f32], b: &[f32], old: &[f32], found: &[f32]) -> Deviation {
    let GemmArgs {
        m,
        n,
        k,
        alpha,
        beta,
        ..
    } = *args;
    let at = |order: Order, rows: usize, columns: usize, i: usize, j: usize| match order {
        Order::Row => i * columns + j,
        Order::Col => j * rows + i,
    };
    let entries: Vec<(usize, usize)> = if m.saturating_mul(n).saturating_mul(k) <= QUICK {
        (0..m * n).map(|entry| (entry / n, entry % n)).collect()
    } else {
        // The last row and column hold most mistakes at edges: they get half of the samples.
        let mut random = fastrand::Rng::with_seed(args.timed.seed);
        (0..SAMPLES)
            .map(|sample| match sample % 4 {
                0 => (m - 1, random.usize(..n)),
                1 => (random.usize(..m), n - 1),
                _ => (random.usize(..m), random.usize(..n)),
            })
            .collect()
    };
    let pairs: Vec<(f64, f64)> = entries
        .par_iter()
        .map(|&(i, j)| {
            let product: f64 = (0..k)
                .map(|l| a[at(args.a, m, k, i, l)] as f64 * b[at(args.b, k, n, l, j)] as f64)
                .sum();
            let entry = at(args.c, m, n, i, j);
            let old = if beta == 0.0 {
                0.0
            } else {
                beta as f64 * old[entry] as f64
            };
            (found[entry] as f64, alpha as f64 * product + old)
        })
        .collect();
    Deviation::of(pairs)
}
