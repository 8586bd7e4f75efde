//! `cutlet scatter`: rows to random rows of a table, stored or added, timed and checked.

use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cutlet::{AddElement, Buffer, DeviceData, Matrix, MatrixMut, Scatter, ScatterAdd, Stream};
use cutlet_device::Float;
use cutlet_host::Backend;
use half::{bf16, f16};

use crate::host_memory::{self, room};
use crate::progress::Progress;
use crate::rows::{DrawnIndex, IndexType, Indices, Moved, Report, RowsArgs};

/// Scatter rows to random rows of a table and time it: table[indices[r]] = source[r], or += with --add.
#[derive(Args, Debug)]
pub struct ScatterArgs {
    #[command(flatten)]
    pub rows: RowsArgs,
    /// Add rows of numbers of this type to the rows of the table, instead of storing them.
    #[arg(long, value_enum)]
    add: Option<Number>,
    /// Add rows with the same index in an order that depends on the indices alone.
    #[arg(long, requires = "add")]
    in_order: bool,
}

/// A type of numbers that are added.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Number {
    F32,
    F16,
    Bf16,
}

/// Runs the command.
pub fn run(args: &ScatterArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let stream = args.rows.timed.stream()?;
    let report = match args.rows.index {
        IndexType::I32 => with_index::<i32>(&stream, args)?,
        IndexType::I64 => with_index::<i64>(&stream, args)?,
    };
    args.rows.conclude(&report)
}

fn with_index<X: DrawnIndex>(
    stream: &Stream,
    args: &ScatterArgs,
) -> Result<Report, Box<dyn std::error::Error>> {
    let problem = Data::<X> {
        stream,
        args,
        progress: args.rows.timed.progress(),
        index: PhantomData,
    };
    match args.add {
        None => problem.store(),
        Some(Number::F32) => problem.add::<f32>(),
        Some(Number::F16) => problem.add::<f16>(),
        Some(Number::Bf16) => problem.add::<bf16>(),
    }
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<X>(args: &RowsArgs, backend: Backend) -> u128 {
    let [table_rows, rows, row_bytes] =
        [args.table_rows, args.rows, args.row_bytes].map(|extent| extent as u128);
    let (table, source) = (table_rows * row_bytes, rows * row_bytes);
    let on_device = match backend {
        Backend::Gpu => 0,
        // The operands, and source and target of the copy.
        Backend::Cpu => table + rows * size_of::<X>() as u128 + 3 * source,
    };
    // The source, the indices, and the table twice.
    source + args.bytes_of_indices::<X>() + 2 * table + on_device
}

/// The data of a run, before it is made.
struct Data<'a, X> {
    stream: &'a Stream,
    args: &'a ScatterArgs,
    progress: Progress,
    index: PhantomData<X>,
}

/// The data of a run.
struct Made<T: DeviceData, X: DeviceData> {
    columns: usize,
    source: Vec<T>,
    picks: Vec<Option<u32>>,
    on_source: Buffer<T>,
    on_indices: Buffer<X>,
}

impl<T: DeviceData, X: DeviceData> Made<T, X> {
    /// The rows of the source that are not left out, each with its row of the table.
    fn kept(&self) -> impl Iterator<Item = (usize, usize)> {
        let rows = self.picks.iter().enumerate();
        rows.filter_map(|(row, pick)| Some((row, (*pick)? as usize)))
    }
}

impl<X: DrawnIndex> Data<'_, X> {
    fn rows(&self) -> &RowsArgs {
        &self.args.rows
    }

    /// Random elements, and random rows of the table.
    fn made<T: DeviceData>(
        &self,
        mut element: impl FnMut(&mut fastrand::Rng) -> T,
    ) -> Result<Made<T, X>, Box<dyn std::error::Error>> {
        let RowsArgs {
            rows, row_bytes, ..
        } = *self.rows();
        host_memory::expect(host_bytes::<X>(self.rows(), self.stream.device().backend()))?;
        if !row_bytes.is_multiple_of(size_of::<T>()) {
            let bytes = size_of::<T>();
            let found = format!(
                "--row-bytes {row_bytes} was asked for, but a number has {bytes} bytes; give a multiple"
            );
            return Err(found.into());
        }
        let columns = row_bytes / size_of::<T>();
        let mut source = room::<T>(rows * columns)?;
        let mut random = fastrand::Rng::with_seed(self.rows().timed.seed);
        self.progress.begin("random rows", rows * columns);
        let elements = (0..rows * columns).map(|_| element(&mut random));
        self.progress.extend(&mut source, elements);
        let indices = self.rows().indices::<X>(&mut random, &self.progress)?;
        let Indices { picks, indices } = indices;
        self.progress.wait("upload");
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
        let (rows, table_rows) = (self.rows().rows, self.rows().table_rows);
        let mut table = self.stream.zeroed::<u8>(table_rows * made.columns)?;
        let mut plan = Scatter::new(self.stream.device())?.out_of_range(self.rows().out_of_range());
        let mut enqueue = |table: &mut Buffer<u8>| {
            plan.enqueue(
                self.stream,
                Matrix::row_major(&made.on_source, rows, made.columns)?,
                &made.on_indices,
                MatrixMut::row_major(table, table_rows, made.columns)?,
            )
        };
        self.progress.wait("first scatter");
        enqueue(&mut table)?;
        let found = self.stream.download(&table)?;
        let time = self.median(|| enqueue(&mut table))?;
        plan.check(self.stream)?;
        let wrong = || {
            self.progress.begin("comparison", rows);
            // An element is right if it is that of any row with its index.
            let mut right: Vec<bool> = found.iter().map(|&byte| byte == 0).collect();
            let mut stored = vec![false; table_rows];
            for (row, pick) in made.kept() {
                self.progress.advance(1);
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
        let moved = Moved {
            operation: "scatter".to_string(),
            time,
            times: 2,
            wrong_elements: self.rows().check.then(wrong),
        };
        self.rows().report(self.stream, &self.progress, moved)
    }

    /// Adds rows of small whole numbers, whose sums are exact unless very many rows have the same index.
    fn add<T: AddElement + Float>(&self) -> Result<Report, Box<dyn std::error::Error>> {
        let made = self.made(|random| T::from_f32(f32::from(random.i8(-1..=1))))?;
        let (rows, table_rows) = (self.rows().rows, self.rows().table_rows);
        let mut table = self.stream.zeroed::<T>(table_rows * made.columns)?;
        let mut plan =
            ScatterAdd::new(self.stream.device())?.out_of_range(self.rows().out_of_range());
        if self.args.in_order {
            plan = plan.in_order();
        }
        let mut enqueue = |table: &mut Buffer<T>| {
            plan.enqueue(
                self.stream,
                Matrix::row_major(&made.on_source, rows, made.columns)?,
                &made.on_indices,
                MatrixMut::row_major(table, table_rows, made.columns)?,
            )
        };
        self.progress.wait("first scatter");
        enqueue(&mut table)?;
        let found = self.stream.download(&table)?;
        let time = self.median(|| enqueue(&mut table))?;
        plan.check(self.stream)?;
        let wrong = || {
            self.progress.begin("sums on the host", rows);
            let mut sums = vec![0.0; found.len()];
            for (row, pick) in made.kept() {
                self.progress.advance(1);
                for column in 0..made.columns {
                    let term = made.source[row * made.columns + column].to_f32();
                    sums[pick * made.columns + column] += term;
                }
            }
            let pairs = found.iter().zip(&sums);
            pairs.filter(|(found, sum)| found.to_f32() != **sum).count()
        };
        let how = if self.args.in_order { " in order" } else { "" };
        let number = self
            .args
            .add
            .map_or_else(String::new, |it| format!("{it:?}"));
        let moved = Moved {
            operation: format!("scatter-add {}{how}", number.to_lowercase()),
            time,
            times: 3,
            wrong_elements: self.rows().check.then(wrong),
        };
        self.rows().report(self.stream, &self.progress, moved)
    }

    /// The median time of a scatter.
    fn median(
        &self,
        scatter: impl FnMut() -> cutlet::Result<()>,
    ) -> Result<Duration, Box<dyn std::error::Error>> {
        let timed = &self.rows().timed;
        timed.median(self.stream, &self.progress, "scatters", scatter)
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
        assert_eq!(host_bytes::<i32>(&scatter.rows, Backend::Gpu), on_gpu);
        let on_cpu = on_gpu + table + indices + 3 * source;
        assert_eq!(host_bytes::<i32>(&scatter.rows, Backend::Cpu), on_cpu);
    }
}
