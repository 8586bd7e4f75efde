//! Samples of a GEMM in f64: the entries where chosen rows and columns cross, the last of each among them. Only these
//! rows of A and columns of B are copied to the host.

use cutlet::{Stream, View};
use cutlet_device::DeviceData;
use rayon::prelude::*;

use super::Problem;
use crate::bench::check::Number;
use crate::bench::error::Result;
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

impl Samples {
    /// Samples of the product of `a` and `b` with the problem's epilogue.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new<T: Number, D: Number>(
        stream: &Stream,
        problem: &Problem,
        a: View<'_, T>,
        b: View<'_, T>,
        bias: View<'_, D>,
        seed: u64,
    ) -> Result<Samples> {
        let Problem {
            m,
            n,
            k,
            layout,
            epilogue,
            ..
        } = *problem;
        let (row_count, column_count) = counts(m, n);
        let mut random = fastrand::Rng::with_seed(seed);
        let (rows, columns) = (
            choose(&mut random, m, row_count),
            choose(&mut random, n, column_count),
        );
        let a = runs(stream, a, &rows, [m, k], !layout.a_transposed())?;
        let b = runs(stream, b, &columns, [n, k], layout.b_transposed())?;
        let bias = stream.download(bias)?;
        let exact = (0..rows.len() * columns.len())
            .into_par_iter()
            .map(|entry| {
                let (i, j) = (entry / columns.len(), entry % columns.len());
                let products = a[i].iter().zip(&b[j]);
                let product = products.map(|(a, b)| a.to_f64() * b.to_f64()).sum();
                epilogue.apply(product, bias[columns[j]].to_f64())
            })
            .collect();
        Ok(Samples {
            rows,
            columns,
            exact,
        })
    }

    /// How far the sampled entries of a row-major `c` with `n` columns are from f64.
    ///
    /// # Errors
    /// If the device fails.
    pub fn deviation<T: Number>(
        &self,
        stream: &Stream,
        c: View<'_, T>,
        n: usize,
    ) -> Result<Deviation> {
        let mut found = Vec::with_capacity(self.exact.len());
        for &row in &self.rows {
            let row = stream.download(c.slice(row * n..(row + 1) * n)?)?;
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

/// The chosen runs of a matrix that consists of `count` runs of `length` elements. Either the elements of a run are
/// `contiguous`, or the runs are interleaved.
fn runs<T: DeviceData>(
    stream: &Stream,
    matrix: View<'_, T>,
    chosen: &[usize],
    [count, length]: [usize; 2],
    contiguous: bool,
) -> Result<Vec<Vec<T>>> {
    if contiguous {
        let run = |&run: &usize| {
            let elements = matrix.slice(run * length..(run + 1) * length)?;
            Ok(stream.download(elements)?)
        };
        return chosen.iter().map(run).collect();
    }
    let all = stream.download(matrix.slice(..count * length)?)?;
    let run = |&run: &usize| (0..length).map(|l| all[l * count + run]).collect();
    Ok(chosen.iter().map(run).collect())
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
