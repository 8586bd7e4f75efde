//! A gather set up on a device: a table whose words the host can compute, index arrays, outputs.

use std::ops::Range;

use cutlet::{Buffer, Gather, Matrix, MatrixMut, Stream};
use cutlet_host::measure::rechecked;
use cutlet_kernels::fill::{Random, bits};
use rayon::prelude::*;

use super::Problem;
use crate::bench::family::SetUp;
use crate::host_memory;
use crate::measure::case::{Case, Contestant, Role};
use crate::measure::check::{Check, in_chunks};
use crate::measure::error::Result;
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// Bytes of output that are checked at a time.
const CHUNK_BYTES: usize = 32 << 20;

struct GatherCase<'a> {
    setting: &'a Setting,
    table_rows: usize,
    rows: usize,
    /// 32-bit words in a row.
    words: usize,
    gather: Option<Gather>,
    contestants: Vec<Contestant>,
    table: Buffer<u32>,
    /// The indices of each set, on the host and on the device.
    indices: Vec<(Vec<i32>, Buffer<i32>)>,
    output: Buffer<u32>,
}

/// Sets a problem up.
pub fn set_up<'a>(problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
    let stream = &setting.stream;
    let Problem {
        row_bytes,
        rows,
        table_rows,
        indices,
        ..
    } = *problem;
    let words = row_bytes / 4;
    let contestant = |name: &str, role| Contestant {
        name: name.to_string(),
        role,
    };
    let (gather, mut contestants) = match setting.baselines_only {
        true => (None, Vec::new()),
        false => (
            Some(Gather::new(stream.device())?),
            vec![contestant("cutlet", Role::Cutlet)],
        ),
    };
    contestants.push(contestant("device copy", Role::Baseline));
    let sets = setting.sets(2 * rows * row_bytes);
    if !setting.on_gpu() {
        let [table, set] = [table_rows, rows].map(|rows| rows as u128 * row_bytes as u128);
        host_memory::expect(table + sets as u128 * set)?;
    }
    let indices = (0..sets as u64)
        .map(|set| {
            let indices = indices.indices(rows, table_rows, setting.seed.wrapping_add(set));
            let on_device = stream.upload(&indices)?;
            Ok((indices, on_device))
        })
        .collect::<Result<_>>()?;
    Ok(SetUp::Ready(Box::new(GatherCase {
        setting,
        table_rows,
        rows,
        words,
        gather,
        contestants,
        table: random(stream, table_rows * words, setting.seed)?,
        indices,
        output: stream.filled(sets * rows * words, 0xff)?,
    })))
}

impl GatherCase<'_> {
    fn output(&self, set: usize) -> Range<usize> {
        let words = self.rows * self.words;
        set * words..(set + 1) * words
    }

    /// The words that the copy of a set reads. Sets read different parts of the table, as far as it goes.
    fn copied(&self, set: usize) -> Range<usize> {
        let parts = self.table_rows / self.rows;
        self.output(set % parts)
    }

    fn poison_set(&mut self, set: usize) -> Result<()> {
        let output = self.output(set);
        let output = self.output.slice_mut(output)?;
        Ok(self.setting.stream.fill_bytes(output, 0xff)?)
    }

    /// Compares all of a set's output with the rows that its indices ask for.
    fn compare(&self, set: usize) -> Result<Check> {
        self.compare_rows(set, &self.indices[set].0)
    }

    /// Compares all of a set's output with these rows of the table.
    fn compare_rows(&self, set: usize, indices: &[i32]) -> Result<Check> {
        let output = self.output.slice(self.output(set))?;
        let (words, seed) = (self.words, self.setting.seed);
        let chunk = (CHUNK_BYTES / 4 / words).max(1) * words;
        let mut wrong = 0;
        in_chunks(&self.setting.stream, output, chunk, |first, found| {
            let indices = &indices[first / words..];
            let rows = found.par_chunks(words).zip(indices);
            wrong += rows
                .map(|(row, &index)| {
                    let table = index as u64 * words as u64;
                    let expected = (table..).map(|word| u32::random(bits(seed, word)));
                    let pairs = row.iter().zip(expected);
                    pairs.filter(|(found, expected)| *found != expected).count()
                })
                .sum::<usize>();
        })?;
        let mut check = Check::new(0.0);
        if wrong > 0 {
            check.fail(format!(
                "{wrong} of {} words differ from the rows that were asked for",
                self.rows * words
            ));
        }
        Ok(check)
    }
}

impl Case for GatherCase<'_> {
    fn sets(&self) -> usize {
        self.indices.len()
    }

    fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let (rows, words) = (self.rows, self.words);
        let (output, copied) = (self.output(set), self.copied(set));
        let output = self.output.slice_mut(output)?;
        match &mut self.gather {
            Some(gather) if contestant == 0 => {
                let (_, indices) = &self.indices[set];
                Ok(gather.enqueue(
                    stream,
                    Matrix::row_major(&self.table, self.table_rows, words)?,
                    indices,
                    MatrixMut::row_major(output, rows, words)?,
                )?)
            }
            _ => Ok(stream.copy(self.table.slice(copied)?, output)?),
        }
    }

    fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        self.poison_set(0)?;
        self.enqueue(stream, contestant, 0)?;
        let check = match self.contestants[contestant].role {
            Role::Cutlet => self.compare(0)?,
            _ => {
                let first = self.copied(0).start / self.words;
                let copied: Vec<i32> = (first as i32..).take(self.rows).collect();
                self.compare_rows(0, &copied)?
            }
        };
        let name = &self.contestants[contestant].name;
        Ok(check.wrong.map(|wrong| format!("{name}: {wrong}")))
    }

    fn check(&mut self, _: usize) -> Result<Check> {
        let mut check = Check::new(0.0);
        if self.gather.is_some()
            && let Some(fault) = self.fault(0)?
        {
            check.fail(fault);
        }
        Ok(check)
    }

    fn poison(&mut self) -> Result<()> {
        rechecked(self.sets()).try_for_each(|set| self.poison_set(set))
    }

    fn recheck(&mut self, _: usize) -> Result<Check> {
        let mut check = Check::new(0.0);
        for set in rechecked(self.sets()) {
            if let Some(wrong) = self.compare(set)?.wrong {
                check.fail(wrong);
            }
        }
        Ok(check)
    }
}
