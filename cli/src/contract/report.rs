//! The report of a run, in words or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cutlet::Stream;
use serde::Serialize;

use super::ContractArgs;
use super::problem::Problem;
use crate::backend::RanOn;
use crate::deviation::Deviation;
use crate::gemm::elements::Named;
use crate::gemm::report::found;
use crate::units;

/// What was measured.
#[derive(Clone, Copy)]
pub struct Measured {
    pub time: Duration,
    /// Bytes that are read and written.
    pub bytes: f64,
    pub check: Option<Deviation>,
}

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    device: RanOn,
    #[serde(flatten)]
    elements: Named,
    notation: String,
    /// The extents by mode.
    extents: BTreeMap<char, usize>,
    layouts: Layouts,
    /// How it is computed, a line each for the product, A, B and C.
    computed: Vec<String>,
    /// `None` if nothing was computed, as the next two.
    microseconds: Option<f64>,
    tflops: Option<f64>,
    /// Bytes of A, B and C, and of the old C if it is read, over the time.
    gigabytes_per_second: Option<f64>,
    check: Option<Deviation>,
}

/// The layouts of the tensors.
#[derive(Debug, Serialize)]
struct Layouts {
    a: String,
    b: String,
    c: String,
}

impl Report {
    /// The report of a contraction, and of what was measured if anything was.
    pub fn new(
        args: &ContractArgs,
        stream: &Stream,
        problem: &Problem,
        explained: &str,
        measured: Option<Measured>,
    ) -> Report {
        let per_second = |work: f64, measured: Measured| work / measured.time.as_secs_f64();
        let [a, b, c] = problem.layouts.each_ref().map(ToString::to_string);
        Report {
            device: RanOn::new(stream.device()),
            elements: args.elements.named(),
            notation: problem.notation.clone(),
            extents: problem.extents().iter().copied().collect(),
            layouts: Layouts { a, b, c },
            computed: explained.lines().map(str::to_string).collect(),
            microseconds: measured.map(|it| it.time.as_secs_f64() * 1e6),
            tflops: measured.map(|it| per_second(problem.operations(), it) / 1e12),
            gigabytes_per_second: measured.map(|it| per_second(it.bytes, it) / 1e9),
            check: measured.and_then(|it| it.check),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = (self.extents.iter())
            .map(|(mode, extent)| format!("{mode}={extent}"))
            .collect();
        writeln!(f, "device   {}", self.device)?;
        writeln!(
            f,
            "problem  {} {}, {}",
            self.elements,
            self.notation,
            extents.join(" ")
        )?;
        write!(f, "computed {}", self.computed.join("\n         "))?;
        if let (Some(microseconds), Some(tflops), Some(gigabytes)) =
            (self.microseconds, self.tflops, self.gigabytes_per_second)
        {
            let time = units::time(microseconds);
            let operations = units::speed(tflops * 1e12, self.elements.unit());
            let bytes = units::speed(gigabytes * 1e9, "B/s");
            write!(f, "\ntime     {time}, {operations}, {bytes}")?;
        }
        match &self.check {
            Some(check) => write!(f, "\nerror    {}", found(check)),
            None => Ok(()),
        }
    }
}
