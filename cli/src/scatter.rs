//! `cutlet scatter`: rows to random rows of a table, stored or added, timed and checked.

use std::fmt;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use cutlet::{
    AddElement, Buffer, DeviceData, Index, Matrix, MatrixMut, Scatter, ScatterAdd, Stream,
};
use cutlet_device::Float;
use cutlet_host::Backend;
use half::{bf16, f16};
use serde::Serialize;

use crate::gather::IndexType;
use crate::host_memory::{self, room};
use crate::output::complain;
use crate::timed::{TimedArgs, extent};

/// Scatter rows to random rows of a table and time it: table[indices[r]] = source[r], or += with --add.
#[derive(Args, Debug)]
pub struct ScatterArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    table_rows: usize,
    /// Rows to scatter.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    rows: usize,
    /// Bytes in a row.
    #[arg(long, default_value_t = 2048, value_parser = extent, allow_hyphen_values = true)]
    row_bytes: usize,
    /// Type of an index.
    #[arg(long, value_enum, default_value_t)]
    index: IndexType,
    /// Add rows of numbers of this type to the rows of the table, instead of storing them.
    #[arg(long, value_enum)]
    add: Option<Number>,
    /// Add rows with the same index in the order of the source.
    #[arg(long, requires = "add")]
    in_order: bool,
    /// Compare the whole table with what it must be.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    timed: TimedArgs,
}

/// A type of numbers that are added.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Number {
    F32,
    F16,
    Bf16,
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    backend: String,
    operation: String,
    table_rows: usize,
    rows: usize,
    row_bytes: usize,
    microseconds: f64,
    /// Bytes read plus bytes written, over the time. Sums are read and written.
    gigabytes_per_second: f64,
    /// The speed of a copy of as many contiguous bytes.
    copy_gigabytes_per_second: f64,
    wrong_elements: Option<usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (speed, copy) = (self.gigabytes_per_second, self.copy_gigabytes_per_second);
        writeln!(f, "backend  {}", self.backend)?;
        writeln!(
            f,
            "problem  {}: {} rows of {} bytes to a table of {}",
            self.operation, self.rows, self.row_bytes, self.table_rows
        )?;
        writeln!(
            f,
            "time     {:.1} us, {speed:.1} GB/s read and written",
            self.microseconds
        )?;
        write!(
            f,
            "copy     {copy:.1} GB/s, the scatter has {:.2}x its speed",
            speed / copy
        )?;
        if let Some(wrong) = self.wrong_elements {
            write!(f, "\nerror    {wrong} elements of the table are wrong")?;
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &ScatterArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let stream = args.timed.stream()?;
    let report = match args.index {
        IndexType::I32 => with_index(&stream, args, |index| index as i32)?,
        IndexType::I64 => with_index(&stream, args, |index| index as i64)?,
    };
    args.timed.print(&report)?;
    if report.wrong_elements.is_some_and(|wrong| wrong > 0) {
        complain("error: the table differs from what the indices ask for");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn with_index<X: Index>(
    stream: &Stream,
    args: &ScatterArgs,
    to_index: impl Fn(usize) -> X,
) -> Result<Report, Box<dyn std::error::Error>> {
    let problem = Data {
        stream,
        args,
        to_index,
    };
    match args.add {
        None => problem.store(),
        Some(Number::F32) => problem.add::<f32>(),
        Some(Number::F16) => problem.add::<f16>(),
        Some(Number::Bf16) => problem.add::<bf16>(),
    }
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<X>(args: &ScatterArgs, backend: Backend) -> u128 {
    let [table_rows, rows, row_bytes] =
        [args.table_rows, args.rows, args.row_bytes].map(|extent| extent as u128);
    let (table, source) = (table_rows * row_bytes, rows * row_bytes);
    let indices = rows * size_of::<X>() as u128;
    let on_device = match backend {
        Backend::Gpu => 0,
        // The operands, and source and target of the copy.
        Backend::Cpu => table + indices + 3 * source,
    };
    // The source, the picks, the indices, and the table twice.
    source + rows * size_of::<usize>() as u128 + indices + 2 * table + on_device
}

/// The data of a run, before it is made.
struct Data<'a, F> {
    stream: &'a Stream,
    args: &'a ScatterArgs,
    to_index: F,
}

/// The data of a run.
struct Made<T: DeviceData, X: DeviceData> {
    columns: usize,
    source: Vec<T>,
    picks: Vec<usize>,
    on_source: Buffer<T>,
    on_indices: Buffer<X>,
}

impl<X: Index, F: Fn(usize) -> X> Data<'_, F> {
    /// Random elements, and random rows of the table.
    fn made<T: DeviceData>(
        &self,
        mut element: impl FnMut(&mut fastrand::Rng) -> T,
    ) -> Result<Made<T, X>, Box<dyn std::error::Error>> {
        let ScatterArgs {
            rows,
            table_rows,
            row_bytes,
            ..
        } = *self.args;
        host_memory::expect(host_bytes::<X>(self.args, self.stream.device().backend()))?;
        if !row_bytes.is_multiple_of(size_of::<T>()) {
            let bytes = size_of::<T>();
            let found = format!(
                "--row-bytes {row_bytes} was asked for, but a number has {bytes} bytes; give a multiple"
            );
            return Err(found.into());
        }
        let columns = row_bytes / size_of::<T>();
        let (mut source, mut picks) = (room::<T>(rows * columns)?, room::<usize>(rows)?);
        let mut random = fastrand::Rng::with_seed(self.args.timed.seed);
        source.extend((0..rows * columns).map(|_| element(&mut random)));
        picks.extend((0..rows).map(|_| random.usize(..table_rows)));
        let indices: Vec<X> = picks.iter().map(|&pick| (self.to_index)(pick)).collect();
        Ok(Made {
            columns,
            on_source: self.stream.upload(&source)?,
            on_indices: self.stream.upload(&indices)?,
            source,
            picks,
        })
    }

    /// Stores rows of random bytes.
    fn store(&self) -> Result<Report, Box<dyn std::error::Error>> {
        let made = self.made(|random| random.u8(..))?;
        let (rows, table_rows) = (self.args.rows, self.args.table_rows);
        let mut table = self.stream.zeroed::<u8>(table_rows * made.columns)?;
        let mut plan = Scatter::new(self.stream)?;
        let mut enqueue = |table: &mut Buffer<u8>| {
            plan.enqueue(
                Matrix::row_major(&made.on_source, rows, made.columns)?,
                &made.on_indices,
                MatrixMut::row_major(table, table_rows, made.columns)?,
            )
        };
        enqueue(&mut table)?;
        let found = self.stream.download(&table)?;
        let time = self
            .args
            .timed
            .median(self.stream, || enqueue(&mut table))?;
        plan.check()?;
        let wrong = || {
            // An element is right if it is that of any row with its index.
            let mut right: Vec<bool> = found.iter().map(|&byte| byte == 0).collect();
            let mut stored = vec![false; table_rows];
            for (row, &pick) in made.picks.iter().enumerate() {
                if !std::mem::replace(&mut stored[pick], true) {
                    right[pick * made.columns..][..made.columns].fill(false);
                }
                for column in 0..made.columns {
                    let at = pick * made.columns + column;
                    right[at] |= found[at] == made.source[row * made.columns + column];
                }
            }
            right.iter().filter(|right| !**right).count()
        };
        let wrong = self.args.check.then(wrong);
        self.report("store".to_string(), time.as_secs_f64(), 2, wrong)
    }

    /// Adds rows of small whole numbers, whose sums are exact unless very many rows have the same index.
    fn add<T: AddElement + Float>(&self) -> Result<Report, Box<dyn std::error::Error>> {
        let made = self.made(|random| T::from_f32(f32::from(random.i8(-1..=1))))?;
        let (rows, table_rows) = (self.args.rows, self.args.table_rows);
        let mut table = self.stream.zeroed::<T>(table_rows * made.columns)?;
        let mut plan = ScatterAdd::new(self.stream)?;
        if self.args.in_order {
            plan = plan.in_order();
        }
        let mut enqueue = |table: &mut Buffer<T>| {
            plan.enqueue(
                Matrix::row_major(&made.on_source, rows, made.columns)?,
                &made.on_indices,
                MatrixMut::row_major(table, table_rows, made.columns)?,
            )
        };
        enqueue(&mut table)?;
        let found = self.stream.download(&table)?;
        let time = self
            .args
            .timed
            .median(self.stream, || enqueue(&mut table))?;
        plan.check()?;
        let wrong = || {
            let mut sums = vec![0.0; found.len()];
            for (row, &pick) in made.picks.iter().enumerate() {
                for column in 0..made.columns {
                    let term = made.source[row * made.columns + column].to_f32();
                    sums[pick * made.columns + column] += term;
                }
            }
            let pairs = found.iter().zip(&sums);
            pairs.filter(|(found, sum)| found.to_f32() != **sum).count()
        };
        let wrong = self.args.check.then(wrong);
        let how = if self.args.in_order { " in order" } else { "" };
        let number = self
            .args
            .add
            .map_or_else(String::new, |it| format!("{it:?}"));
        let operation = format!("add {}{how}", number.to_lowercase());
        self.report(operation, time.as_secs_f64(), 3, wrong)
    }

    /// The report of an operation that moves each byte of the source `times` times.
    fn report(
        &self,
        operation: String,
        seconds: f64,
        times: usize,
        wrong_elements: Option<usize>,
    ) -> Result<Report, Box<dyn std::error::Error>> {
        let ScatterArgs {
            table_rows,
            rows,
            row_bytes,
            ref timed,
            ..
        } = *self.args;
        let bytes = rows * row_bytes;
        let source = self.stream.zeroed::<u8>(bytes)?;
        let mut target = self.stream.zeroed::<u8>(bytes)?;
        let copy = timed.median(self.stream, || self.stream.copy(&source, &mut target))?;
        Ok(Report {
            backend: self.stream.device().describe().to_string(),
            operation,
            table_rows,
            rows,
            row_bytes,
            microseconds: seconds * 1e6,
            gigabytes_per_second: (times * bytes) as f64 / seconds / 1e9,
            copy_gigabytes_per_second: 2.0 * bytes as f64 / copy.as_secs_f64() / 1e9,
            wrong_elements,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        scatter: ScatterArgs,
    }

    #[test]
    fn all_memory_of_the_data_is_counted() {
        let words = "scatter --table-rows 100 --rows 10 --row-bytes 7";
        let Alone { scatter } = Alone::parse_from(words.split(' '));
        let (source, picks, indices, table) = (70, 80, 40, 700);
        let on_gpu = source + picks + indices + 2 * table;
        assert_eq!(host_bytes::<i32>(&scatter, Backend::Gpu), on_gpu);
        let on_cpu = on_gpu + table + indices + 3 * source;
        assert_eq!(host_bytes::<i32>(&scatter, Backend::Cpu), on_cpu);
    }
}
