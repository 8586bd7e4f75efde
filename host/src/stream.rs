//! Streams: queues of work on a device.

use std::ffi::c_void;
use std::fmt;
use std::hash::Hash;
use std::ptr;
use std::sync::{Arc, Weak};

use cudarc::driver::sys::{self, CUevent_flags, CUstream};
use cudarc::driver::{CudaContext, CudaStream};

use crate::capture::Capture;
use crate::cpu_queue::CpuQueue;
use crate::device::Place;
use crate::driver::{RelaxedCaptureMode, check};
use crate::gpu::Gpu;
use crate::gpu_event::GpuEvent;
use crate::gpu_stream::GpuStream;
use crate::order::StreamOrder;
use crate::stream_memory::StreamMemory;
use crate::stream_state::StreamState;
use crate::user_stream::UserStream;
use crate::{Buffer, Device, Error, Result};

/// A queue of work on a device: launches, copies and fills run in the order of their calls.
///
/// On a GPU, work runs some time after its call; [`synchronize`](Self::synchronize) waits for it. On
/// the CPU, work is done when its call returns. The call first waits for other threads' work in the
/// stream.
///
/// Work of two streams is not ordered unless an [`Event`](crate::Event) or [`wait_for`](Self::wait_for) orders it, or a
/// call has waited for the first stream meanwhile. A new buffer's [fill](Self::zeroed) is work of its stream, too. Builds
/// with debug assertions return [`Error::Unordered`] where streams that use a buffer have no order, on the CPU as well.
///
/// Threads may share a stream, by reference or in an [`Arc`]. A stream has no clones, because the stream of a
/// [capture](Device::capture) must end with the capture.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// let stream = cutlet_host::Device::auto().stream()?;
/// let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
/// let mut y = stream.zeroed::<f32>(3)?;
/// stream.copy(&x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0, 2.0, 3.0]);
/// # Ok(()) }
/// ```
pub struct Stream {
    device: Device,
    queue: Queue,
    memory: StreamMemory,
    /// The capture that the stream was made for.
    capture: Option<Weak<Capture>>,
    state: StreamState,
    order: StreamOrder,
    /// A GPU's stream as memory knows it that its work uses; `None` for the stream of a capture, whose work runs in
    /// replays.
    user: Option<Arc<UserStream>>,
}

pub(crate) enum Queue {
    Cpu(CpuQueue),
    Gpu(GpuStream),
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.free_idle_blocks();
        if let (Some(user), Place::Gpu(gpu)) = (&self.user, self.device.place())
            && Arc::strong_count(user) > 1
        {
            user.end(&self.device, gpu);
        }
    }
}

impl Device {
    /// A new stream on this device.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver makes none.
    pub fn stream(&self) -> Result<Stream> {
        let queue = match self.place() {
            Place::Cpu => Queue::Cpu(CpuQueue::default()),
            Place::Gpu(gpu) => Queue::Gpu(gpu.new_stream()?),
        };
        Ok(Stream::new(self.clone(), queue, None))
    }
}

impl Stream {
    fn new(device: Device, queue: Queue, capture: Option<Weak<Capture>>) -> Stream {
        let order = StreamOrder::new(capture.is_some());
        let user = match &queue {
            Queue::Gpu(stream) if capture.is_none() => {
                let handle = stream.cu_stream();
                Some(match is_one_stream(handle) {
                    Ok(()) => UserStream::new(handle),
                    Err(_) => UserStream::unknown(),
                })
            }
            _ => None,
        };
        Stream {
            device,
            queue,
            memory: StreamMemory::default(),
            capture,
            state: StreamState::default(),
            order,
            user,
        }
    }

    /// A stream that records for a capture. On a GPU, the driver's capture does not include it yet.
    pub(crate) fn recording_for(device: &Device, capture: &Weak<Capture>) -> Result<Stream> {
        let queue = match device.place() {
            Place::Cpu => Queue::Cpu(CpuQueue::recording_for(capture.clone())),
            Place::Gpu(gpu) => Queue::Gpu(gpu.new_stream()?),
        };
        Ok(Stream::new(device.clone(), queue, Some(capture.clone())))
    }

    /// A cudarc stream as a stream of this crate. Both are the same stream.
    ///
    /// cudarc can begin and end captures of it. Work is then recorded, and calls that wait are refused. The driver
    /// crashes if one thread begins or ends a capture of a stream while another thread uses the stream. cudarc does not
    /// prevent that, and neither can this crate.
    ///
    /// # Errors
    /// [`Error::PerThreadStream`] for cudarc's `per_thread_stream`, see [`of_this_thread`](Self::of_this_thread);
    /// [`Error::Driver`] if the driver does not tell the device's properties.
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Stream> {
        is_one_stream(stream.cu_stream())?;
        let device = Device::from_cudarc(stream.context())?;
        Ok(Stream::new(
            device,
            Queue::Gpu(GpuStream::from(stream.clone())),
            None,
        ))
    }

    /// The stream that the calling thread has by default (`CU_STREAM_PER_THREAD`, cudarc's `per_thread_stream`). Programs
    /// that use cudarc through candle have their work there. The handle stands for another stream in each thread.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver does not tell the device's properties.
    ///
    /// # Safety
    /// The result, and what borrows it, is used and dropped in the calling thread alone.
    pub unsafe fn of_this_thread(context: &Arc<CudaContext>) -> Result<Stream> {
        let device = Device::from_cudarc(context)?;
        let queue = Queue::Gpu(GpuStream::from(context.per_thread_stream()));
        Ok(Stream::new(device, queue, None))
    }

    /// Borrows a stream by its handle (`CUstream`, `cudaStream_t`). Null is the default stream.
    /// Dropping the result does not destroy the stream.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if `device` is the CPU, which has no stream handles; [`Error::PerThreadStream`]
    /// for `CU_STREAM_PER_THREAD`.
    ///
    /// # Safety
    /// The handle is a stream's of `device`'s context. The stream outlives the result. While a call of this crate uses
    /// the result, no other thread begins or ends a capture of the stream.
    pub unsafe fn from_raw(device: &Device, handle: *mut c_void) -> Result<Stream> {
        is_one_stream(handle.cast())?;
        let Place::Gpu(gpu) = device.place() else {
            return Err(Error::NoDriver {
                asked: "a stream by its handle".to_string(),
                found: "the device is the CPU".to_string(),
            });
        };
        device.order().share();
        // SAFETY: the caller's promise.
        let stream = unsafe { gpu.context.wrap_borrowed_stream(handle.cast()) };
        Ok(Stream::new(
            device.clone(),
            Queue::Gpu(GpuStream::from(stream)),
            None,
        ))
    }

    /// The stream as a cudarc stream; `None` on the CPU. For captures by cudarc, see [`from_cudarc`](Self::from_cudarc).
    pub fn as_cudarc(&self) -> Option<&Arc<CudaStream>> {
        match self.queue() {
            Queue::Cpu(_) => None,
            Queue::Gpu(stream) => {
                self.share();
                Some(stream.as_cudarc())
            }
        }
    }

    /// The stream's handle (`CUstream`, `cudaStream_t`), for other libraries; `None` on the CPU.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        let (_, handle) = self.gpu()?;
        self.share();
        Some(handle.cast())
    }

    /// From now on, another library may enqueue work in the stream, or record it.
    fn share(&self) {
        self.device.order().share();
        if let Some(capture) = self.capture().and_then(Weak::upgrade) {
            capture.share();
        }
    }

    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work enqueued so far is done.
    ///
    /// # Errors
    /// [`Error::Driver`], also for an earlier kernel that failed; [`Error::Capturing`] during a
    /// capture.
    pub fn synchronize(&self) -> Result<()> {
        self.must_not_capture("waiting for the stream")?;
        let enqueued = self.order.enqueued();
        match self.queue() {
            Queue::Cpu(queue) => queue.wait(),
            Queue::Gpu(stream) => {
                self.device().bind()?;
                let _relaxed = RelaxedCaptureMode::enter()?;
                // SAFETY: the stream is alive.
                let code = unsafe { sys::cuStreamSynchronize(stream.cu_stream()) };
                check("waiting for the stream", code)?;
            }
        }
        self.order.is_waited_for(enqueued);
        Ok(())
    }

    /// Makes later work in this stream wait for the work that was enqueued in `other` so far.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let mut x = first.zeroed::<u8>(2)?;
    /// first.fill_bytes(&mut x, 7)?;
    /// second.wait_for(&first)?;
    /// assert_eq!(second.download(&x)?, [7, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`]; [`Error::Capture`] if one of the streams is being captured and the
    /// other is not in the same capture.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        let what = || "the stream to wait for".to_string();
        other.device.expect(&self.device, what)?;
        self.expect_same_capture(other)?;
        match (self.gpu(), other.queue()) {
            (Some((gpu, stream)), Queue::Gpu(others)) => {
                let mark =
                    GpuEvent::new(&self.device, gpu, CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
                mark.record(others.cu_stream())?;
                mark.precede(stream)?;
            }
            (None, Queue::Cpu(others)) => others.wait(),
            _ => {}
        }
        self.order.follows(&other.order);
        Ok(())
    }

    /// Returns an error unless both streams are part of the same capture, or neither is part of one.
    fn expect_same_capture(&self, other: &Stream) -> Result<()> {
        let same = match (&self.capture, &other.capture) {
            (Some(capture), Some(others)) => Weak::ptr_eq(capture, others),
            (None, None) => !self.is_capturing()? && !other.is_capturing()?,
            _ => false,
        };
        match same {
            true => Ok(()),
            false => Err(Error::Capture {
                found: "a stream of a capture and a stream outside of it were to be ordered".into(),
                fix: "use `Stream::fork` for a second stream of a capture, or order the streams before the capture",
            }),
        }
    }

    /// The value of type `V` that the stream keeps: a cache of a library that uses the stream, say. The first call
    /// makes it by [`Default`]. It is dropped with the stream.
    ///
    /// With a type that is private to your crate, no other crate gets your value.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// # fn main() -> cutlet_host::Result<()> {
    /// #[derive(Default)]
    /// struct Names(Mutex<Vec<String>>);
    ///
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// stream.state::<Names>().0.lock().unwrap().push("scale".to_string());
    /// assert_eq!(*stream.state::<Names>().0.lock().unwrap(), ["scale"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn state<V: Default + Send + Sync + 'static>(&self) -> Arc<V> {
        self.state.value()
    }

    /// Words in device memory that the stream keeps. The first call with a key uploads the words of `make`. Later calls
    /// return the same memory, as kernels left it. `None` if `make` returns `None`.
    ///
    /// `make` may use the stream, and this function, too. If several calls with a key make words at the same
    /// time, all of them return the words of the first that ends.
    ///
    /// Keys of different types are different. With a key type that is private to your crate, no other
    /// crate gets your words.
    ///
    /// Launches of a stream run one after the other, so each can rely on the words that the previous one
    /// left. The words of a [capture](Device::capture)'s stream belong to the graph, whose replays also run one
    /// after the other. The result is `None` where this order is not certain: during a capture of another library, whose
    /// replays nothing orders.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// #[derive(PartialEq, Eq, Hash)]
    /// struct Counters;
    ///
    /// let words = stream.resident(Counters, || Ok(Some(vec![1, 2, 3])))?.expect("the stream is our own");
    /// assert_eq!(stream.download(&*words)?, [1, 2, 3]);
    /// let same = stream.resident(Counters, || unreachable!())?.expect("the stream is our own");
    /// assert_eq!(same.view().address(), words.view().address());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `make`, [`Error::OutOfMemory`](crate::Error::OutOfMemory),
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn resident<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Vec<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        if self.is_captured_elsewhere()? {
            return Ok(None);
        }
        self.memory.words().words(key, || match make()? {
            // In a stream of its own, as an upload waits, and a stream cannot be waited for during a capture.
            Some(words) => {
                let mut buffer = Buffer::allocate(self, words.len())?;
                let upload = self.device.stream()?;
                upload.copy_from_host(&words, &mut buffer)?;
                Ok(Some(buffer))
            }
            None => Ok(None),
        })
    }

    pub(crate) fn memory(&self) -> &StreamMemory {
        &self.memory
    }

    /// The stream as memory knows it that its work uses.
    pub(crate) fn user(&self) -> Option<&Arc<UserStream>> {
        self.user.as_ref()
    }

    pub(crate) fn order(&self) -> &StreamOrder {
        &self.order
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The capture that the stream was made for; `None` for every other stream.
    pub(crate) fn capture(&self) -> Option<&Weak<Capture>> {
        self.capture.as_ref()
    }

    /// The GPU and the stream's handle; `None` on the CPU.
    pub(crate) fn gpu(&self) -> Option<(&Gpu, CUstream)> {
        match (self.device.place(), &self.queue) {
            (Place::Gpu(gpu), Queue::Gpu(stream)) => Some((gpu, stream.cu_stream())),
            _ => None,
        }
    }

    /// Frees the scratch memory that the stream keeps and that is not in use, after the stream's work.
    pub(crate) fn free_idle_blocks(&self) {
        if let Queue::Gpu(stream) = &self.queue {
            let idle = self.memory.take_all_idle();
            if !idle.is_empty() && self.device.bind().is_ok() {
                for block in idle {
                    // SAFETY: no scratch memory has the block, the stream is alive, and its context is current.
                    unsafe { block.free(stream.cu_stream()) };
                }
            }
        }
    }

    /// Returns an error if the stream is being captured into a graph.
    pub(crate) fn must_not_capture(&self, doing: &'static str) -> Result<()> {
        if self.is_capturing()? {
            return Err(Error::Capturing { doing });
        }
        Ok(())
    }

    /// Whether another library is capturing the stream, whose graph does not keep the stream's memory and values. It is
    /// false in the stream of a [capture](Device::capture).
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn is_captured_elsewhere(&self) -> Result<bool> {
        Ok(self.capture.is_none() && self.is_capturing()?)
    }

    /// Whether work in the stream is recorded into a graph: in the stream of a [capture](Device::capture), and in a
    /// stream that another library is capturing.
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn is_capturing(&self) -> Result<bool> {
        match &self.queue {
            _ if self.capture.is_some() => Ok(true),
            Queue::Cpu(_) => Ok(false),
            Queue::Gpu(stream) => {
                self.device.bind()?;
                let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
                // SAFETY: the stream is alive, and the driver writes one status.
                let code = unsafe { sys::cuStreamIsCapturing(stream.cu_stream(), &mut status) };
                check("querying whether the stream is being captured", code)?;
                Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
            }
        }
    }
}

/// Refuses the handle of the per-thread default stream. A [`Stream`] is used in several threads, and everything here
/// relies on the order of its work.
fn is_one_stream(handle: CUstream) -> Result<()> {
    // `CU_STREAM_PER_THREAD`, which the bindings do not have.
    match handle.addr() {
        2 => Err(Error::PerThreadStream),
        _ => Ok(()),
    }
}

/// A stream equals itself and streams with the same handle.
impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        match (self.queue(), other.queue()) {
            (Queue::Gpu(one), Queue::Gpu(another)) => {
                one.cu_stream() == another.cu_stream() && self.device == other.device
            }
            _ => ptr::eq(self, other),
        }
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream(on {})", self.device.name())
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn the_per_thread_stream_is_refused() {
        let refused = is_one_stream(ptr::without_provenance_mut(2)).unwrap_err();
        assert!(matches!(refused, Error::PerThreadStream), "{refused}");
        for handle in [0, 1, 0x1000] {
            is_one_stream(ptr::without_provenance_mut(handle)).unwrap();
        }
        // SAFETY: refused before the handle is used.
        let refused = unsafe { Stream::from_raw(&Device::cpu(), ptr::without_provenance_mut(2)) };
        assert!(matches!(refused, Err(Error::PerThreadStream)));
    }
}
