//! What tells how long a stream's work took.

use std::time::Duration;

use cutlet::{Device, Event, Stream};

use super::error::Result;

/// Measures a piece of a stream's work. Tests have one of their own, that no other process's load
/// can disturb.
pub trait Stopwatch {
    /// The piece begins with what is put into the stream next.
    fn start(&mut self, stream: &Stream) -> Result<()>;

    /// The piece ends here: the time it took, after waiting for it.
    fn stop(&mut self, stream: &Stream) -> Result<Duration>;
}

/// The device's own: an event at each end.
pub struct Events {
    start: Event,
    end: Event,
}

impl Events {
    /// For a device's streams.
    ///
    /// # Errors
    /// If the device makes no more events.
    pub fn new(device: &Device) -> Result<Events> {
        Ok(Events {
            start: Event::new(device)?,
            end: Event::new(device)?,
        })
    }
}

impl Stopwatch for Events {
    fn start(&mut self, stream: &Stream) -> Result<()> {
        Ok(self.start.record(stream)?)
    }

    fn stop(&mut self, stream: &Stream) -> Result<Duration> {
        self.end.record(stream)?;
        Ok(self.end.elapsed_since(&self.start)?)
    }
}
