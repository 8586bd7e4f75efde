//! The report of a run, in words or as JSON.

use std::fmt;
use std::time::Duration;

use cutlet::Stream;
use serde::Serialize;

use super::{GemmArgs, Precision};
use crate::deviation::Deviation;

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct Report {
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

impl Report {
    /// The report of a GEMM that took `time`, and cuBLASLt `cublas`.
    pub fn new(
        args: &GemmArgs,
        stream: &Stream,
        time: Duration,
        cublas: Option<Duration>,
        check: Option<Deviation>,
    ) -> Report {
        let [m, n, k] = args.extents();
        let precision = cutlet::Precision::from(args.precision);
        Report {
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
        }
    }

    /// The problem: `bf16 into f32 512 x 512 x 512 bias+gelu`.
    fn problem(&self) -> String {
        let Report {
            dtype,
            c_dtype,
            m,
            n,
            k,
            ..
        } = self;
        let into = match c_dtype == dtype {
            true => String::new(),
            false => format!(" into {c_dtype}"),
        };
        let precision = match &self.precision {
            Some(precision) => format!(" in {precision}"),
            None => String::new(),
        };
        let epilogue = match self.epilogue.as_str() {
            "" => String::new(),
            epilogue => format!(" {epilogue}"),
        };
        format!("{dtype}{into}{precision} {m} x {n} x {k}{epilogue}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            microseconds,
            tflops,
            ..
        } = self;
        let unit = match self.dtype {
            "i8" => "TOP/s",
            _ => "TFLOP/s",
        };
        writeln!(f, "backend  {}", self.backend)?;
        writeln!(f, "problem  {}", self.problem())?;
        write!(f, "time     {microseconds:.1} us, {tflops:.3} {unit}")?;
        if let Some(cublas) = self.cublas_microseconds {
            let ratio = cublas / microseconds;
            write!(f, "\ncuBLASLt {cublas:.1} us, {ratio:.2}x its speed")?;
        }
        match &self.check {
            Some(check) => write!(f, "\nerror    {}", found(check)),
            None => Ok(()),
        }
    }
}

/// The findings of a check.
fn found(check: &Deviation) -> String {
    if let Some(no_numbers) = check.no_numbers() {
        return no_numbers;
    }
    let Deviation {
        relative,
        max,
        entries,
        rightly_none,
        ..
    } = check;
    let none = match rightly_none {
        0 => String::new(),
        _ => format!(", of which {rightly_none} are infinite or NaN as they must be"),
    };
    format!("{relative:.2e} relative, {max:.2e} at most, of {entries} entries{none}")
}
