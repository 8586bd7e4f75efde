//! Options of the commands that time one problem, with the timing and printing that they ask for.

use std::fmt;
use std::time::Duration;

use clap::Args;
use cutlet::{Event, MAX_EXTENT, Stream};
use serde::Serialize;

use crate::backend::Backend;
use crate::measure::statistics::Spread;
use crate::output::print_line;

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
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

impl TimedArgs {
    /// A stream of the device that was asked for.
    pub fn stream(&self) -> cutlet::Result<Stream> {
        Ok(self.backend.device()?.stream()?)
    }

    /// The median time of `work` over the iterations, after one that is not timed. Each is timed between two events.
    pub fn median<E: std::error::Error + 'static>(
        &self,
        stream: &Stream,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Duration, Box<dyn std::error::Error>> {
        let mut seconds = Vec::new();
        work()?;
        for _ in 0..self.iters {
            let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
            start.record(stream)?;
            work()?;
            end.record(stream)?;
            seconds.push(end.elapsed_since(&start)?.as_secs_f64());
        }
        Ok(Duration::from_secs_f64(Spread::of(&seconds).median))
    }

    /// Prints a report, in words or as JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn print(
        &self,
        report: &(impl fmt::Display + Serialize),
    ) -> Result<(), Box<dyn std::error::Error>> {
        if self.json {
            print_line(serde_json::to_string(report)?)?;
        } else {
            print_line(report)?;
        }
        Ok(())
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
            json: false,
        };
        // The first is not timed.
        let mut lengths = [0, 100, 0].map(Duration::from_millis).into_iter();
        let work = || {
            std::thread::sleep(lengths.next().unwrap());
            Ok::<_, Infallible>(())
        };
        let median = args.median(&args.stream().unwrap(), work).unwrap();
        assert!((50..100).contains(&median.as_millis()), "{median:?}");
    }
}
