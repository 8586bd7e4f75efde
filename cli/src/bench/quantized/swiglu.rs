//! SwiGLU of gates and ups that alternate in rows of bf16, whose results are quantised.

use cutlet::{Buffer, Matrix, MatrixMut, Quantize, Stream, swiglu};
use cutlet_host::measure::Contestants;
use half::bf16;

use super::{LARGE, ONE, Quantised, TOLERANCE, Work};
use crate::deviation::Deviation;
use crate::measure::check;
use crate::measure::error::{Error, Result};
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// Rows that are compared.
const COMPARED: usize = 12;

/// SwiGLU of so many rows, with so many results in each.
pub struct Swiglu<'a> {
    setting: &'a Setting,
    extents: [usize; 2],
    sets: Vec<Set>,
}

/// Gates and ups, and results of a run.
struct Set {
    source: Buffer<bf16>,
    /// The results between two launches.
    between: Buffer<bf16>,
    results: Quantised,
}

impl<'a> Swiglu<'a> {
    /// The operation with random inputs.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(extents: [usize; 2], setting: &'a Setting) -> Result<Self> {
        let [rows, columns] = extents;
        let (stream, seed) = (&setting.stream, setting.seed);
        let set = |nth: u64| -> Result<Set> {
            Ok(Set {
                source: random(stream, rows * 2 * columns, seed.wrapping_add(nth))?,
                between: stream.zeroed(rows * columns)?,
                results: Quantised::new(stream, rows, columns)?,
            })
        };
        let bytes = rows * 2 * columns * size_of::<bf16>() + Quantised::bytes(rows, columns);
        let sets = (0..setting.sets(bytes) as u64).map(set);
        Ok(Swiglu {
            setting,
            extents,
            sets: sets.collect::<Result<_>>()?,
        })
    }
}

impl Contestants for Swiglu<'_> {
    type Error = Error;

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let [rows, columns] = self.extents;
        let Set {
            source,
            between,
            results,
        } = &mut self.sets[set];
        let all = rows * 2 * columns;
        let source = Matrix::row_major(source.slice(..all)?, rows, 2 * columns)?;
        let (codes, scales) = results.parts()?;
        if contestant == ONE {
            return Ok(Quantize::by_blocks().swiglu(stream, source, codes, scales)?);
        }
        let to = MatrixMut::row_major(&mut *between, rows, columns)?;
        swiglu(stream, source, to)?;
        let between = Matrix::row_major(&*between, rows, columns)?;
        Ok(Quantize::by_blocks().run(stream, between, codes, scales)?)
    }
}

impl Work for Swiglu<'_> {
    fn wrong(&mut self, contestant: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        let [rows, columns] = self.extents;
        self.sets[0].results.poison(stream)?;
        self.enqueue(stream, contestant, 0)?;
        let Set {
            source, results, ..
        } = &self.sets[0];
        let (source, found) = (stream.download(source)?, results.numbers(stream)?);
        let gated = |at: usize| {
            let [gate, up] = [0, 1].map(|nth| source[2 * at + nth].to_f64());
            gate / (1.0 + (-gate).exp()) * up
        };
        let compared = (0..rows).step_by((rows / COMPARED).max(1) | 1);
        let compared = compared.flat_map(|row| row * columns..(row + 1) * columns);
        let deviation = Deviation::of(compared.map(|at| (f64::from(found[at]), gated(at))));
        Ok(check::wrong(&deviation, TOLERANCE, LARGE))
    }
}
