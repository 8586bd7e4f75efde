//! Captures: work recorded in a stream of its own, and streams that fork from it.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};

use crate::allocation::Allocation;
use crate::cpu_queue::{Recording, Work};
use crate::driver::{RelaxedCaptureMode, check};
use crate::graph::{Executable, Recorded};
use crate::lock::lock;
use crate::{Device, Error, Graph, Result, Stream};

/// A capture of this crate. Its streams refer to it; [`Device::capture`] owns it.
#[derive(Default)]
pub(crate) struct Capture {
    /// On the CPU, the recorded work in the order of its calls.
    work: Mutex<Vec<Box<dyn Work>>>,
    /// Forked streams that have joined again. Recorded work uses their memory.
    joined: Mutex<Vec<Stream>>,
    /// The memory of buffers that the recorded work uses.
    memory: Mutex<Vec<Arc<Allocation>>>,
    /// Whether the graph must own all memory of the recorded work.
    owns_all: bool,
    /// Whether the handle of a stream was asked for, so that other libraries may record, too.
    is_shared: AtomicBool,
}

impl Capture {
    /// Records work on the CPU.
    pub(crate) fn record(&self, work: Box<dyn Work>) {
        lock(&self.work).push(work);
    }

    /// Keeps memory of recorded work, which is `what` in words, for the graph.
    fn keep(&self, memory: Option<&Arc<Allocation>>, what: impl FnOnce() -> String) -> Result<()> {
        let Some(memory) = memory else {
            return match self.owns_all {
                true => Err(Error::Capture {
                    found: format!("{} is memory that a graph cannot own", what()),
                    fix: "use a `Buffer`, or `Device::capture` and the `unsafe` launch of its graph",
                }),
                false => Ok(()),
            };
        };
        let mut kept = lock(&self.memory);
        // Work of a step most often uses what the work before it wrote.
        if !kept.iter().rev().any(|it| Arc::ptr_eq(it, memory)) {
            kept.push(memory.clone());
        }
        Ok(())
    }

    /// From now on, other libraries may record in the capture's streams.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Returns an error if the graph must own its memory, and other libraries may have recorded.
    fn expect_own_work(&self) -> Result<()> {
        match self.owns_all && self.is_shared.load(Ordering::Relaxed) {
            true => Err(Error::Capture {
                found: "its handle was asked for, with which another library may record memory that a graph cannot own"
                    .into(),
                fix: "record work of this crate alone, or use `Device::capture` and the `unsafe` launch of its graph",
            }),
            false => Ok(()),
        }
    }
}

impl Device {
    /// Records the work that `work` enqueues in the stream that it is given, and runs none of it.
    ///
    /// `work` may launch kernels, and copy and fill on the device. It may load kernels and allocate
    /// buffers, which happens at once. It may not wait, upload or download. Work in other streams is not recorded: it
    /// runs as always.
    ///
    /// The stream is made for the capture and ends with it. Nothing else can use it meanwhile, because it has no
    /// clones. [`Stream::fork`] makes further streams of the capture.
    ///
    /// The graph keeps the memory of these streams: [scratch memory](Stream::scratch), [words](Stream::resident) and
    /// [values](Stream::state). It also keeps the memory of each [`Buffer`](crate::Buffer) that the recorded work uses.
    /// [`capture_owned`](Self::capture_owned) makes graphs whose launch is safe.
    ///
    /// The error type is that of `work`. Where `work` ends in `Ok(())`, name the type:
    /// `Ok::<_, cutlet_host::Error>(())`.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let stream = device.stream()?;
    /// let mut x = stream.upload(&[1u8, 2])?;
    /// let graph = device.capture(|stream| stream.fill_bytes(&mut x, 9))?;
    /// assert_eq!(stream.download(&x)?, [1, 2]);
    /// // SAFETY: `x` is alive until the download has waited for the graph.
    /// unsafe { graph.launch(&stream)? };
    /// assert_eq!(stream.download(&x)?, [9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// The stream does not leave the capture:
    ///
    /// ```compile_fail,E0521
    /// # fn main() -> cutlet_host::Result<()> {
    /// let mut leaked = None;
    /// cutlet_host::Device::cpu().capture(|stream| {
    ///     leaked = Some(stream);
    ///     Ok::<_, cutlet_host::Error>(())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of `work`; [`Error::Capture`] or [`Error::Driver`] if the recorded work makes no graph.
    pub fn capture<E: From<Error>>(
        &self,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.capture_for(false, work)
    }

    /// Records work for a graph. If it `owns_all`, work with memory that it cannot keep is refused.
    pub(crate) fn capture_for<E: From<Error>>(
        &self,
        owns_all: bool,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let capture = Arc::new(Capture {
            owns_all,
            ..Capture::default()
        });
        let stream = Stream::recording_for(self, &Arc::downgrade(&capture))?;
        let recorded = match stream.gpu() {
            Some((_, handle)) => Recorded::Gpu(record_gpu(self, handle, || work(&stream))?),
            None => {
                work(&stream)?;
                let recorded = std::mem::take(&mut *lock(&capture.work));
                Recorded::Cpu(Recording::new(recorded))
            }
        };
        let mut streams = std::mem::take(&mut *lock(&capture.joined));
        streams.push(stream);
        capture.expect_own_work()?;
        let memory = std::mem::take(&mut *lock(&capture.memory));
        Ok(Graph::new(self.clone(), recorded, streams, memory))
    }
}

/// A stream that [forks](Stream::fork) from another one, and joins it when this is dropped.
///
/// Its work begins after the earlier work of the other stream, and may run at the same time as the later work. Work that
/// is enqueued in the other stream after the join runs after both.
#[derive(Debug)]
pub struct Fork<'a> {
    from: &'a Stream,
    /// `None` after the join.
    stream: Option<Stream>,
}

impl Stream {
    /// Work of the stream is about to use memory, which is `what` in words. The graph that the stream records keeps it. If
    /// it records none, the memory is freed after the work.
    pub(crate) fn uses_memory(
        &self,
        memory: Option<&Arc<Allocation>>,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        match self.capture().and_then(Weak::upgrade) {
            Some(capture) => capture.keep(memory, what),
            None => memory.map_or(Ok(()), |memory| memory.is_used_in(self)),
        }
    }

    /// A second stream, whose work begins after the work that was enqueued in this one so far. In a
    /// [capture](Device::capture), its work is recorded, too.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let stream = device.stream()?;
    /// let (mut x, mut y) = (stream.zeroed::<u8>(2)?, stream.zeroed::<u8>(2)?);
    /// let graph = device.capture(|stream| {
    ///     let fork = stream.fork()?;
    ///     fork.fill_bytes(&mut x, 1)?;
    ///     stream.fill_bytes(&mut y, 2)?;
    ///     fork.join()?;
    ///     stream.copy(&x, y.slice_mut(..)?)
    /// })?;
    /// // SAFETY: both buffers are alive until the download has waited for the graph.
    /// unsafe { graph.launch(&stream)? };
    /// assert_eq!(stream.download(&y)?, [1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`]; [`Error::Capture`] if another library is capturing the stream.
    pub fn fork(&self) -> Result<Fork<'_>> {
        let stream = match self.capture() {
            Some(capture) => Stream::recording_for(self.device(), capture)?,
            None => self.device().stream()?,
        };
        stream.wait_for(self)?;
        Ok(Fork {
            from: self,
            stream: Some(stream),
        })
    }
}

impl Fork<'_> {
    /// Makes later work of the stream that this one forked from wait for the work of this one. Dropping it does the
    /// same, and ignores errors.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn join(mut self) -> Result<()> {
        self.join_once()
    }

    fn join_once(&mut self) -> Result<()> {
        let Some(stream) = self.stream.take() else {
            return Ok(());
        };
        let joined = self.from.wait_for(&stream);
        if let Some(capture) = stream.capture().and_then(Weak::upgrade) {
            lock(&capture.joined).push(stream);
        }
        joined
    }
}

impl Deref for Fork<'_> {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        self.stream.as_ref().unwrap_or(self.from)
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        // Without the join, the capture's end returns an error.
        let _ = self.join_once();
    }
}

/// Has the driver record what `work` enqueues in a stream that nothing else uses.
fn record_gpu<E: From<Error>>(
    device: &Device,
    stream: CUstream,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<Executable, E> {
    let mut capture = GpuCapture::begin(device, stream)?;
    work()?;
    capture.end()?;
    if capture.graph.is_null() {
        return Err(E::from(Error::Capture {
            found: "the driver dropped the graph because of an operation that it cannot hold"
                .into(),
            fix: "capture launches, device copies and fills only",
        }));
    }
    let mut executable: CUgraphExec = ptr::null_mut();
    let _relaxed = RelaxedCaptureMode::enter()?;
    // SAFETY: the graph was just recorded, and the driver writes one handle.
    let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, capture.graph, 0) };
    check("making a graph executable", code)?;
    Ok(Executable::new(executable))
}

/// A capture of the driver. Dropped, it ends the capture, also if the work failed or panicked, and frees the recorded
/// graph.
struct GpuCapture<'a> {
    device: &'a Device,
    stream: CUstream,
    has_ended: bool,
    graph: CUgraph,
}

impl<'a> GpuCapture<'a> {
    fn begin(device: &'a Device, stream: CUstream) -> Result<Self> {
        device.bind()?;
        // Relaxed, so that the work may allocate and load kernels.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is alive.
        let code = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
        check("beginning a capture", code)?;
        Ok(GpuCapture {
            device,
            stream,
            has_ended: false,
            graph: ptr::null_mut(),
        })
    }

    fn end(&mut self) -> Result<()> {
        self.has_ended = true;
        // The work may have used another device. Without a context, ending the capture returns an error.
        let current = self.device.bind();
        // SAFETY: the stream is alive, and the driver writes one handle.
        let code = unsafe { sys::cuStreamEndCapture(self.stream, &mut self.graph) };
        current?;
        check("ending a capture", code)
    }
}

impl Drop for GpuCapture<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // The work has failed already, and its error is returned.
            let _ = self.end();
        }
        if !self.graph.is_null() {
            // SAFETY: the capture made the graph, and it is destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}
