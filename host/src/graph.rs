//! Graphs: work recorded once and replayed with one call.

use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};

use crate::cpu_queue::{CpuQueue, Recording};
use crate::device::Place;
use crate::driver::check;
use crate::graph_memory::GraphMemory;
use crate::lock::lock;
use crate::stream::Queue;
use crate::{Device, Error, Result, Stream};

/// Launches, copies and fills recorded by [`Stream::capture`], for replay.
///
/// On a GPU this is a CUDA graph: a replay is one driver call, however much was recorded. On the CPU
/// it is a list of work, and a replay runs it in order. Nothing runs during the capture. Replays of
/// one graph run one after the other, also in different streams.
pub struct Graph {
    device: Device,
    recorded: Recorded,
    /// Keeps the memory that the recorded launches use.
    _memory: Arc<GraphMemory>,
}

enum Recorded {
    Cpu(Recording),
    /// Locked by calls of the driver: it does not say that several threads may use a graph at a time.
    Gpu(Mutex<Executable>),
}

struct Executable(CUgraphExec);

// SAFETY: the driver takes an executable graph's handle from any thread.
unsafe impl Send for Executable {}

impl Stream {
    /// Records the work that `work` enqueues in the stream, and runs none of it.
    ///
    /// `work` may launch kernels, and copy and fill on the device. It may load kernels and allocate
    /// buffers, which happens at once. It may not wait, upload or download.
    ///
    /// Another stream joins the capture when it [waits](Stream::wait) for an event that was recorded
    /// in this stream. Before the capture ends, this stream must wait for an event recorded after all
    /// work of the other. Work that other threads enqueue in a captured stream meanwhile is recorded, too.
    ///
    /// The error type is that of `work`. Where `work` ends in `Ok(())`, name the type:
    /// `Ok::<_, cutlet_host::Error>(())`.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let mut x = stream.upload(&[1u8, 2])?;
    /// let graph = stream.capture(|stream| stream.fill_bytes(&mut x, 9))?;
    /// assert_eq!(stream.download(&x)?, [1, 2]);
    /// // SAFETY: `x` is alive until the download has waited for the graph.
    /// unsafe { graph.launch(&stream)? };
    /// assert_eq!(stream.download(&x)?, [9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of `work`; [`Error::Capturing`] if the stream is being captured already;
    /// [`Error::Capture`] or [`Error::Driver`] if the recorded work makes no graph.
    pub fn capture<E: From<Error>>(
        &self,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.must_not_capture("another capture")?;
        let (recorded, memory) = match self.queue() {
            Queue::Cpu(queue) => {
                let (recording, memory) = record_cpu(queue, || work(self))?;
                (Recorded::Cpu(recording), memory)
            }
            Queue::Gpu(stream) => {
                self.device().make_current()?;
                let (executable, memory) = record_gpu(self, stream.cu_stream(), || work(self))?;
                (Recorded::Gpu(Mutex::new(executable)), memory)
            }
        };
        Ok(Graph {
            device: self.device().clone(),
            recorded,
            _memory: memory,
        })
    }
}

impl Graph {
    /// Enqueues the recorded work in a stream of the same device that is not being captured.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Capturing`], [`Error::Driver`]; on the CPU, errors of the
    /// recorded work.
    ///
    /// # Safety
    /// All memory that the recorded work uses is alive and stays alive until the work is done. Scratch
    /// memory that was made during the capture does, because the graph keeps it. The safety requirements
    /// of each recorded launch hold again.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        self.device
            .expect(stream.device(), || "the graph".to_string())?;
        // A capture would record the launch, and outlive the graph's memory.
        let _joins = stream.joins_no_capture();
        stream.must_not_capture("launching a graph")?;
        match (&self.recorded, stream.queue()) {
            (Recorded::Cpu(recording), Queue::Cpu(queue)) => {
                // SAFETY: the caller's promise.
                unsafe { recording.replay(queue) }
            }
            (Recorded::Gpu(executable), Queue::Gpu(queue)) => {
                let executable = lock(executable);
                // SAFETY: graph and stream are alive and of the same context, which is current. The rest is
                // the caller's promise.
                let code = unsafe { sys::cuGraphLaunch(executable.0, queue.cu_stream()) };
                check("launching a graph", code)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Recorded::Gpu(executable), Place::Gpu(gpu)) = (&self.recorded, self.device.place())
            && gpu.make_current().is_ok()
        {
            let executable = lock(executable);
            // SAFETY: made by `record_gpu` and dropped once. The driver keeps it until launches in
            // flight are done. An error here is an earlier kernel's, and the next call returns it.
            let _ = unsafe { sys::cuGraphExecDestroy(executable.0) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph(on {})", self.device.name())
    }
}

fn record_cpu<E: From<Error>>(
    queue: &CpuQueue,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(Recording, Arc<GraphMemory>), E> {
    if !queue.begin() {
        return Err(E::from(Error::Capturing {
            doing: "another capture",
        }));
    }
    /// Ends the capture if `work` fails or panics.
    struct GiveUp<'a>(&'a CpuQueue);
    impl Drop for GiveUp<'_> {
        fn drop(&mut self) {
            let _ = self.0.end();
        }
    }
    let give_up = GiveUp(queue);
    work()?;
    std::mem::forget(give_up);
    Ok(queue.end()?)
}

fn record_gpu<E: From<Error>>(
    of: &Stream,
    stream: CUstream,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(Executable, Arc<GraphMemory>), E> {
    let mut capture = GpuCapture::begin(of, stream)?;
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
    // SAFETY: the graph was just recorded, and the driver writes one handle.
    let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, capture.graph, 0) };
    check("making a graph executable", code)?;
    Ok((Executable(executable), capture.memory.clone()))
}

/// A capture on a GPU. Dropped, it ends the capture, also if the work failed or panicked, and frees the recorded graph.
struct GpuCapture<'a> {
    of: &'a Stream,
    stream: CUstream,
    graph: CUgraph,
    memory: Arc<GraphMemory>,
}

impl<'a> GpuCapture<'a> {
    fn begin(of: &'a Stream, stream: CUstream) -> Result<Self> {
        let memory = Arc::new(GraphMemory::default());
        // Relaxed, so that the work may allocate and load kernels.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let _joining = of.may_join_a_capture();
        // SAFETY: the stream is alive.
        let code = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
        check("beginning a capture", code)?;
        of.becomes_part_of(Arc::downgrade(&memory), true);
        Ok(GpuCapture {
            of,
            stream,
            graph: ptr::null_mut(),
            memory,
        })
    }

    fn end(&mut self) -> Result<()> {
        // The work may have used another device. Without a context, ending the capture returns an error.
        let current = self.of.device().make_current();
        // SAFETY: the stream is alive, and the driver writes one handle.
        let code = unsafe { sys::cuStreamEndCapture(self.stream, &mut self.graph) };
        self.memory.end();
        current?;
        check("ending a capture", code)
    }
}

impl Drop for GpuCapture<'_> {
    fn drop(&mut self) {
        if !self.memory.has_ended() {
            // The work has failed already, and its error is returned.
            let _ = self.end();
        }
        if !self.graph.is_null() {
            // SAFETY: the capture made the graph, and it is destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}
