//! How a problem is timed: the choice of the baseline, the number and length of samples, the pauses.

use std::time::Duration;

use cutlet_cli::cublas::WORKSPACE_BYTES;
use cutlet_host::measure::{self, CUTOFF, GRAPH_BELOW, Sampling};
use serde::{Deserialize, Serialize};

use super::positive::{at_least_one, positive, positive_or_absent, zero_or_more};

/// How a problem is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Rounds. In each, every contestant is sampled twice, in an order and its reverse.
    #[serde(deserialize_with = "at_least_one")]
    pub rounds: usize,
    /// A sample has as many runs as the slowest contestant does in this many milliseconds, by a first screening. It has at
    /// least one run, and in a graph at most as many as the graph holds. A faster contestant's sample is shorter.
    #[serde(deserialize_with = "zero_or_more")]
    pub sample_milliseconds: f64,
    /// The fewest runs of a sample, unless they take longer than 25 ms: in a longer sample, the card would reach its
    /// power limit.
    #[serde(default)]
    pub sample_runs: usize,
    /// The shortest pause before a sample, in milliseconds, so that the power of earlier work does not decide the
    /// clocks.
    #[serde(default, deserialize_with = "zero_or_more")]
    pub rest_milliseconds: f64,
    /// The shortest pause before a sample, as a multiple of the sample before, or of all work before the first sample.
    #[serde(default, deserialize_with = "zero_or_more")]
    pub rest_samples: f64,
    /// Whether A is scaled so that the input of an activation is about N(0, 1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scaled_for_activations: bool,
    /// Runs shorter than this many microseconds are timed inside CUDA graphs. Older runs do not say.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "positive_or_absent"
    )]
    pub graph_below_microseconds: Option<f64>,
    /// How the baseline of a GEMM is chosen. Older runs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// How power-settled figures are taken, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
}

impl Protocol {
    /// Bursts of so many rounds: on a GPU with rests between samples, on the CPU with single runs.
    pub fn bursts(rounds: usize, on_gpu: bool) -> Protocol {
        let sampling = Sampling::bursts(rounds, on_gpu);
        Protocol {
            rounds,
            sample_milliseconds: milliseconds(sampling.sample),
            sample_runs: sampling.sample_runs,
            rest_milliseconds: milliseconds(sampling.rest),
            rest_samples: sampling.rest_samples,
            scaled_for_activations: true,
            graph_below_microseconds: on_gpu.then_some(GRAPH_BELOW),
            choice: on_gpu.then_some(CHOICE),
            sustained: None,
        }
    }

    /// How the timer samples by this protocol.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            rounds: self.rounds,
            sample: duration(self.sample_milliseconds),
            sample_runs: self.sample_runs,
            rest: duration(self.rest_milliseconds),
            rest_samples: self.rest_samples,
            sustained: self.sustained.map(|sustained| measure::Sustained {
                settle: duration(sustained.settle_milliseconds),
                batches: sustained.batches(self),
            }),
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn duration(milliseconds: f64) -> Duration {
    Duration::from_secs_f64(milliseconds * 1e-3)
}

/// How the baseline of a GEMM is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// How many of the algorithms that cuBLASLt's heuristics propose are looked at.
    pub algorithms: usize,
    /// The workspace of each algorithm in bytes.
    pub workspace_bytes: usize,
    /// How many algorithms are timed in every round, beside the default. The one with the least median is the baseline.
    pub finalists: usize,
    /// From the third on, contestants that take more than this multiple of the fastest in the first screening are not timed.
    #[serde(deserialize_with = "positive")]
    pub cutoff: f64,
}

/// The choice that this program makes.
pub const CHOICE: Choice = Choice {
    algorithms: 16,
    workspace_bytes: WORKSPACE_BYTES,
    finalists: 4,
    cutoff: CUTOFF,
};

/// How power-settled figures are taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// Milliseconds of work without a pause before the first round.
    #[serde(deserialize_with = "zero_or_more")]
    pub settle_milliseconds: f64,
    /// The length of a sample, in place of the protocol's `sample_milliseconds`.
    #[serde(deserialize_with = "positive")]
    pub sample_milliseconds: f64,
}

impl Sustained {
    /// How many times the runs of a burst sample a power-settled sample has.
    pub fn batches(&self, protocol: &Protocol) -> usize {
        let longer = self.sample_milliseconds / protocol.sample_milliseconds;
        (longer.ceil() as usize).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_sampled_as_every_measurement_is() {
        for on_gpu in [true, false] {
            let sampling = Protocol::bursts(7, on_gpu).sampling();
            assert_eq!(sampling, Sampling::bursts(7, on_gpu));
        }
    }

    #[test]
    fn older_results_need_not_tell_the_choice() {
        let older: Protocol = toml::from_str("rounds = 7\nsample_milliseconds = 4.0").unwrap();
        assert_eq!(older.choice, None);
        assert_eq!(older.graph_below_microseconds, None);
        assert!(!older.scaled_for_activations);
    }
}
