//! `cutlet gather`: rows of a random table by random indices, timed and checked.

use std::fmt;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use cutlet::{Gather, Index, Matrix, MatrixMut, Stream};
use cutlet_host::Backend;
use serde::Serialize;

use crate::host_memory::{self, room};
use crate::output::complain;
use crate::timed::{TimedArgs, extent};

/// Gather rows of a table by random indices and time it: output[r] = table[indices[r]].
#[derive(Args, Debug)]
pub struct GatherArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    table_rows: usize,
    /// Rows to gather.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    rows: usize,
    /// Bytes in a row.
    #[arg(long, default_value_t = 2048, value_parser = extent, allow_hyphen_values = true)]
    row_bytes: usize,
    /// Type of an index.
    #[arg(long, value_enum, default_value_t)]
    index: IndexType,
    /// Compare every byte with the rows that the indices ask for.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    timed: TimedArgs,
}

/// The type of an index.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum IndexType {
    #[default]
    I32,
    I64,
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    backend: String,
    table_rows: usize,
    rows: usize,
    row_bytes: usize,
    microseconds: f64,
    /// Bytes read plus bytes written, over the time.
    gigabytes_per_second: f64,
    /// The speed of a copy of as many contiguous bytes.
    copy_gigabytes_per_second: f64,
    wrong_bytes: Option<usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            table_rows,
            rows,
            row_bytes,
            ..
        } = self;
        let (speed, copy) = (self.gigabytes_per_second, self.copy_gigabytes_per_second);
        writeln!(f, "backend  {}", self.backend)?;
        writeln!(
            f,
            "problem  {rows} of {table_rows} rows of {row_bytes} bytes"
        )?;
        writeln!(
            f,
            "time     {:.1} us, {speed:.1} GB/s read and written",
            self.microseconds
        )?;
        write!(
            f,
            "copy     {copy:.1} GB/s, the gather has {:.2}x its speed",
            speed / copy
        )?;
        if let Some(wrong) = self.wrong_bytes {
            write!(
                f,
                "\nerror    {wrong} bytes of {} are wrong",
                rows * row_bytes
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &GatherArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let stream = args.timed.stream()?;
    let report = match args.index {
        IndexType::I32 => gather::<i32>(&stream, args, |index| index as i32)?,
        IndexType::I64 => gather::<i64>(&stream, args, |index| index as i64)?,
    };
    args.timed.print(&report)?;
    if report.wrong_bytes.is_some_and(|wrong| wrong > 0) {
        complain("error: the gathered rows differ from the rows that the indices ask for");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<X>(args: &GatherArgs, backend: Backend) -> u128 {
    let [table_rows, rows, row_bytes] =
        [args.table_rows, args.rows, args.row_bytes].map(|extent| extent as u128);
    let (table, gathered) = (table_rows * row_bytes, rows * row_bytes);
    let indices = rows * size_of::<X>() as u128;
    let on_device = match backend {
        Backend::Gpu => 0,
        // The output, and the source of the copy.
        Backend::Cpu => table + indices + 2 * gathered,
    };
    table + rows * size_of::<usize>() as u128 + indices + gathered + on_device
}

fn gather<X: Index>(
    stream: &Stream,
    args: &GatherArgs,
    to_index: impl Fn(usize) -> X,
) -> Result<Report, Box<dyn std::error::Error>> {
    let GatherArgs {
        table_rows,
        rows,
        row_bytes,
        ..
    } = *args;
    let bytes = |rows: usize| rows * row_bytes;
    // All memory is reserved before any of it is filled, so that a problem that is too large is refused at once.
    host_memory::expect(host_bytes::<X>(args, stream.device().backend()))?;
    let mut table = room::<u8>(bytes(table_rows))?;
    let (mut picks, mut indices) = (room::<usize>(rows)?, room::<X>(rows)?);
    let mut output = stream.filled::<u8>(bytes(rows), 0xff)?;
    let mut random = fastrand::Rng::with_seed(args.timed.seed);
    table.resize(bytes(table_rows), 0);
    random.fill(&mut table);
    picks.extend((0..rows).map(|_| random.usize(..table_rows)));
    indices.extend(picks.iter().map(|&pick| to_index(pick)));

    let (on_table, on_indices) = (stream.upload(&table)?, stream.upload(&indices)?);
    let mut plan = Gather::new(stream)?;
    let mut enqueue = |output: &mut cutlet::Buffer<u8>| {
        plan.enqueue(
            Matrix::row_major(&on_table, table_rows, row_bytes)?,
            &on_indices,
            MatrixMut::row_major(output, rows, row_bytes)?,
        )
    };
    enqueue(&mut output)?;
    let found = stream.download(&output)?;
    let time = args.timed.median(stream, || enqueue(&mut output))?;
    plan.check()?;

    let source = stream.zeroed::<u8>(bytes(rows))?;
    let copy = args
        .timed
        .median(stream, || stream.copy(&source, &mut output))?;

    let moved = 2.0 * bytes(rows) as f64;
    let wrong = || {
        let expected = picks
            .iter()
            .flat_map(|&pick| &table[pick * row_bytes..][..row_bytes]);
        found
            .iter()
            .zip(expected)
            .filter(|(found, expected)| found != expected)
            .count()
    };
    Ok(Report {
        backend: stream.device().describe().to_string(),
        table_rows,
        rows,
        row_bytes,
        microseconds: time.as_secs_f64() * 1e6,
        gigabytes_per_second: moved / time.as_secs_f64() / 1e9,
        copy_gigabytes_per_second: moved / copy.as_secs_f64() / 1e9,
        wrong_bytes: args.check.then(wrong),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        gather: GatherArgs,
    }

    #[test]
    fn all_memory_of_the_data_is_counted() {
        let words = "gather --table-rows 100 --rows 10 --row-bytes 7";
        let Alone { gather } = Alone::parse_from(words.split(' '));
        let (table, picks, indices, gathered) = (700, 80, 40, 70);
        let on_gpu = table + picks + indices + gathered;
        assert_eq!(host_bytes::<i32>(&gather, Backend::Gpu), on_gpu);
        let on_cpu = on_gpu + table + indices + 2 * gathered;
        assert_eq!(host_bytes::<i32>(&gather, Backend::Cpu), on_cpu);
    }
}
