//! What `cutlet gather` and `cutlet scatter` share: options, random indices, and the report of a run.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cutlet::{Index, OutOfRange, Stream};
use serde::Serialize;

use crate::backend::RanOn;
use crate::host_memory::{self, room};
use crate::progress::Progress;
use crate::timed::{TimedArgs, extent};
use crate::units;

/// Options of a command that moves rows.
#[derive(Args, Debug)]
pub struct RowsArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    pub table_rows: usize,
    /// Rows to move, each with an index.
    #[arg(long, default_value_t = 4096, value_parser = extent, allow_hyphen_values = true)]
    pub rows: usize,
    /// Bytes in a row.
    #[arg(long, default_value_t = 2048, value_parser = extent, allow_hyphen_values = true)]
    pub row_bytes: usize,
    /// Type of an index.
    #[arg(long, value_enum, default_value_t)]
    pub index: IndexType,
    /// Let one index in eight be no row of the table, and do this about it. Without this option, all are rows.
    #[arg(long, value_enum)]
    out_of_range: Option<Policy>,
    /// Compare the whole output with what it must be.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub timed: TimedArgs,
}

/// The type of an index.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum IndexType {
    #[default]
    I32,
    I64,
}

/// What becomes of a row whose index is no row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The command ends with an error.
    Error,
    /// The index stands for the nearest row.
    Clamp,
    /// The row is left out.
    Skip,
}

/// A type of the indices that a command draws.
pub trait DrawnIndex: Index {
    /// The index with this value.
    fn of(value: i64) -> Self;

    /// Its value.
    fn value(self) -> i64;
}

impl DrawnIndex for i32 {
    fn of(value: i64) -> i32 {
        i32::try_from(value).expect("an index is near the extents, which 32 bits hold")
    }

    fn value(self) -> i64 {
        self.into()
    }
}

impl DrawnIndex for i64 {
    fn of(value: i64) -> i64 {
        value
    }

    fn value(self) -> i64 {
        self
    }
}

/// Random indices.
pub struct Indices<X> {
    /// The row of the table that each index stands for; `None` if its row is left out.
    pub picks: Vec<Option<u32>>,
    pub indices: Vec<X>,
}

impl RowsArgs {
    /// What an index outside of the table means.
    pub fn out_of_range(&self) -> OutOfRange {
        match self.out_of_range {
            None | Some(Policy::Error) => OutOfRange::Error,
            Some(Policy::Clamp) => OutOfRange::Clamp,
            Some(Policy::Skip) => OutOfRange::Skip,
        }
    }

    /// An index for each row.
    ///
    /// # Errors
    /// If the host has too little memory.
    pub fn indices<X: DrawnIndex>(
        &self,
        random: &mut fastrand::Rng,
        progress: &Progress,
    ) -> Result<Indices<X>, host_memory::TooLittle> {
        let (mut picks, mut indices) = (room(self.rows)?, room(self.rows)?);
        let table_rows = self.table_rows as i64;
        let draw = |_| match self.out_of_range.is_some() && random.u8(..8) == 0 {
            true if random.bool() => X::of(-1 - random.i64(0..4)),
            true => X::of(table_rows + random.i64(0..4)),
            false => X::of(random.i64(0..table_rows)),
        };
        let pick = |index: &X| {
            let nearest = index.value().clamp(0, table_rows - 1);
            let has_row = index.value() == nearest || self.out_of_range == Some(Policy::Clamp);
            has_row.then_some(nearest as u32)
        };
        progress.begin("random indices", 2 * self.rows);
        progress.extend(&mut indices, (0..self.rows).map(draw));
        progress.extend(&mut picks, indices.iter().map(pick));
        Ok(Indices { picks, indices })
    }

    /// Bytes of host memory that [`indices`](Self::indices) takes.
    pub fn bytes_of_indices<X>(&self) -> u128 {
        self.rows as u128 * (size_of::<Option<u32>>() + size_of::<X>()) as u128
    }

    /// The report of an operation, beside a copy of as many bytes.
    ///
    /// # Errors
    /// If the device fails.
    pub fn report(
        &self,
        stream: &Stream,
        progress: &Progress,
        moved: Moved,
    ) -> Result<Report, Box<dyn std::error::Error>> {
        let bytes = self.rows * self.row_bytes;
        let source = stream.zeroed::<u8>(bytes)?;
        let mut target = stream.zeroed::<u8>(bytes)?;
        let copy = || stream.copy(&source, &mut target);
        let copy = self.timed.median(stream, progress, "copies", copy)?;
        progress.end();
        let seconds = moved.time.as_secs_f64();
        Ok(Report {
            device: RanOn::new(stream.device()),
            operation: moved.operation,
            table_rows: self.table_rows,
            rows: self.rows,
            row_bytes: self.row_bytes,
            microseconds: seconds * 1e6,
            gigabytes_per_second: (moved.times * bytes) as f64 / seconds / 1e9,
            copy_gigabytes_per_second: 2.0 * bytes as f64 / copy.as_secs_f64() / 1e9,
            wrong_elements: moved.wrong_elements,
        })
    }

    /// Prints a report. The exit code says whether the output was right.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn conclude(&self, report: &Report) -> Result<ExitCode, Box<dyn std::error::Error>> {
        self.timed.output.result(report)?;
        if report.wrong_elements.is_some_and(|wrong| wrong > 0) {
            let wrong = "the output differs from what the indices ask for";
            self.timed.output.error(wrong);
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What was found out about an operation on rows.
pub struct Moved {
    pub operation: String,
    pub time: Duration,
    /// How often each byte of the rows is moved.
    pub times: usize,
    pub wrong_elements: Option<usize>,
}

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    device: RanOn,
    operation: String,
    table_rows: usize,
    rows: usize,
    row_bytes: usize,
    microseconds: f64,
    /// Bytes read plus bytes written, over the time. Sums are read and written.
    gigabytes_per_second: f64,
    /// The speed of a copy of as many contiguous bytes.
    copy_gigabytes_per_second: f64,
    /// Bytes, or numbers if rows are added.
    wrong_elements: Option<usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (speed, copy) = (self.gigabytes_per_second, self.copy_gigabytes_per_second);
        let ratio = units::figure(speed / copy);
        let [speed, copy] = [speed, copy].map(|gigabytes| units::speed(gigabytes * 1e9, "B/s"));
        let time = units::time(self.microseconds);
        writeln!(f, "device   {}", self.device)?;
        writeln!(
            f,
            "problem  {}: {} rows of {} bytes, a table of {}",
            self.operation, self.rows, self.row_bytes, self.table_rows
        )?;
        writeln!(f, "time     {time}, {speed} read and written")?;
        write!(f, "copy     {copy}, this has {ratio}x its speed")?;
        if let Some(wrong) = self.wrong_elements {
            write!(f, "\nerror    {wrong} elements are wrong")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        rows: RowsArgs,
    }

    fn drawn(options: &str) -> Indices<i64> {
        let words = format!("rows --table-rows 5 --rows 400 {options}");
        let Alone { rows } = Alone::parse_from(words.split_whitespace());
        rows.indices(&mut fastrand::Rng::with_seed(1), &Progress::hidden())
            .unwrap()
    }

    #[test]
    fn indices_are_rows_unless_a_policy_was_asked_for() {
        let inside = |index: &i64| (0..5).contains(index);
        assert!(drawn("").indices.iter().all(inside));
        let Indices { picks, indices } = drawn("--out-of-range skip");
        assert!(indices.contains(&-1) && indices.contains(&5));
        let mut pairs = picks.iter().zip(&indices);
        assert!(pairs.all(|(pick, index)| pick.is_some() == inside(index)));
        let Indices { picks, indices } = drawn("--out-of-range clamp");
        let nearest = indices.iter().map(|&index| Some(index.clamp(0, 4) as u32));
        assert!(picks.into_iter().eq(nearest));
    }
}
