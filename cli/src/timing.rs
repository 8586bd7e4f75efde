//! Timing of what a stream does: medians over iterations, after a warm-up.

use std::time::Duration;

use cutlet::{Event, Stream};

/// The median time of `iterations` runs of `work`, each between two events of its own.
pub fn median<E: std::error::Error + 'static>(
    stream: &Stream,
    iterations: u32,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    work()?;
    for _ in 0..iterations {
        let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
        start.record(stream)?;
        work()?;
        end.record(stream)?;
        times.push(end.elapsed_since(&start)?);
    }
    times.sort();
    Ok(times[times.len() / 2])
}
