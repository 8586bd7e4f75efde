//! What rows of a movement's target must be, computed on the host in f64.

use cutlet_device::Float;
use cutlet_kernels::fill::{Random, bits};

use super::{Operation, Problem};
use crate::bench::dtype::Dtype;

/// Rows that are looked at.
const ROWS: usize = 64;

/// The expected target of a set.
pub struct Expected<'a> {
    pub problem: &'a Problem,
    pub indices: &'a [i32],
    /// Seed of the source.
    pub seed: u64,
    /// The first element of the set's source in the sequence of the seed.
    pub first: u64,
}

/// What a row may be.
pub struct Sums {
    /// The row is one of these.
    pub candidates: Vec<Vec<f64>>,
    /// The largest distance of a right element.
    pub within: f64,
}

impl Expected<'_> {
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
    pub fn row<T: Random + Float>(&self, row: usize) -> Sums {
        let (columns, group) = (self.problem.columns(), self.problem.group);
        let exact = |row| Sums {
            candidates: vec![row],
            within: 0.0,
        };
        match self.problem.operation {
            Operation::Scatter => Sums {
                candidates: self.named(row).map(|at| self.source::<T>(at)).collect(),
                within: 0.0,
            },
            Operation::ScatterAdd | Operation::ScatterAddInOrder => {
                let terms: Vec<_> = self.named(row).map(|at| self.source::<T>(at)).collect();
                self.sum(&terms)
            }
            Operation::EmbeddingBag => {
                let bag = &self.indices[row * group..(row + 1) * group];
                let terms: Vec<_> = bag
                    .iter()
                    .map(|&at| self.source::<T>(at as usize))
                    .collect();
                self.sum(&terms)
            }
            Operation::TakeAlongDim => exact(
                (0..columns)
                    .map(|column| {
                        let named = self.indices[row * columns + column] as usize;
                        self.element::<T>(named * columns + column)
                    })
                    .collect(),
            ),
            Operation::Permute => exact(
                (row * columns..(row + 1) * columns)
                    .map(|at| {
                        let (column, from) = (at / self.problem.rows, at % self.problem.rows);
                        self.element::<T>(from * columns + column)
                    })
                    .collect(),
            ),
            Operation::Moe => {
                let terms = vec![self.source::<T>(row)];
                let mut sums = self.sum(&terms);
                sums.within *= group as f64;
                sums
            }
        }
    }

    /// The positions of an index.
    fn named(&self, index: usize) -> impl Iterator<Item = usize> {
        let all = self.indices.iter().enumerate();
        all.filter(move |(_, named)| **named as usize == index)
            .map(|(position, _)| position)
    }

    /// A row of the source.
    fn source<T: Random + Float>(&self, row: usize) -> Vec<f64> {
        let columns = self.problem.columns();
        let elements = row * columns..(row + 1) * columns;
        elements.map(|at| self.element::<T>(at)).collect()
    }

    fn element<T: Random + Float>(&self, at: usize) -> f64 {
        T::random(bits(self.seed, self.first + at as u64))
            .to_f32()
            .into()
    }

    /// The sum of rows of N(0, 1), each of which may be rounded.
    fn sum(&self, terms: &[Vec<f64>]) -> Sums {
        let mut sum = vec![0.0; self.problem.columns()];
        for term in terms {
            for (sum, term) in sum.iter_mut().zip(term) {
                *sum += term;
            }
        }
        let epsilon = match self.problem.dtype {
            Dtype::Bf16 => 2f64.powi(-8),
            Dtype::F16 => 2f64.powi(-11),
            _ => 2f64.powi(-24),
        };
        let count = terms.len() as f64;
        Sums {
            candidates: vec![sum],
            // Partial sums are below 6 √count.
            within: epsilon * 6.0 * count * count.sqrt(),
        }
    }
}
