//! What an autotuner found out about a problem.

use std::fmt;

use super::winners::Winner;
use crate::measure::Spread;

/// What an [`Autotuner`](crate::Autotuner) found out about a problem. It is displayed as a table.
#[derive(Clone, Debug)]
pub struct Tuned {
    key: String,
    index: usize,
    name: String,
    origin: Origin,
    ranking: Vec<Ranked>,
    left_out: Vec<(String, String)>,
}

/// Where the choice comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// A measurement, with its microseconds.
    Measured(f64),
    /// An earlier measurement.
    Remembered(f64),
    /// The order of the candidates, on the CPU.
    Order,
}

/// A candidate or a baseline that was measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ranked {
    /// Its name.
    pub name: String,
    /// Microseconds of a launch, over the rounds.
    pub microseconds: Spread,
    /// Its time over that of the choice, round by round; `None` if a first look at it showed that it is far slower, so
    /// that it was not timed in rounds.
    pub ratio: Option<Spread>,
    /// Whether it is a baseline, which is never chosen.
    pub is_baseline: bool,
}

impl Tuned {
    /// The outcome of a measurement, of which the candidate at `index` is the choice.
    pub(super) fn measured(
        key: String,
        (index, name): (usize, String),
        microseconds: f64,
        ranking: Vec<Ranked>,
        left_out: Vec<(String, String)>,
    ) -> Tuned {
        Tuned {
            key,
            index,
            name,
            origin: Origin::Measured(microseconds),
            ranking,
            left_out,
        }
    }

    /// The first right candidate, which is at `index`.
    pub(super) fn first(
        key: String,
        (index, name): (usize, String),
        left_out: Vec<(String, String)>,
    ) -> Tuned {
        Tuned {
            key,
            index,
            name,
            origin: Origin::Order,
            ranking: Vec::new(),
            left_out,
        }
    }

    /// The choice of an earlier call.
    pub(super) fn remembered(key: String, index: usize, winner: &Winner) -> Tuned {
        Tuned {
            key,
            index,
            name: winner.name.clone(),
            origin: winner
                .microseconds
                .map_or(Origin::Order, Origin::Remembered),
            ranking: Vec::new(),
            left_out: Vec::new(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The name of the candidate to run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in the order of the candidates, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The microseconds that it took when it was measured; `None` on the CPU.
    pub fn microseconds(&self) -> Option<f64> {
        match self.origin {
            Origin::Measured(microseconds) | Origin::Remembered(microseconds) => Some(microseconds),
            Origin::Order => None,
        }
    }

    /// The candidates and baselines that were measured in this call, the fastest first. Empty if the choice was
    /// remembered, and on the CPU.
    pub fn ranking(&self) -> &[Ranked] {
        &self.ranking
    }

    /// The names of candidates that do not run or are wrong, with the reason, as this call found them.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.left_out.iter();
        pairs.map(|(name, why)| (name.as_str(), why.as_str()))
    }
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tuned { key, name, .. } = self;
        match self.origin {
            Origin::Measured(_) => write!(f, "{key}: {name}")?,
            Origin::Remembered(microseconds) => {
                write!(
                    f,
                    "{key}: {name}, which took {microseconds:.2} µs when it was measured"
                )?;
            }
            Origin::Order => write!(
                f,
                "{key}: {name}, the first that is right. The CPU's times say nothing about a GPU, so nothing is measured"
            )?,
        }
        let names = self
            .ranking
            .iter()
            .map(|ranked| ranked.name.chars().count());
        let width = names.max().unwrap_or(0);
        for ranked in &self.ranking {
            write!(f, "\n  {:<width$} {}", ranked.name, Figures(ranked))?;
        }
        for (name, why) in &self.left_out {
            write!(f, "\n  {name} is left out: {why}")?;
        }
        Ok(())
    }
}

/// The figures of a line of the table.
struct Figures<'a>(&'a Ranked);

impl fmt::Display for Figures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ranked {
            microseconds,
            ratio,
            is_baseline,
            ..
        } = self.0;
        write!(f, "{:>10.2} µs", microseconds.median)?;
        match ratio {
            None => write!(f, " in a first look, too slow for rounds")?,
            Some(Spread { median, min, max }) => write!(
                f,
                " ±{:>4.1} %  {median:>6.3} × ({min:.3} to {max:.3})",
                microseconds.relative() * 100.0
            )?,
        }
        match is_baseline {
            true => write!(f, "  baseline"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_a_table_and_names_who_is_left_out() {
        let ranked = |name: &str, rounds: &[f64], is_baseline| Ranked {
            name: name.to_string(),
            microseconds: Spread::of(rounds),
            ratio: (rounds.len() > 1).then(|| Spread::of_ratio(rounds, &[20.0, 20.0, 20.0])),
            is_baseline,
        };
        let ranking = vec![
            ranked("copy", &[18.0, 18.0, 18.0], true),
            ranked("warps_8", &[20.0, 20.0, 20.0], false),
            ranked("warps_4", &[24.0, 25.0, 26.0], false),
            ranked("warps_1", &[150.0], false),
        ];
        let left_out = vec![("warps_64".to_string(), "it is too large".to_string())];
        let choice = (1, "warps_8".to_string());
        let tuned = Tuned::measured("norm rows=8".to_string(), choice, 20.0, ranking, left_out);
        let lines = [
            "norm rows=8: warps_8",
            "  copy         18.00 µs ± 0.0 %   0.900 × (0.900 to 0.900)  baseline",
            "  warps_8      20.00 µs ± 0.0 %   1.000 × (1.000 to 1.000)",
            "  warps_4      25.00 µs ± 4.0 %   1.250 × (1.200 to 1.300)",
            "  warps_1     150.00 µs in a first look, too slow for rounds",
            "  warps_64 is left out: it is too large",
        ];
        assert_eq!(tuned.to_string().lines().collect::<Vec<_>>(), lines);
    }
}
