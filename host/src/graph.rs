//! Graphs: work recorded once and replayed with one call.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};

use crate::cpu_queue::{CpuQueue, Recording};
use crate::driver::check;
use crate::resident::{ResidentMemory, StreamMemory};
use crate::stream::Queue;
use crate::{Device, Error, Result, Stream};

/// Launches, copies and fills recorded by [`Stream::capture`], to be replayed.
///
/// On a GPU this is a CUDA graph: a replay costs one call, however much was recorded. On the CPU it
/// is the list of recorded work, done in order when replayed; nothing runs during the capture on
/// either. Replays of one graph run one after the other, in whatever streams they are.
pub struct Graph {
    device: Device,
    recorded: Recorded,
    /// The memory that its launches use.
    _keeps: Option<Arc<ResidentMemory>>,
}

enum Recorded {
    Cpu(Recording),
    Gpu(Executable),
}

struct Executable(CUgraphExec);

// SAFETY: an executable graph may be used from any thread, by one at a time, which launching through
// the driver takes care of.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Stream {
    /// Records what `work` puts into the stream instead of running it.
    ///
    /// `work` may launch kernels, copy and fill on the device, and load kernels and allocate
    /// buffers, which happens at once; it may not wait, upload or download. Another stream takes part from
    /// where it [waits](Stream::wait) for an event that was recorded here; at last this stream waits for an
    /// event behind all that the other was given.
    ///
    /// Errors are of the type that `work` has: where it ends in `Ok(())`, this names it, as in
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
    /// What `work` returned, of any type that this crate's errors convert to; [`Error::Capturing`] if the
    /// stream is being captured already; [`Error::Capture`], [`Error::Driver`] if the recorded work makes no
    /// graph.
    pub fn capture<E: From<Error>>(
        &self,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.must_not_capture("another capture")?;
        let (recorded, keeps) = match self.queue() {
            Queue::Cpu(queue) => {
                let (recording, keeps) = record_cpu(queue, || work(self))?;
                (Recorded::Cpu(recording), Some(keeps))
            }
            Queue::Gpu(stream) => {
                self.device().make_current()?;
                let mut keeps = None;
                let executable = record_gpu(stream.cu_stream(), || {
                    // While the stream is captured, another thread's capture of it does not get here.
                    let memory = GraphMemory::of(self);
                    let worked = work(self);
                    keeps = memory.end();
                    worked
                })?;
                (Recorded::Gpu(executable), keeps)
            }
        };
        Ok(Graph {
            device: self.device().clone(),
            recorded,
            _keeps: keeps,
        })
    }
}

impl Graph {
    /// Puts the recorded work into a stream of the same device, which is not being captured itself.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Capturing`], [`Error::Driver`]; on the CPU, what the recorded
    /// work answers.
    ///
    /// # Safety
    /// All memory that the recorded work uses is still alive and stays so until the stream has got
    /// past it; what launching each recorded kernel asks for holds again.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        self.device
            .expect(stream.device(), || "the graph".to_string())?;
        stream.must_not_capture("launching a graph")?;
        match (&self.recorded, stream.queue()) {
            (Recorded::Cpu(recording), Queue::Cpu(queue)) => {
                // SAFETY: the caller's promise.
                unsafe { recording.replay(queue) }
            }
            (Recorded::Gpu(executable), Queue::Gpu(queue)) => {
                stream.device().make_current()?;
                // SAFETY: graph and stream are alive and of the same context; the rest is the
                // caller's promise.
                let code = unsafe { sys::cuGraphLaunch(executable.0, queue.cu_stream()) };
                check("launching a graph", code)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Recorded::Gpu(executable), crate::device::Place::Gpu(gpu)) =
            (&self.recorded, self.device.place())
            && gpu.bind().is_ok()
        {
            // SAFETY: made by `record_gpu` and dropped once; the driver keeps it until launches in
            // flight are done. Its error would be an earlier kernel's, reported elsewhere.
            let _ = unsafe { sys::cuGraphExecDestroy(executable.0) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph(on {})", self.device.name())
    }
}

/// The memory of the CUDA graph that is being recorded, which is given up if that fails or panics.
struct GraphMemory<'a>(Option<&'a StreamMemory>);

impl<'a> GraphMemory<'a> {
    fn of(stream: &'a Stream) -> Self {
        Self(stream.memory().inspect(|it| it.begin_graph()))
    }

    fn end(&self) -> Option<Arc<ResidentMemory>> {
        self.0.and_then(StreamMemory::end_graph)
    }
}

impl Drop for GraphMemory<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn record_cpu<E: From<Error>>(
    queue: &CpuQueue,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(Recording, Arc<ResidentMemory>), E> {
    if !queue.begin() {
        return Err(E::from(Error::Capturing {
            doing: "another capture",
        }));
    }
    /// Ends the capture when `work` fails or panics.
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
    stream: CUstream,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<Executable, E> {
    // Relaxed, so that `work` may allocate and load kernels.
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is alive.
    let code = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
    check("beginning a capture", code)?;

    /// Ends the capture also when `work` fails or panics, and frees the recorded graph.
    struct Capture {
        stream: CUstream,
        graph: CUgraph,
        ended: bool,
    }
    impl Capture {
        fn end(&mut self) -> Result<()> {
            self.ended = true;
            // SAFETY: the stream is alive and the driver writes one handle.
            let code = unsafe { sys::cuStreamEndCapture(self.stream, &mut self.graph) };
            check("ending a capture", code)
        }
    }
    impl Drop for Capture {
        fn drop(&mut self) {
            if !self.ended {
                // A capture given up has no error of its own to report.
                let _ = self.end();
            }
            if !self.graph.is_null() {
                // SAFETY: made by the capture and destroyed once.
                let _ = unsafe { sys::cuGraphDestroy(self.graph) };
            }
        }
    }

    let mut capture = Capture {
        stream,
        graph: ptr::null_mut(),
        ended: false,
    };
    work()?;
    capture.end()?;
    if capture.graph.is_null() {
        return Err(E::from(Error::Capture {
            found: "the driver dropped it because of an operation that graphs cannot hold".into(),
            fix: "record launches, device copies and fills only",
        }));
    }
    let mut executable: CUgraphExec = ptr::null_mut();
    // SAFETY: the graph was just recorded and the driver writes one handle.
    let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, capture.graph, 0) };
    check("making a graph executable", code)?;
    Ok(Executable(executable))
}
