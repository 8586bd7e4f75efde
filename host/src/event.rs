//! Events: marks in a stream, for timing and for ordering streams.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUevent_flags;

use crate::device::Place;
use crate::gpu_event::GpuEvent;
use crate::lock::lock;
use crate::order;
use crate::stream::Queue;
use crate::{Device, Error, Result, Stream};

/// A mark in a stream, for timing, and for ordering another stream's work after it.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// use cutlet_host::{Device, Event};
/// let device = Device::auto();
/// let (first, second) = (device.stream()?, device.stream()?);
/// let filled = Event::new(&device)?;
/// let x = first.filled::<u8>(2, 7)?;
/// filled.record(&first)?;
/// // Without it, builds with debug assertions refuse the download.
/// second.wait(&filled)?;
/// assert_eq!(second.download(&x)?, [7, 7]);
/// # Ok(()) }
/// ```
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// use cutlet_host::{Device, Event};
/// let stream = Device::auto().stream()?;
/// let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
/// start.record(&stream)?;
/// let buffer = stream.zeroed::<f32>(1 << 20)?;
/// end.record(&stream)?;
/// println!("filled {buffer:?} in {:?}", end.elapsed_since(&start)?);
/// # Ok(()) }
/// ```
pub struct Event {
    device: Device,
    mark: Mark,
    /// What comes before the mark.
    order: order::Mark,
}

enum Mark {
    /// The time at which the stream reached the mark; `None` if the event was never recorded.
    Cpu(Mutex<Option<Instant>>),
    Gpu(GpuEvent),
}

impl Event {
    /// A new event, not recorded yet.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver makes none.
    pub fn new(device: &Device) -> Result<Event> {
        let mark = match device.place() {
            Place::Cpu => Mark::Cpu(Mutex::default()),
            Place::Gpu(gpu) => {
                Mark::Gpu(GpuEvent::new(device, gpu, CUevent_flags::CU_EVENT_DEFAULT)?)
            }
        };
        Ok(Event {
            device: device.clone(),
            mark,
            order: order::Mark::default(),
        })
    }

    /// Puts the mark after all work enqueued in the stream so far. An earlier mark of this event is replaced.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`]; [`Error::Capturing`] during a capture, whose streams are ordered by
    /// [`Stream::fork`] and [`Stream::wait_for`].
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.on(stream)?;
        stream.must_not_capture("recording an event")?;
        match (&self.mark, stream.queue()) {
            (Mark::Gpu(event), Queue::Gpu(queue)) => event.record(queue.cu_stream())?,
            (Mark::Cpu(at), Queue::Cpu(queue)) => {
                queue.wait();
                *lock(at) = Some(Instant::now());
            }
            _ => {}
        }
        self.order.set(stream.order());
        Ok(())
    }

    /// Waits until the stream has reached the mark.
    ///
    /// # Errors
    /// [`Error::Driver`], also for an earlier kernel that failed.
    pub fn synchronize(&self) -> Result<()> {
        if let Mark::Gpu(event) = &self.mark {
            event.synchronize()?;
        }
        self.order.is_waited_for();
        Ok(())
    }

    /// The time from `start` to this mark. Waits for both. The resolution on a GPU is about half a
    /// microsecond.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`] if either was never recorded; [`Error::EventsOfTwoDevices`], [`Error::Driver`].
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        if start.device != self.device {
            return Err(Error::EventsOfTwoDevices {
                start: start.device.name().to_string(),
                end: self.device.name().to_string(),
            });
        }
        let not_recorded = Error::EventNotRecorded {
            found: "one of the two events was never recorded",
        };
        start.synchronize()?;
        self.synchronize()?;
        match (&start.mark, &self.mark) {
            (Mark::Gpu(start), Mark::Gpu(end)) => match end.milliseconds_since(start)? {
                Some(milliseconds) => {
                    let seconds = f64::from(milliseconds.max(0.0)) * 1e-3;
                    Ok(Duration::from_secs_f64(seconds))
                }
                None => Err(not_recorded),
            },
            (Mark::Cpu(start), Mark::Cpu(end)) => match (*lock(start), *lock(end)) {
                (Some(start), Some(end)) => Ok(end.saturating_duration_since(start)),
                _ => Err(not_recorded),
            },
            _ => Ok(Duration::ZERO),
        }
    }

    pub(crate) fn on(&self, stream: &Stream) -> Result<()> {
        self.device
            .expect(stream.device(), || "the event".to_string())
    }
}

impl Stream {
    /// Makes later work in this stream wait for the mark, which may be in another stream of the
    /// device. An event that was never recorded is not waited for.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`]; [`Error::Capturing`] during a capture.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.on(self)?;
        self.must_not_capture("waiting for an event")?;
        // Work on the CPU is done before an event is recorded behind it.
        if let (Mark::Gpu(event), Queue::Gpu(queue)) = (&event.mark, self.queue()) {
            event.precede(queue.cu_stream())?;
        }
        self.order().follows_mark(&event.order);
        Ok(())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event(on {})", self.device.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::another_cpu;

    #[test]
    fn there_is_no_time_between_events_of_two_devices() {
        let start = Event::new(&Device::cpu()).unwrap();
        let end = Event::new(&another_cpu()).unwrap();
        let refused = end.elapsed_since(&start).unwrap_err().to_string();
        assert!(
            refused.starts_with("the time from an event on cpu to one on another cpu"),
            "{refused}"
        );
    }
}
