//! What rows of a movement's target must be, computed on the host in f64 from the elements that are on the device.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use cutlet::{DeviceData, Stream, View};
use cutlet_device::Float;

use super::{Operation, Problem};
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;

/// Rows that are looked at.
const ROWS: usize = 64;

/// Elements that are downloaded at a time: enough that many rows take few copies, and few enough for single rows.
const BLOCK: usize = 1 << 14;

/// The elements of a set's source, which are downloaded in blocks when they are asked for.
///
/// They are not drawn again on the host, because the host's logarithm and cosine differ from the device's in the last
/// bits.
pub struct Source<'a, T: DeviceData> {
    stream: &'a Stream,
    elements: View<'a, T>,
    blocks: RefCell<HashMap<usize, Rc<[T]>>>,
}

impl<'a, T: DeviceData + Float> Source<'a, T> {
    /// These elements of the stream's device.
    pub fn new(stream: &'a Stream, elements: View<'a, T>) -> Self {
        Source {
            stream,
            elements,
            blocks: RefCell::default(),
        }
    }

    /// The elements from `first` on.
    fn range(&self, first: usize, len: usize) -> Result<Vec<f64>> {
        let mut found = Vec::with_capacity(len);
        while found.len() < len {
            let at = first + found.len();
            let block = self.block(at / BLOCK)?;
            let rest = block[at % BLOCK..].iter().take(len - found.len());
            found.extend(rest.map(|element| f64::from(element.to_f32())));
        }
        Ok(found)
    }

    fn block(&self, nth: usize) -> Result<Rc<[T]>> {
        if let Some(block) = self.blocks.borrow().get(&nth) {
            return Ok(block.clone());
        }
        let elements = nth * BLOCK..self.elements.len().min((nth + 1) * BLOCK);
        let block: Rc<[T]> = self.stream.download(self.elements.slice(elements)?)?.into();
        self.blocks.borrow_mut().insert(nth, block.clone());
        Ok(block)
    }
}

/// The expected target of a set.
pub struct Expected<'a, T: DeviceData> {
    pub problem: &'a Problem,
    pub indices: &'a [i32],
    pub source: Source<'a, T>,
}

/// What a row may be.
pub struct Sums {
    /// Each element of the row is that of one of these. Where several rows are stored to one, threads of each of them
    /// store parts.
    pub candidates: Vec<Vec<f64>>,
    /// The largest distance of a right element.
    pub within: f64,
}

impl<T: DeviceData + Float> Expected<'_, T> {
    /// The rows of the target that are looked at.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        let Problem {
            operation, rows, ..
        } = *self.problem;
        let count = rows.min(ROWS);
        let (groups, named) = (self.problem.groups(), self.indices);
        (0..count).map(move |nth| match operation {
            Operation::Scatter | Operation::ScatterAdd | Operation::ScatterAddInOrder => {
                named[nth * (rows / count)] as usize
            }
            Operation::EmbeddingBag | Operation::Moe => nth * groups / count,
            // The target's elements, in rows as long as the source's.
            Operation::TakeAlongDim | Operation::Permute => nth * (rows / count),
        })
    }

    /// What a row of the target may be.
    ///
    /// # Errors
    /// If the source cannot be downloaded.
    pub fn row(&self, row: usize) -> Result<Sums> {
        let (columns, group) = (self.problem.columns(), self.problem.group);
        let exact = |candidates| Sums {
            candidates,
            within: 0.0,
        };
        Ok(match self.problem.operation {
            Operation::Scatter => {
                let stored = self.named(row).map(|at| self.source_row(at));
                exact(stored.collect::<Result<_>>()?)
            }
            Operation::ScatterAdd | Operation::ScatterAddInOrder => self.sum(self.named(row))?,
            Operation::EmbeddingBag => {
                let bag = &self.indices[row * group..(row + 1) * group];
                self.sum(bag.iter().map(|&at| at as usize))?
            }
            Operation::TakeAlongDim => exact(vec![self.elements((0..columns).map(|column| {
                let named = self.indices[row * columns + column] as usize;
                named * columns + column
            }))?]),
            Operation::Permute => {
                let targets = row * columns..(row + 1) * columns;
                exact(vec![self.elements(targets.map(|at| {
                    let (column, from) = (at / self.problem.rows, at % self.problem.rows);
                    from * columns + column
                }))?])
            }
            Operation::Moe => {
                let mut sums = self.sum([row].into_iter())?;
                sums.within *= group as f64;
                sums
            }
        })
    }

    /// The positions of an index.
    fn named(&self, index: usize) -> impl Iterator<Item = usize> {
        let all = self.indices.iter().enumerate();
        all.filter(move |(_, named)| **named as usize == index)
            .map(|(position, _)| position)
    }

    /// A row of the source.
    fn source_row(&self, row: usize) -> Result<Vec<f64>> {
        let columns = self.problem.columns();
        self.source.range(row * columns, columns)
    }

    /// Elements of the source at these places.
    fn elements(&self, places: impl Iterator<Item = usize>) -> Result<Vec<f64>> {
        places.map(|at| Ok(self.source.range(at, 1)?[0])).collect()
    }

    /// The sum of rows of N(0, 1), each of which may be rounded.
    fn sum(&self, rows: impl Iterator<Item = usize>) -> Result<Sums> {
        let (mut sum, mut count) = (vec![0.0; self.problem.columns()], 0.0f64);
        for row in rows {
            count += 1.0;
            for (sum, term) in sum.iter_mut().zip(self.source_row(row)?) {
                *sum += term;
            }
        }
        let epsilon = match self.problem.dtype {
            Dtype::Bf16 => 2f64.powi(-8),
            Dtype::F16 => 2f64.powi(-11),
            _ => 2f64.powi(-24),
        };
        Ok(Sums {
            candidates: vec![sum],
            // Partial sums are below 6 √count.
            within: epsilon * 6.0 * count * count.sqrt(),
        })
    }
}
