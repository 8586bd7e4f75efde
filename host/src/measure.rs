//! The protocol of measurements: contestants are screened, and sampled against each other in rounds. `cutlet bench`,
//! `cutlet tune` and [`Autotuner`](crate::Autotuner) share it. It is no part of the public interface.

#[cfg(test)]
pub mod clock;
mod sampling;
mod spread;
mod stopwatch;
mod timer;

pub use sampling::{Sampling, Sustained, Times};
pub use spread::{Spread, Verdict};
pub use stopwatch::Stopwatch;
pub use timer::Timer;

use crate::{Backend, Device, Error, Result, Stream};

/// Runs shorter than this many microseconds are timed inside CUDA graphs, so that launches do not decide.
pub const GRAPH_BELOW: f64 = 100.0;
/// From the third on, contestants that take more than this multiple of the fastest in a screening are not timed in
/// rounds.
pub const CUTOFF: f64 = 1.3;
/// Rounds of a measurement, unless it is told otherwise.
pub const ROUNDS: usize = 7;

/// Bytes of other data that lie between two uses of a buffer on a GPU: four times the largest
/// second-level cache of a Hopper GPU.
const ROTATION_BYTES: usize = 256 << 20;

/// How many sets of `bytes` each are needed so that no run finds its data in a cache; one on the CPU, whose figures are
/// no measurements.
pub fn sets(device: &Device, bytes: usize) -> usize {
    match device.backend() {
        Backend::Gpu => 1 + ROTATION_BYTES.div_ceil(bytes.max(1)),
        Backend::Cpu => 1,
    }
}

/// The sets that are compared again after a problem was timed: one in the middle, and the last.
pub fn rechecked(sets: usize) -> impl Iterator<Item = usize> {
    let (middle, last) = (sets / 2, sets - 1);
    (middle < last).then_some(middle).into_iter().chain([last])
}

/// Ways to solve a problem, which is set up in one set of operands or in several.
pub trait Contestants {
    /// Why a run fails.
    type Error: From<Error>;

    /// Sets of inputs and outputs. Runs go through them in turn, so that no run finds its data in a cache.
    fn sets(&self) -> usize;

    /// Puts one run of contestant number `contestant` on set number `set` into the stream.
    ///
    /// # Errors
    /// If the launch fails.
    fn enqueue(
        &mut self,
        stream: &Stream,
        contestant: usize,
        set: usize,
    ) -> Result<(), Self::Error>;

    /// Is told that a round begins, of so many.
    fn begin_round(&mut self, _round: usize, _rounds: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_last_set_are_compared_again() {
        for (sets, expected) in [(1, vec![0]), (2, vec![1]), (3, vec![1, 2]), (9, vec![4, 8])] {
            assert_eq!(rechecked(sets).collect::<Vec<_>>(), expected);
        }
    }
}
