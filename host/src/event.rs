//! Events: marks in a stream, for timing and for ordering streams.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent_flags, CUresult};
use cudarc::driver::{CudaEvent, DriverError};

use crate::cpu_queue::CapturePlace;
use crate::device::Place;
use crate::driver::{During, check};
use crate::graph_memory::GraphMemory;
use crate::lock::lock;
use crate::stream::Queue;
use crate::{Device, Error, Result, Stream};

/// A mark in a stream.
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
}

enum Mark {
    Cpu(Mutex<CpuMark>),
    Gpu(CudaEvent, Mutex<GpuMark>),
}

#[derive(Default)]
enum CpuMark {
    /// The event was never recorded.
    #[default]
    Nowhere,
    /// The time at which the stream reached the mark.
    Passed(Instant),
    /// The mark's position in a capture.
    Captured(CapturePlace),
}

#[derive(Default)]
enum GpuMark {
    /// The event was never recorded.
    #[default]
    Nowhere,
    /// The mark is in a stream.
    InStream,
    /// The mark is in the capture of a graph with this memory.
    Captured(Weak<GraphMemory>),
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
                let event = gpu.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
                Mark::Gpu(event.during("making an event")?, Mutex::default())
            }
        };
        Ok(Event {
            device: device.clone(),
            mark,
        })
    }

    /// Puts the mark after all work enqueued in the stream so far. An earlier mark of this event is replaced.
    ///
    /// During a capture, the event orders the captured streams and has no time.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`].
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.on(stream)?;
        match (&self.mark, stream.queue()) {
            (Mark::Gpu(event, mark), Queue::Gpu(queue)) => {
                stream.device().make_current()?;
                // Held for both, so that no thread waits for the event with the mark before.
                let mut mark = lock(mark);
                // SAFETY: event and stream are alive and of the same context.
                let code = unsafe { sys::cuEventRecord(event.cu_event(), queue.cu_stream()) };
                check("recording an event", code)?;
                *mark = match stream.graph_memory() {
                    Some(memory) => GpuMark::Captured(Arc::downgrade(&memory)),
                    None => GpuMark::InStream,
                };
                Ok(())
            }
            (Mark::Cpu(at), Queue::Cpu(queue)) => {
                let mark = match queue.place() {
                    Some(place) => CpuMark::Captured(place),
                    None => {
                        queue.wait();
                        CpuMark::Passed(Instant::now())
                    }
                };
                *lock(at) = mark;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Waits until the stream has reached the mark.
    ///
    /// # Errors
    /// [`Error::Driver`], also for an earlier kernel that failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.mark {
            Mark::Cpu(_) => Ok(()),
            Mark::Gpu(event, _) => event.synchronize().during("waiting for an event"),
        }
    }

    /// The time from `start` to this mark. Waits for both. The resolution on a GPU is about half a
    /// microsecond.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`] if either was never recorded, or last in a capture;
    /// [`Error::EventsOfTwoDevices`], [`Error::Driver`].
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        if start.device != self.device {
            return Err(Error::EventsOfTwoDevices {
                start: start.device.name().to_string(),
                end: self.device.name().to_string(),
            });
        }
        let not_recorded = Error::EventNotRecorded {
            found: "one of the two events was never recorded, or last in a capture",
        };
        match (&start.mark, &self.mark) {
            (Mark::Gpu(start, start_mark), Mark::Gpu(end, end_mark)) => {
                let is_in_stream = |mark| matches!(&*lock(mark), GpuMark::InStream);
                if !is_in_stream(start_mark) || !is_in_stream(end_mark) {
                    return Err(not_recorded);
                }
                match start.elapsed_ms(end) {
                    Ok(milliseconds) => {
                        let seconds = f64::from(milliseconds.max(0.0)) * 1e-3;
                        Ok(Duration::from_secs_f64(seconds))
                    }
                    Err(DriverError(
                        CUresult::CUDA_ERROR_INVALID_HANDLE | CUresult::CUDA_ERROR_CAPTURED_EVENT,
                    )) => Err(not_recorded),
                    Err(error) => Err(error).during("asking for the time between two events"),
                }
            }
            (Mark::Cpu(start), Mark::Cpu(end)) => {
                let passed = |at: &Mutex<CpuMark>| match &*lock(at) {
                    CpuMark::Passed(at) => Some(*at),
                    _ => None,
                };
                match (passed(start), passed(end)) {
                    (Some(start), Some(end)) => Ok(end.saturating_duration_since(start)),
                    _ => Err(not_recorded),
                }
            }
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
    /// device.
    ///
    /// If the mark was recorded in a [capture](Stream::capture), this stream joins the capture until
    /// it ends.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`]. During a capture, a mark that is no part of it is an
    /// [`Error::Capture`] on the CPU and an [`Error::Driver`] on a GPU.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.on(self)?;
        match (&event.mark, self.queue()) {
            (Mark::Gpu(event, mark), Queue::Gpu(queue)) => {
                self.device().make_current()?;
                let mark = lock(mark);
                let _joining = self.may_join_a_capture();
                // SAFETY: event and stream are alive and of the same context.
                let code =
                    unsafe { sys::cuStreamWaitEvent(queue.cu_stream(), event.cu_event(), 0) };
                check("having a stream wait for an event", code)?;
                if let (GpuMark::Captured(memory), None) = (&*mark, self.graph_memory()) {
                    self.becomes_part_of(memory.clone(), false);
                }
                Ok(())
            }
            (Mark::Cpu(at), Queue::Cpu(queue)) => match &*lock(at) {
                CpuMark::Nowhere => Ok(()),
                CpuMark::Passed(_) => queue.wait_for_passed(),
                CpuMark::Captured(place) => queue.wait_for(place),
            },
            _ => Ok(()),
        }
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
