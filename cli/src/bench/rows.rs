//! `cutlet bench rows`: operations on rows of bf16, each against a copy of as many bytes, beside PyTorch's compiled ones
//! where a Python has it.

mod case;
mod expected;
mod operation;

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use cutlet_host::measure::{Sampling, Timer};
use serde::Serialize;

use self::case::Case;
use self::operation::Operation;
use super::error::Result;
use super::pytorch::{Compared, PyTorch};
use crate::backend::{Backend, RanOn, no_figures};
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;
use crate::output::Output;
use crate::progress::ProgressArgs;
use crate::timed::extent;

/// Operations on rows of bf16, each against a copy of as many bytes, beside PyTorch's compiled ones.
#[derive(Args, Debug)]
pub struct RowsArgs {
    /// Operations, separated by commas. By default, all.
    #[arg(long, value_enum, value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Rows and columns, separated by commas: 8192x4096. By default, 8192x4096 and 64x4096 on a GPU, and a small shape on
    /// the CPU; of sampling, 16x128256. Rotations have heads of 128 columns, and leave out other shapes.
    #[arg(long, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Rounds of each time.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// The device.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// The extents of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('x') {
            Some((rows, columns)) => Ok(Shape {
                rows: extent(rows)?,
                columns: extent(columns)?,
            }),
            None => Err(format!(
                "`{text}` is no shape; give rows and columns, as 64x4096"
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

/// The result of the command.
#[derive(Serialize)]
struct Report {
    device: RanOn,
    rows: Vec<RowReport>,
    pytorch: Option<PyTorch>,
}

/// What was found out about an operation.
#[derive(Serialize)]
struct RowReport {
    operation: Operation,
    #[serde(flatten)]
    shape: Shape,
    /// Bytes that are read and written.
    bytes: usize,
    microseconds: f64,
    /// Of a copy that reads and writes as many bytes.
    copy_microseconds: f64,
    /// The copy's time over the operation's.
    ratio: Spread,
    /// Whether the rows that were compared are right.
    right: bool,
}

/// Runs the command.
pub fn run(args: &RowsArgs) -> Result<ExitCode> {
    let device = args.backend.device()?;
    let output = &args.output;
    let setting = Setting {
        progress: args.progress.beside(output),
        ..Setting::new(&device, args.seed)?
    };
    let mut timer = Timer::new(&setting.stream).map_err(cutlet::Error::from)?;
    let problems = problems(args, setting.on_gpu());
    output.say(device.describe())?;
    if let Some(warning) = no_figures(&device) {
        output.say(warning)?;
    }
    setting.progress.begin("", problems.len());
    let mut rows = Vec::new();
    for &(operation, shape) in &problems {
        rows.push(row(args, &setting, &mut timer, operation, shape)?);
    }
    let pytorch = setting.on_gpu().then(|| {
        setting.progress.wait("PyTorch");
        PyTorch::of(&for_pytorch(&rows, args.rounds))
    });
    setting.progress.end();
    if let Some(pytorch) = &pytorch {
        output.say(format!("\n{pytorch}"))?;
    }
    let all_right = rows.iter().all(|row| row.right);
    output.answer(&Report {
        device: RanOn::new(&device),
        rows,
        pytorch,
    })?;
    if !all_right {
        output.error("a result is wrong");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The operations with their shapes.
fn problems(args: &RowsArgs, on_gpu: bool) -> Vec<(Operation, Shape)> {
    let operations = match args.operations.as_slice() {
        [] => Operation::value_variants(),
        operations => operations,
    };
    let of_operation = |&operation: &Operation| {
        let shapes = match args.shapes.as_slice() {
            [] => operation.shapes(on_gpu),
            shapes => shapes.to_vec(),
        };
        let fitting = shapes.into_iter().filter(move |&it| operation.fits(it));
        fitting.map(move |shape| (operation, shape))
    };
    operations.iter().flat_map(of_operation).collect()
}

/// Times and checks an operation.
fn row(
    args: &RowsArgs,
    setting: &Setting,
    timer: &mut Timer,
    operation: Operation,
    shape: Shape,
) -> Result<RowReport> {
    let progress = &setting.progress;
    progress.now(&format!("{operation} {shape}"));
    progress.step("inputs");
    let mut case = Case::new(operation, shape, setting)?;
    let sampling = Sampling::bursts(args.rounds as usize, setting.on_gpu());
    let times = timer.compare(&mut case, &[case::OWN, case::COPY], &sampling)?;
    progress.step("checking");
    let right = case.check(&setting.stream)?;
    let [own, copy] = [&times[0].rounds, &times[1].rounds];
    let report = RowReport {
        operation,
        shape,
        bytes: operation.bytes(shape),
        microseconds: Spread::of(own).median,
        copy_microseconds: Spread::of(copy).median,
        ratio: Spread::of_ratio(copy, own),
        right,
    };
    progress.above(|| args.output.say(&report))?;
    progress.advance(1);
    Ok(report)
}

impl fmt::Display for RowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} {}", self.operation, self.shape);
        write!(
            f,
            "{name:<30}{:>9.2} us, a copy {:>8.2} us, ratio {:.3}, {}",
            self.microseconds,
            self.copy_microseconds,
            self.ratio.median,
            if self.right { "right" } else { "wrong" },
        )
    }
}

/// The problems as PyTorch is asked to solve them.
fn for_pytorch(rows: &[RowReport], rounds: u32) -> Vec<Compared> {
    let compared = rows.iter().filter_map(|row| {
        let Shape {
            rows: count,
            columns,
        } = row.shape;
        let operation = row.operation.in_pytorch()?;
        Some(Compared {
            id: format!("{} {}", row.operation, row.shape),
            problem: format!("rows {rounds} {operation} {count} {columns}"),
            ours: Some(row.microseconds),
        })
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written() {
        let shape: Shape = "64x4096".parse().unwrap();
        assert_eq!(shape.to_string(), "64x4096");
        for text in ["64", "64x", "0x3", "axb"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
