//! Stopwatches: how long a stream's work takes.

use std::time::Duration;

use crate::{Device, Event, Result, Stream};

/// Measures a piece of a stream's work. Tests have a stopwatch that the load of other processes cannot disturb.
pub trait Stopwatch {
    /// Starts before the work that is put into the stream next.
    ///
    /// # Errors
    /// If the device fails.
    fn start(&mut self, stream: &Stream) -> Result<()>;

    /// Stops after the work in the stream, waits for it, and returns the time that it took.
    ///
    /// # Errors
    /// If the device fails.
    fn stop(&mut self, stream: &Stream) -> Result<Duration>;
}

/// The device's stopwatch: an event at each end.
pub struct Events {
    start: Event,
    end: Event,
}

impl Events {
    /// A stopwatch for a device's streams.
    ///
    /// # Errors
    /// If the device cannot make events.
    pub fn new(device: &Device) -> Result<Events> {
        Ok(Events {
            start: Event::new(device)?,
            end: Event::new(device)?,
        })
    }
}

impl Stopwatch for Events {
    fn start(&mut self, stream: &Stream) -> Result<()> {
        self.start.record(stream)
    }

    fn stop(&mut self, stream: &Stream) -> Result<Duration> {
        self.end.record(stream)?;
        self.end.elapsed_since(&self.start)
    }
}
