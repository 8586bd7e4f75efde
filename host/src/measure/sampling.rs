//! How contestants are sampled: the number and length of samples, and the pauses between them.

use std::time::Duration;

/// How contestants are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Rounds. In each, every contestant is sampled twice, in an order and its reverse.
    pub rounds: usize,
    /// A sample has as many runs as the slowest contestant does in this time, by a first screening. It has at least one
    /// run, and in a graph at most as many as the graph holds. A faster contestant's sample is shorter.
    pub sample: Duration,
    /// The fewest runs of a sample, unless they take longer than 25 ms: in a longer sample, the card would reach its
    /// power limit.
    pub sample_runs: usize,
    /// The shortest pause before a sample, so that the power of earlier work does not decide the clocks.
    pub rest: Duration,
    /// The shortest pause before a sample, as a multiple of the sample before, or of all work before the first sample.
    pub rest_samples: f64,
    /// How power-settled figures are taken, if they are.
    pub sustained: Option<Sustained>,
}

/// How power-settled figures are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sustained {
    /// Work without a pause before the first round.
    pub settle: Duration,
    /// How many times the runs of a burst a sample has.
    pub batches: usize,
}

impl Sampling {
    /// Bursts of so many rounds: on a GPU with rests between samples, on the CPU with single runs.
    pub fn bursts(rounds: usize, on_gpu: bool) -> Sampling {
        match on_gpu {
            true => Sampling {
                rounds,
                sample: Duration::from_millis(4),
                sample_runs: 32,
                rest: Duration::from_millis(5),
                rest_samples: 2.0,
                sustained: None,
            },
            false => Sampling {
                rounds,
                sample_runs: 1,
                ..Sampling::default()
            },
        }
    }
}

/// The times of one contestant.
#[derive(Clone, Debug)]
pub struct Times {
    /// Its number.
    pub contestant: usize,
    /// Microseconds a run, of each round.
    pub rounds: Vec<f64>,
    /// The same, power-settled.
    pub sustained: Vec<f64>,
    /// Runs in a CUDA graph; `None` if each was launched by itself.
    pub graph_runs: Option<usize>,
}
