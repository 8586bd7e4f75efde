//! `cutlet bench quantized`: results that the launch which computes them quantises to e4m3 with scales of blocks, each
//! beside two launches that do the same.

mod product;
mod swiglu;

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use cutlet::{Buffer, F8E4M3, MatrixMut, Order, Stream};
use cutlet_host::measure::{Contestants, Sampling, Timer};
use serde::Serialize;

use self::product::Product;
use self::swiglu::Swiglu;
use super::error::Result;
use crate::backend::{Backend, RanOn, no_figures};
use crate::measure::error::{self, Error};
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;
use crate::output::Output;
use crate::progress::ProgressArgs;
use crate::timed::extent;

/// Results that one launch computes and quantises to e4m3, each beside two launches.
#[derive(Args, Debug)]
pub struct QuantizedArgs {
    /// Shapes, separated by commas. 4096x4096x7168 is a product of m, n and k, and 8192x4096 is SwiGLU of so many rows
    /// with so many results. By default, two of each on a GPU, and one of each on the CPU.
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

/// The contestant that is one call: one launch, or what `Gemm::quantized` chooses for few rows.
const ONE: usize = 0;
/// The contestant that is two launches, with a result of bf16 between them.
const TWO: usize = 1;

/// Elements of a row that have a scale together.
pub const BLOCK: usize = 128;

/// The largest relative distance of right numbers of e4m3 from f64: they have four bits.
pub const TOLERANCE: f64 = 0.04;

/// Large entries, whose rounding is as large, are about so many times the typical one.
pub const LARGE: f64 = 4.0;

/// What is quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The product of e4m3 with scales of blocks, of m, n and k.
    Product([usize; 3]),
    /// SwiGLU of rows of bf16, and its results in a row.
    Swiglu([usize; 2]),
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let extents = text.split('x').map(extent).collect::<Result<Vec<_>, _>>()?;
        match extents[..] {
            [m, n, k] => Ok(Shape::Product([m, n, k])),
            [rows, columns] => Ok(Shape::Swiglu([rows, columns])),
            _ => Err(format!(
                "`{text}` is no shape; give m, n and k of a product, as 64x4096x7168, or rows and results of SwiGLU, as \
                 64x4096"
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Product([m, n, k]) => write!(f, "{m}x{n}x{k}"),
            Shape::Swiglu([rows, columns]) => write!(f, "{rows}x{columns}"),
        }
    }
}

impl Shape {
    /// Those that are measured by default.
    fn all(on_gpu: bool) -> Vec<Shape> {
        match on_gpu {
            true => vec![
                Shape::Product([4096, 4096, 7168]),
                Shape::Product([64, 4096, 7168]),
                Shape::Swiglu([8192, 4096]),
                Shape::Swiglu([64, 4096]),
            ],
            false => vec![Shape::Product([40, 264, 160]), Shape::Swiglu([5, 300])],
        }
    }

    /// The operation's name.
    fn operation(self) -> &'static str {
        match self {
            Shape::Product(_) => "product",
            Shape::Swiglu(_) => "swiglu",
        }
    }

    /// The operation, set up.
    fn work<'a>(self, setting: &'a Setting) -> error::Result<Box<dyn Work<Error = Error> + 'a>> {
        Ok(match self {
            Shape::Product(extents) => Box::new(Product::new(extents, setting)?),
            Shape::Swiglu(extents) => Box::new(Swiglu::new(extents, setting)?),
        })
    }
}

/// An operation whose result is quantised by both contestants.
trait Work: Contestants {
    /// What is wrong with the results that a contestant writes over NaN, if anything.
    ///
    /// # Errors
    /// If the device fails.
    fn wrong(&mut self, contestant: usize) -> error::Result<Option<String>>;
}

/// Rows of e4m3, and a scale for each block of them.
struct Quantised {
    rows: usize,
    columns: usize,
    codes: Buffer<F8E4M3>,
    /// One block of all rows after another, at multiples of 16 bytes.
    scales: Buffer<f32>,
}

impl Quantised {
    fn new(stream: &Stream, rows: usize, columns: usize) -> error::Result<Self> {
        Ok(Quantised {
            rows,
            columns,
            codes: stream.zeroed(rows * columns)?,
            scales: stream.zeroed(columns.div_ceil(BLOCK) * Self::ld_of_scales(rows))?,
        })
    }

    /// Bytes of so many rows and columns.
    fn bytes(rows: usize, columns: usize) -> usize {
        rows * (columns + size_of::<f32>() * columns.div_ceil(BLOCK))
    }

    /// Scales from one block of a row to its next one.
    fn ld_of_scales(rows: usize) -> usize {
        rows.next_multiple_of(4)
    }

    /// The numbers and the scales, for writing.
    fn parts(&mut self) -> cutlet::Result<(MatrixMut<'_, F8E4M3>, MatrixMut<'_, f32>)> {
        let (rows, columns) = (self.rows, self.columns);
        let blocks = columns.div_ceil(BLOCK);
        let ld = Self::ld_of_scales(rows);
        Ok((
            MatrixMut::row_major(&mut self.codes, rows, columns)?,
            MatrixMut::with_ld(&mut self.scales, rows, blocks, Order::ColMajor, ld)?,
        ))
    }

    /// Fills all of it with NaN.
    fn poison(&mut self, stream: &Stream) -> error::Result<()> {
        stream.fill_bytes(self.codes.view_mut(), 0xff)?;
        Ok(stream.fill_bytes(self.scales.view_mut(), 0xff)?)
    }

    /// The numbers times their scales.
    fn numbers(&self, stream: &Stream) -> error::Result<Vec<f32>> {
        let (codes, scales) = (
            stream.download(&self.codes)?,
            stream.download(&self.scales)?,
        );
        let ld = Self::ld_of_scales(self.rows);
        let number = |(at, code): (usize, &F8E4M3)| {
            let (row, column) = (at / self.columns, at % self.columns);
            code.to_f32() * scales[column / BLOCK * ld + row]
        };
        Ok(codes.iter().enumerate().map(number).collect())
    }
}

/// The result of the command.
#[derive(Serialize)]
struct Report {
    device: RanOn,
    rows: Vec<RowReport>,
}

/// What was found out about a shape.
#[derive(Serialize)]
struct RowReport {
    operation: &'static str,
    shape: String,
    /// Of one launch.
    microseconds: f64,
    /// Of two launches.
    two_microseconds: f64,
    /// The time of two launches over that of one.
    ratio: Spread,
    /// What is wrong with the results of either, if anything.
    wrong: Option<String>,
}

impl fmt::Display for RowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} {}", self.operation, self.shape);
        write!(
            f,
            "{name:<26}{:>9.2} us, two launches {:>9.2} us, ratio {:.3}, {}",
            self.microseconds,
            self.two_microseconds,
            self.ratio.median,
            self.wrong.as_deref().unwrap_or("right"),
        )
    }
}

/// Runs the command.
pub fn run(args: &QuantizedArgs) -> Result<ExitCode> {
    let device = args.backend.device()?;
    let output = &args.output;
    let setting = Setting {
        progress: args.progress.beside(output),
        ..Setting::new(&device, args.seed)?
    };
    let mut timer = Timer::new(&setting.stream).map_err(cutlet::Error::from)?;
    output.say(device.describe())?;
    if let Some(warning) = no_figures(&device) {
        output.say(warning)?;
    }
    let shapes = match args.shapes.as_slice() {
        [] => Shape::all(setting.on_gpu()),
        shapes => shapes.to_vec(),
    };
    setting.progress.begin("", shapes.len());
    let rows = shapes
        .into_iter()
        .map(|shape| row(args, &setting, &mut timer, shape))
        .collect::<Result<Vec<_>>>()?;
    setting.progress.end();
    let all_right = rows.iter().all(|row| row.wrong.is_none());
    output.answer(&Report {
        device: RanOn::new(&device),
        rows,
    })?;
    if !all_right {
        output.error("a result is wrong");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Times and checks a shape.
fn row(
    args: &QuantizedArgs,
    setting: &Setting,
    timer: &mut Timer,
    shape: Shape,
) -> Result<RowReport> {
    let progress = &setting.progress;
    progress.now(&format!("{} {shape}", shape.operation()));
    progress.step("inputs");
    let mut work = shape.work(setting)?;
    progress.step("checking");
    let mut wrong = None;
    for (contestant, name) in [(ONE, "one launch"), (TWO, "two launches")] {
        let found = work.wrong(contestant)?;
        wrong = wrong.or(found.map(|it| format!("{name} against f64: {it}")));
    }
    let sampling = Sampling::bursts(args.rounds as usize, setting.on_gpu());
    let times = timer.compare(&mut *work, &[ONE, TWO], &sampling)?;
    let [one, two] = [&times[0].rounds, &times[1].rounds];
    let report = RowReport {
        operation: shape.operation(),
        shape: shape.to_string(),
        microseconds: Spread::of(one).median,
        two_microseconds: Spread::of(two).median,
        ratio: Spread::of_ratio(two, one),
        wrong,
    };
    progress.above(|| args.output.say(&report))?;
    progress.advance(1);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written() {
        for text in ["64x4096", "1x2x3"] {
            let shape: Shape = text.parse().unwrap();
            assert_eq!(shape.to_string(), text);
        }
        for text in ["64", "64x", "0x3", "axb", "1x2x3x4"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
