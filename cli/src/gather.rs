//! `cutlet gather`: rows of a random table by random indices, timed and checked.

use std::process::ExitCode;

use clap::Args;
use cutlet::{Gather, Matrix, MatrixMut, Stream};
use cutlet_host::Backend;

use crate::host_memory::{self, room};
use crate::rows::{DrawnIndex, IndexType, Indices, Moved, Report, RowsArgs};

/// Gather rows of a table by random indices and time it: output[r] = table[indices[r]].
#[derive(Args, Debug)]
pub struct GatherArgs {
    #[command(flatten)]
    pub rows: RowsArgs,
}

/// The bytes of the output before it is written. A skipped row keeps them.
const BEFORE: u8 = 0xff;
/// Bytes of the table that are made between two advances of the progress.
const PART: usize = 1 << 20;

/// Runs the command.
pub fn run(args: &GatherArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let stream = args.rows.timed.stream()?;
    let report = match args.rows.index {
        IndexType::I32 => gather::<i32>(&stream, &args.rows)?,
        IndexType::I64 => gather::<i64>(&stream, &args.rows)?,
    };
    args.rows.conclude(&report)
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<X>(args: &RowsArgs, backend: Backend) -> u128 {
    let [table_rows, rows, row_bytes] =
        [args.table_rows, args.rows, args.row_bytes].map(|extent| extent as u128);
    let (table, gathered) = (table_rows * row_bytes, rows * row_bytes);
    let on_device = match backend {
        Backend::Gpu => 0,
        // The output, and source and target of the copy.
        Backend::Cpu => table + rows * size_of::<X>() as u128 + 3 * gathered,
    };
    table + args.bytes_of_indices::<X>() + gathered + on_device
}

fn gather<X: DrawnIndex>(
    stream: &Stream,
    args: &RowsArgs,
) -> Result<Report, Box<dyn std::error::Error>> {
    let RowsArgs {
        table_rows,
        rows,
        row_bytes,
        ..
    } = *args;
    // All memory is reserved before any of it is filled, so that a problem that is too large is refused at once.
    host_memory::expect(host_bytes::<X>(args, stream.device().backend()))?;
    let mut table = room::<u8>(table_rows * row_bytes)?;
    let mut output = stream.filled::<u8>(rows * row_bytes, BEFORE)?;
    let mut random = fastrand::Rng::with_seed(args.timed.seed);
    let progress = &args.timed.progress();
    progress.begin("random table", table_rows * row_bytes);
    table.resize(table_rows * row_bytes, 0);
    for part in table.chunks_mut(PART) {
        random.fill(part);
        progress.advance(part.len());
    }
    let Indices { picks, indices } = args.indices::<X>(&mut random, progress)?;

    progress.wait("upload");
    let (on_table, on_indices) = (stream.upload(&table)?, stream.upload(&indices)?);
    let mut plan = Gather::new(stream.device())?.out_of_range(args.out_of_range());
    let mut enqueue = |output: &mut cutlet::Buffer<u8>| {
        plan.enqueue(
            stream,
            Matrix::row_major(&on_table, table_rows, row_bytes)?,
            &on_indices,
            MatrixMut::row_major(output, rows, row_bytes)?,
        )
    };
    progress.wait("first gather");
    enqueue(&mut output)?;
    let found = stream.download(&output)?;
    let again = || enqueue(&mut output);
    let time = args.timed.median(stream, progress, "gathers", again)?;
    plan.check(stream)?;

    let skipped = vec![BEFORE; row_bytes];
    let expected = |pick: Option<u32>| match pick {
        Some(row) => &table[row as usize * row_bytes..][..row_bytes],
        None => &skipped,
    };
    let wrong = || {
        progress.begin("comparison", rows);
        let rows = found.chunks_exact(row_bytes).zip(&picks);
        let wrong = rows.map(|(row, &pick)| {
            progress.advance(1);
            let pairs = row.iter().zip(expected(pick));
            pairs.filter(|(found, expected)| found != expected).count()
        });
        wrong.sum()
    };
    let moved = Moved {
        operation: "gather".to_string(),
        time,
        times: 2,
        wrong_elements: args.check.then(wrong),
    };
    args.report(stream, progress, moved)
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
        assert_eq!(host_bytes::<i32>(&gather.rows, Backend::Gpu), on_gpu);
        let on_cpu = on_gpu + table + indices + 3 * gathered;
        assert_eq!(host_bytes::<i32>(&gather.rows, Backend::Cpu), on_cpu);
    }
}
