//! Samples of a GEMM in f64: the entries where chosen rows and columns cross, the last of each among them. Only these
//! rows of A and columns of B are copied to the host.

use cutlet::{Stream, View};
use cutlet_device::DeviceData;
use rayon::prelude::*;

use super::check::Number;
use super::error::Result;
use crate::deviation::Deviation;

/// The number of samples, if C has as many entries.
const ENTRIES: usize = 4096;

/// Entries of C, computed in f64.
pub struct Samples {
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// Row by row.
    exact: Vec<f64>,
}

/// The rows of A, or the columns of B: the vectors whose products are the entries of C.
pub struct Vectors<'a, T: DeviceData> {
    pub elements: View<'a, T>,
    pub count: usize,
    /// Elements of each.
    pub length: usize,
    /// Whether the elements of a vector are contiguous. Otherwise, the vectors are interleaved.
    pub contiguous: bool,
    /// Elements from one contiguous run to the next.
    pub ld: usize,
}

impl Samples {
    /// Samples of C, whose entry at a row and a column is `entry` of the product there. `factor` scales the products of a
    /// row and a column at each place along them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new<T: Number>(
        stream: &Stream,
        a: Vectors<'_, T>,
        b: Vectors<'_, T>,
        seed: u64,
        factor: impl Fn([usize; 2], usize) -> f64 + Sync,
        entry: impl Fn(f64, [usize; 2]) -> f64 + Sync,
    ) -> Result<Samples> {
        let (row_count, column_count) = counts(a.count, b.count);
        let mut random = fastrand::Rng::with_seed(seed);
        let (rows, columns) = (
            choose(&mut random, a.count, row_count),
            choose(&mut random, b.count, column_count),
        );
        let (a, b) = (a.download(stream, &rows)?, b.download(stream, &columns)?);
        let exact = (0..rows.len() * columns.len())
            .into_par_iter()
            .map(|at| {
                let (i, j) = (at / columns.len(), at % columns.len());
                let at = [rows[i], columns[j]];
                let products = a[i].iter().zip(&b[j]).enumerate();
                let product = products
                    .map(|(l, (a, b))| a.to_f64() * b.to_f64() * factor(at, l))
                    .sum();
                entry(product, at)
            })
            .collect();
        Ok(Samples {
            rows,
            columns,
            exact,
        })
    }

    /// How far the sampled entries of a row-major `c` with this leading dimension are from f64.
    ///
    /// # Errors
    /// If the device fails.
    pub fn deviation<T: Number>(
        &self,
        stream: &Stream,
        c: View<'_, T>,
        ld: usize,
    ) -> Result<Deviation> {
        let length = self.columns.last().map_or(0, |last| last + 1);
        let mut found = Vec::with_capacity(self.exact.len());
        for &row in &self.rows {
            let row = stream.download(c.slice(row * ld..row * ld + length)?)?;
            found.extend(self.columns.iter().map(|&column| row[column].to_f64()));
        }
        let exact = self.exact.iter().copied();
        Ok(Deviation::of(found.into_iter().zip(exact)))
    }
}

/// How many rows and columns to sample of an `m × n` matrix, as close to a square as it allows.
fn counts(m: usize, n: usize) -> (usize, usize) {
    let side = ENTRIES.isqrt();
    let columns = ENTRIES.div_ceil(m.min(side)).min(n);
    let rows = ENTRIES.div_ceil(columns).min(m);
    (rows, columns)
}

/// `count` different numbers below `extent`, sorted. The last number is always among them.
fn choose(random: &mut fastrand::Rng, extent: usize, count: usize) -> Vec<usize> {
    if count >= extent {
        return (0..extent).collect();
    }
    let mut chosen = std::collections::BTreeSet::from([extent - 1]);
    while chosen.len() < count {
        chosen.insert(random.usize(..extent));
    }
    chosen.into_iter().collect()
}

impl<T: DeviceData> Vectors<'_, T> {
    /// The chosen ones.
    fn download(&self, stream: &Stream, chosen: &[usize]) -> Result<Vec<Vec<T>>> {
        let Vectors {
            elements,
            count,
            length,
            contiguous,
            ld,
        } = *self;
        if contiguous {
            let vector = |&nth: &usize| {
                let elements = elements.slice(nth * ld..nth * ld + length)?;
                Ok(stream.download(elements)?)
            };
            return chosen.iter().map(vector).collect();
        }
        let all = stream.download(elements.slice(..(length - 1) * ld + count)?)?;
        let vector = |&nth: &usize| (0..length).map(|l| all[l * ld + nth]).collect();
        Ok(chosen.iter().map(vector).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_4096_samples_where_there_can_be() {
        for (m, n) in [(4096, 4096), (1, 8192), (16, 57344), (8192, 1), (100, 64)] {
            let (rows, columns) = counts(m, n);
            assert!(rows <= m && columns <= n);
            assert!(rows * columns >= ENTRIES, "{m}x{n}: {rows}x{columns}");
        }
        assert_eq!(counts(5, 7), (5, 7));
    }

    #[test]
    fn the_last_row_is_always_among_the_chosen() {
        let mut random = fastrand::Rng::with_seed(1);
        let chosen = choose(&mut random, 1000, 64);
        assert_eq!((chosen.len(), chosen.last()), (64, Some(&999)));
        assert_eq!(choose(&mut random, 3, 64), [0, 1, 2]);
    }
}
