//! Options of the commands that time one problem, with the timing that they ask for.

use std::time::Duration;

use clap::Args;
use cutlet::{Event, MAX_EXTENT, Stream};

use crate::backend::Backend;
use crate::measure::statistics::Spread;
use crate::output::Output;
use crate::progress::{Progress, ProgressArgs};

/// Options of a command that times one problem.
#[derive(Args, Clone, Debug)]
pub struct TimedArgs {
    /// The device.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Timed iterations, after one that is not timed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    iters: u32,
    /// Seed of the random data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl TimedArgs {
    /// The progress of the command.
    pub fn progress(&self) -> Progress {
        self.progress.beside(&self.output)
    }

    /// A stream of the device that was asked for.
    pub fn stream(&self) -> cutlet::Result<Stream> {
        Ok(self.backend.device()?.stream()?)
    }

    /// The median time of `work` over the iterations, after one that is not timed. Each is timed between two events.
    pub fn median<E: std::error::Error + 'static>(
        &self,
        stream: &Stream,
        progress: &Progress,
        what: &str,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Duration, Box<dyn std::error::Error>> {
        progress.begin(what, self.iters as usize + 1);
        let mut seconds = Vec::new();
        work()?;
        for _ in 0..self.iters {
            progress.advance(1);
            let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
            start.record(stream)?;
            work()?;
            end.record(stream)?;
            seconds.push(end.elapsed_since(&start)?.as_secs_f64());
        }
        Ok(Duration::from_secs_f64(Spread::of(&seconds).median))
    }
}

/// Parses an extent of a problem that may be 0: up to [`MAX_EXTENT`].
pub fn extent_or_zero(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(extent) if extent <= MAX_EXTENT => Ok(extent),
        _ => Err(format!(
            "this extent must be a whole number from 0 to {MAX_EXTENT}"
        )),
    }
}

/// Parses an extent of a problem: from 1 to [`MAX_EXTENT`].
pub fn extent(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("an extent must be at least 1".to_string()),
        Ok(extent) if extent <= MAX_EXTENT => Ok(extent),
        _ => Err(format!(
            "an extent must be a whole number from 1 to {MAX_EXTENT}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_median_of_two_iterations_lies_between_them() {
        let args = TimedArgs {
            backend: Backend::Cpu,
            iters: 2,
            seed: 1,
            output: Output::default(),
            progress: ProgressArgs::default(),
        };
        // The first is not timed.
        let mut lengths = [0, 100, 0].map(Duration::from_millis).into_iter();
        let work = || {
            std::thread::sleep(lengths.next().unwrap());
            Ok::<_, Infallible>(())
        };
        let stream = args.stream().unwrap();
        let median = args.median(&stream, &Progress::hidden(), "sleep", work);
        let median = median.unwrap();
        assert!((50..100).contains(&median.as_millis()), "{median:?}");
    }
}
