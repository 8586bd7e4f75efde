//! Streams: queues of work on a device.

use std::ffi::c_void;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUstream};

use crate::aside::Aside;
use crate::cpu_queue::CpuQueue;
use crate::device::Place;
use crate::driver::{During, check};
use crate::gpu::Gpu;
use crate::graph_memory::{GraphMemory, StreamId};
use crate::kept::Kept;
use crate::lock::{lock, read, write};
use crate::resident::StreamMemory;
use crate::{Buffer, Device, Error, Result};

/// A queue of work on a device: launches, copies and fills run in the order of their calls.
///
/// On a GPU, work runs some time after its call; [`synchronize`](Self::synchronize) waits for it. On
/// the CPU, work is done when its call returns. The call first waits for other threads' work in the
/// stream. Work of two streams is not ordered unless an [`Event`](crate::Event) orders it. Cloning is
/// cheap, and clones are the same stream.
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
#[derive(Clone)]
pub struct Stream {
    /// One pointer, because every scratch memory clones its stream.
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    queue: Queue,
    id: StreamId,
    /// The memory that the stream keeps; `None` for a stream that this crate did not make.
    memory: Option<StreamMemory>,
    /// Written while a GPU's stream becomes part of a capture. Read by calls that decide whether it is part of one,
    /// until they have acted on it.
    joining: RwLock<()>,
    /// The last capture that a GPU's stream was part of.
    capture: Mutex<Option<PartOf>>,
    /// Made by the first call that copies and waits.
    aside: OnceLock<Aside>,
    kept: Kept,
}

/// A capture that a GPU's stream is part of, or was.
struct PartOf {
    /// The memory of the capture's graph.
    memory: Weak<GraphMemory>,
    /// Whether the capture began on this stream.
    began_here: bool,
}

pub(crate) enum Queue {
    Cpu(CpuQueue),
    Gpu(Arc<CudaStream>),
}

impl Inner {
    /// Frees the scratch memory that is not in use, after the stream's work.
    fn free_idle_blocks(&self) {
        if let (Queue::Gpu(stream), Some(memory)) = (&self.queue, &self.memory) {
            let idle = memory.take_all_idle();
            if !idle.is_empty() && self.device.make_current().is_ok() {
                for block in idle {
                    // SAFETY: no scratch memory has the block, the stream is alive, and its context is current.
                    unsafe { block.free(stream.cu_stream()) };
                }
            }
        }
    }
}

impl PartOf {
    /// The memory of the capture's graph, until the capture ends.
    fn open(&self) -> Option<Arc<GraphMemory>> {
        self.memory.upgrade().filter(|it| !it.has_ended())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.free_idle_blocks();
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
            Place::Gpu(gpu) => {
                let stream = gpu.context.new_stream();
                Queue::Gpu(stream.during("making a stream")?)
            }
        };
        Ok(Stream::new(
            self.clone(),
            queue,
            Some(StreamMemory::default()),
        ))
    }
}

impl Stream {
    fn new(device: Device, queue: Queue, memory: Option<StreamMemory>) -> Stream {
        Stream {
            inner: Arc::new(Inner {
                device,
                queue,
                id: StreamId::new(),
                memory,
                joining: RwLock::default(),
                capture: Mutex::default(),
                aside: OnceLock::new(),
                kept: Kept::default(),
            }),
        }
    }

    /// A cudarc stream as a stream of this crate. Both are the same stream.
    ///
    /// # Errors
    /// [`Error::PerThreadStream`] for cudarc's `per_thread_stream`; [`Error::Driver`] if the driver does not
    /// tell the device's properties.
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Stream> {
        is_one_stream(stream.cu_stream())?;
        let device = Device::from_cudarc(stream.context())?;
        Ok(Stream::new(device, Queue::Gpu(stream.clone()), None))
    }

    /// Borrows a stream by its handle (`CUstream`, `cudaStream_t`). Null is the default stream.
    /// Dropping the result does not destroy the stream.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if `device` is the CPU, which has no stream handles; [`Error::PerThreadStream`]
    /// for `CU_STREAM_PER_THREAD`.
    ///
    /// # Safety
    /// The handle is a stream's of `device`'s context. The stream outlives the result and its clones, and
    /// the memory that was bound to them.
    pub unsafe fn from_raw(device: &Device, handle: *mut c_void) -> Result<Stream> {
        is_one_stream(handle.cast())?;
        let Place::Gpu(gpu) = device.place() else {
            return Err(Error::NoDriver {
                asked: "a stream by its handle".to_string(),
                found: "the device is the CPU".to_string(),
            });
        };
        // SAFETY: the caller's promise.
        let stream = unsafe { gpu.context.wrap_borrowed_stream(handle.cast()) };
        Ok(Stream::new(device.clone(), Queue::Gpu(stream), None))
    }

    /// The stream as a cudarc stream; `None` on the CPU.
    pub fn as_cudarc(&self) -> Option<&Arc<CudaStream>> {
        match self.queue() {
            Queue::Cpu(_) => None,
            Queue::Gpu(stream) => Some(stream),
        }
    }

    /// The stream's handle (`CUstream`, `cudaStream_t`), for other libraries; `None` on the CPU.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.gpu().map(|(_, handle)| handle.cast())
    }

    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Waits until all work enqueued so far is done.
    ///
    /// # Errors
    /// [`Error::Driver`], also for an earlier kernel that failed; [`Error::Capturing`] during a
    /// capture.
    pub fn synchronize(&self) -> Result<()> {
        // The driver crashes if a capture of the stream begins meanwhile.
        let _joins = self.joins_no_capture();
        self.must_not_capture("waiting for the stream")?;
        self.wait_for_work()
    }

    /// Waits until all work enqueued so far is done. The stream is not being captured.
    pub(crate) fn wait_for_work(&self) -> Result<()> {
        match self.queue() {
            Queue::Cpu(queue) => {
                queue.wait();
                Ok(())
            }
            Queue::Gpu(stream) => {
                self.device().make_current()?;
                // SAFETY: the stream is alive.
                let code = unsafe { sys::cuStreamSynchronize(stream.cu_stream()) };
                check("waiting for the stream", code)
            }
        }
    }

    /// The value of type `V` that the stream and its clones keep: a cache of a library that uses the stream, say. The
    /// first call makes it by [`Default`]. It is dropped with the stream's last clone.
    ///
    /// With a type that is private to your crate, no other crate gets your value. A value must not own the stream,
    /// because then neither is ever dropped.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// # fn main() -> cutlet_host::Result<()> {
    /// #[derive(Default)]
    /// struct Names(Mutex<Vec<String>>);
    ///
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// stream.kept::<Names>().0.lock().unwrap().push("scale".to_string());
    /// assert_eq!(*stream.clone().kept::<Names>().0.lock().unwrap(), ["scale"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn kept<V: Default + Send + Sync + 'static>(&self) -> Arc<V> {
        self.inner.kept.value()
    }

    /// Words in device memory that the stream and its clones keep. The first call with a key uploads the
    /// words of `make`. Later calls return the same memory, as kernels left it. `None` if `make` returns
    /// `None`.
    ///
    /// `make` may use the stream, and this function, too. If several calls with a key make words at the same
    /// time, all of them return the words of the first that ends.
    ///
    /// Keys of different types are different. With a key type that is private to your crate, no other
    /// crate gets your words.
    ///
    /// Launches of a stream run one after the other, so each can rely on the words that the previous one
    /// left. During a [`capture`](Self::capture) the words belong to the graph, whose replays also run one
    /// after the other. The result is `None` where this order is not certain: for a stream that this crate
    /// did not make, as its handle may be in several streams, and during a capture on a GPU that
    /// [`capture`](Self::capture) did not begin on this stream.
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
        let of_graph;
        let memory = match self.is_capturing()? {
            false => self.memory().map(StreamMemory::words),
            true => {
                of_graph = self.ordered_graph_memory();
                of_graph.as_deref().map(GraphMemory::words)
            }
        };
        let Some(memory) = memory else {
            return Ok(None);
        };
        memory.words(key, || match make()? {
            // In a stream of its own, as an upload waits, and a stream cannot be waited for during a capture.
            Some(words) => self.device().stream()?.upload(&words).map(Some),
            None => Ok(None),
        })
    }

    /// The memory of the graph into which the stream is being captured; `None` outside a capture, and in one that
    /// another library began.
    pub(crate) fn graph_memory(&self) -> Option<Arc<GraphMemory>> {
        match self.queue() {
            Queue::Cpu(queue) => queue.graph_memory(),
            Queue::Gpu(_) => lock(&self.inner.capture).as_ref()?.open(),
        }
    }

    /// As [`graph_memory`](Self::graph_memory), if all work in the graph that uses it is certain to run in order. A
    /// GPU's graph runs the work of streams that joined its capture at the same time.
    fn ordered_graph_memory(&self) -> Option<Arc<GraphMemory>> {
        match self.queue() {
            Queue::Cpu(queue) => queue.graph_memory(),
            Queue::Gpu(_) => {
                self.memory()?;
                let capture = lock(&self.inner.capture);
                let own = capture.as_ref().filter(|it| it.began_here);
                own?.open()
            }
        }
    }

    /// A GPU's stream is now part of the capture whose graph has this memory.
    pub(crate) fn becomes_part_of(&self, memory: Weak<GraphMemory>, began_here: bool) {
        *lock(&self.inner.capture) = Some(PartOf { memory, began_here });
    }

    /// Frees the scratch memory that the stream keeps and that is not in use.
    pub(crate) fn free_idle_blocks(&self) {
        self.inner.free_idle_blocks();
    }

    pub(crate) fn memory(&self) -> Option<&StreamMemory> {
        self.inner.memory.as_ref()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// The GPU and the stream's handle; `None` on the CPU.
    pub(crate) fn gpu(&self) -> Option<(&Gpu, CUstream)> {
        match (self.device().place(), self.queue()) {
            (Place::Gpu(gpu), Queue::Gpu(stream)) => Some((gpu, stream.cu_stream())),
            _ => None,
        }
    }

    /// While the guard is alive, the stream does not become part of a capture. On the CPU, the queue decides for each
    /// piece of work.
    pub(crate) fn joins_no_capture(&self) -> RwLockReadGuard<'_, ()> {
        read(&self.inner.joining)
    }

    /// What makes the stream part of a capture holds this guard.
    pub(crate) fn may_join_a_capture(&self) -> RwLockWriteGuard<'_, ()> {
        write(&self.inner.joining)
    }

    /// The stream beside this stream of a GPU.
    pub(crate) fn aside(&self, gpu: &Gpu) -> Result<&Aside> {
        let aside = &self.inner.aside;
        if let Some(made) = aside.get() {
            return Ok(made);
        }
        let made = Aside::new(self.device(), gpu)?;
        Ok(aside.get_or_init(|| made))
    }

    pub(crate) fn id(&self) -> StreamId {
        self.inner.id
    }

    /// Returns an error if the stream is being captured into a graph.
    pub(crate) fn must_not_capture(&self, doing: &'static str) -> Result<()> {
        if self.is_capturing()? {
            return Err(Error::Capturing { doing });
        }
        Ok(())
    }

    /// Whether the stream is being captured into a graph.
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn is_capturing(&self) -> Result<bool> {
        match self.queue() {
            Queue::Cpu(queue) => Ok(queue.is_recording()),
            // The driver's status changes before its call that ends the capture returns.
            Queue::Gpu(_) if self.graph_memory().is_some() => Ok(true),
            Queue::Gpu(stream) => {
                self.device().make_current()?;
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

/// Clones are equal, and so are streams with the same handle.
impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return true;
        }
        match (self.queue(), other.queue()) {
            (Queue::Gpu(one), Queue::Gpu(another)) => {
                one.cu_stream() == another.cu_stream() && self.device() == other.device()
            }
            _ => false,
        }
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream(on {})", self.device().name())
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
