//! The report of a run, in words or as JSON.

use std::fmt;
use std::time::Duration;

use cutlet::Stream;
use serde::Serialize;

use super::GemmArgs;
use super::elements::Named;
use crate::backend::RanOn;
use crate::deviation::Deviation;
use crate::measure::scales::Scales;
use crate::units;

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    device: RanOn,
    #[serde(flatten)]
    elements: Named,
    m: usize,
    n: usize,
    k: usize,
    /// What is fused; `None` if nothing is.
    epilogue: Option<String>,
    /// Which elements have a scale in common; `None` if there are no scales.
    scales: Option<&'static str>,
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
        Report {
            device: RanOn::new(stream.device()),
            elements: args.elements.named(),
            m,
            n,
            k,
            epilogue: match args.epilogue() {
                none if none.is_none() => None,
                epilogue => Some(epilogue.to_string()),
            },
            scales: (args.scales != Scales::None).then(|| args.scales.name()),
            microseconds: time.as_secs_f64() * 1e6,
            tflops: 2.0 * m as f64 * n as f64 * k as f64 / time.as_secs_f64() / 1e12,
            cublas_microseconds: cublas.map(|time| time.as_secs_f64() * 1e6),
            check,
        }
    }

    /// The problem: `e4m3 into bf16 512 x 512 x 512 bias+gelu, scales: outer`.
    fn problem(&self) -> String {
        let Report {
            elements, m, n, k, ..
        } = self;
        let epilogue = self.epilogue.as_ref();
        let epilogue = epilogue.map_or(String::new(), |epilogue| format!(" {epilogue}"));
        let scales = self.scales;
        let scales = scales.map_or(String::new(), |scales| format!(", scales: {scales}"));
        format!("{elements} {m} x {n} x {k}{epilogue}{scales}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            microseconds,
            tflops,
            ..
        } = *self;
        let unit = self.elements.unit();
        writeln!(f, "device   {}", self.device)?;
        writeln!(f, "problem  {}", self.problem())?;
        let (time, speed) = (units::time(microseconds), units::speed(tflops * 1e12, unit));
        write!(f, "time     {time}, {speed}")?;
        if let Some(cublas) = self.cublas_microseconds {
            let ratio = units::figure(cublas / microseconds);
            let time = units::time(cublas);
            write!(f, "\ncuBLASLt {time}, {ratio}x its speed")?;
        }
        match &self.check {
            Some(check) => write!(f, "\nerror    {}", found(check)),
            None => Ok(()),
        }
    }
}

/// The findings of a check.
pub fn found(check: &Deviation) -> String {
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
