//! Distributions of the indices of a gather.

use cutlet_kernels::fill::bits;
use rayon::prelude::*;
use serde::Deserialize;

/// The distribution of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every row is equally likely.
    Uniform,
    /// The n-th most likely row has 1/n of the first row's probability, like the words of a language.
    Zipf,
    /// Every row is equally likely, and the indices increase.
    Sorted,
    /// Each of 1024 rows is asked for many times.
    Repeated,
}

/// The number of rows that the repeated distribution asks for.
const REPEATED: u64 = 1024;

impl Distribution {
    /// `count` indices of a table of `rows`.
    pub fn indices(self, count: usize, rows: usize, seed: u64) -> Vec<i32> {
        let rows = rows as u64;
        let index = |i: usize| -> i32 {
            let random = bits(seed, i as u64);
            let row = match self {
                Distribution::Uniform | Distribution::Sorted => below(random, rows),
                Distribution::Zipf => {
                    // The rank's logarithm is uniform. Ranks are spread over the table, so that frequent rows are not
                    // neighbours.
                    let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
                    let rank = (rows as f64).powf(unit) as u64 - 1;
                    below(bits(seed, !rank), rows)
                }
                Distribution::Repeated => below(bits(seed, !below(random, REPEATED)), rows),
            };
            row as i32
        };
        let mut indices: Vec<i32> = (0..count).into_par_iter().map(index).collect();
        if self == Distribution::Sorted {
            indices.par_sort_unstable();
        }
        indices
    }
}

/// A number below `limit` from 64 random bits.
fn below(bits: u64, limit: u64) -> u64 {
    ((u128::from(bits) * u128::from(limit)) >> 64) as u64
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Distribution::Uniform => "uniform",
            Distribution::Zipf => "zipf",
            Distribution::Sorted => "sorted",
            Distribution::Repeated => "repeated",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Distribution; 4] = [
        Distribution::Uniform,
        Distribution::Zipf,
        Distribution::Sorted,
        Distribution::Repeated,
    ];

    #[test]
    fn indices_are_rows_of_the_table() {
        for distribution in ALL {
            for rows in [1, 7, 100_000] {
                let indices = distribution.indices(1000, rows, 5);
                assert_eq!(indices.len(), 1000);
                let within = indices.iter().all(|&i| (0..rows as i32).contains(&i));
                assert!(within, "{distribution} of {rows}");
            }
        }
    }

    #[test]
    fn each_distribution_is_what_it_says() {
        let counts = |distribution: Distribution| {
            let mut counts = std::collections::HashMap::new();
            for index in distribution.indices(20_000, 1_000_000, 5) {
                *counts.entry(index).or_insert(0usize) += 1;
            }
            counts
        };
        let most = |distribution| *counts(distribution).values().max().unwrap();
        assert!(most(Distribution::Uniform) < 5);
        // A share of 1 / ln(1,000,000) of all ranks is the first rank or near it.
        assert!(most(Distribution::Zipf) > 500);
        assert!(counts(Distribution::Repeated).len() <= REPEATED as usize);
        assert!(Distribution::Sorted.indices(1000, 5000, 5).is_sorted());
    }
}
