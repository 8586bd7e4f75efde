//! Graphs: work recorded once and replayed with one call.

use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUgraphExec};

use crate::allocation::Allocation;
pub(crate) use crate::cpu_queue::Beside;
use crate::cpu_queue::Recording;
use crate::device::Place;
use crate::driver::{RelaxedCaptureMode, check};
use crate::lock::lock;
use crate::order::Mark;
use crate::stream::Queue;
use crate::user_stream::UserStream;
use crate::{Device, Result, Stream};

/// Launches, copies and fills recorded by [`Device::capture`], for replay.
///
/// On a GPU this is a CUDA graph: a replay is one driver call, however much was recorded. On the CPU
/// it is a list of work, and a replay runs it in order. Nothing runs during the capture. Replays of
/// one graph run one after the other, also in different streams.
pub struct Graph {
    device: Device,
    recorded: Recorded,
    /// The streams that recorded. Their memory is that of the recorded launches.
    _streams: Vec<Stream>,
    /// The memory of buffers that the recorded work uses.
    memory: Vec<Arc<Allocation>>,
    /// The stream of the last replay, whose work the memory is known to wait for.
    last_user: Mutex<Option<Arc<UserStream>>>,
    /// What comes before the last replay, and the replay.
    replayed: Mark,
}

pub(crate) enum Recorded {
    Cpu(Recording),
    Gpu(Executable),
}

/// Locked by calls of the driver: it does not say that several threads may use a graph at a time.
pub(crate) struct Executable(Mutex<CUgraphExec>);

impl Executable {
    /// Owns the handle.
    pub(crate) fn new(handle: CUgraphExec) -> Executable {
        Executable(Mutex::new(handle))
    }
}

// SAFETY: the driver takes an executable graph's handle from any thread.
unsafe impl Send for Executable {}
// SAFETY: as above, and one thread at a time has the handle.
unsafe impl Sync for Executable {}

impl Graph {
    pub(crate) fn new(
        device: Device,
        recorded: Recorded,
        streams: Vec<Stream>,
        memory: Vec<Arc<Allocation>>,
    ) -> Graph {
        Graph {
            device,
            recorded,
            _streams: streams,
            memory,
            last_user: Mutex::default(),
            replayed: Mark::default(),
        }
    }

    /// Enqueues the recorded work in a stream of the same device that is not being captured.
    ///
    /// # Errors
    /// [`WrongDevice`](crate::Error::WrongDevice), [`Capturing`](crate::Error::Capturing),
    /// [`Driver`](crate::Error::Driver); on the CPU, errors of the
    /// recorded work.
    ///
    /// # Safety
    /// All memory that the recorded work uses is alive and stays alive until the work is done. Memory of a
    /// [`Buffer`](crate::Buffer) and scratch memory that was made during the capture are, because the graph keeps them.
    /// All other accesses to the memory are ordered with the work. The safety requirements of each recorded launch hold
    /// again. [`OwnedGraph`](crate::OwnedGraph) is a graph whose launch is safe.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_beside(stream, Beside::OtherWork) }
    }

    /// As [`launch`](Self::launch). On the CPU, `beside` says whether other work runs at the same time.
    ///
    /// # Safety
    /// As `launch`, but if nothing runs beside it on the CPU, accesses there need no order.
    pub(crate) unsafe fn launch_beside(&self, stream: &Stream, beside: Beside) -> Result<()> {
        self.device
            .expect(stream.device(), || "the graph".to_string())?;
        // A capture would record the launch, and outlive the graph's memory.
        stream.must_not_capture("launching a graph")?;
        self.is_used_in(stream)?;
        match (&self.recorded, stream.queue()) {
            (Recorded::Cpu(recording), Queue::Cpu(queue)) => {
                // SAFETY: the caller's promise.
                unsafe { recording.replay(queue, beside)? }
            }
            (Recorded::Gpu(executable), Queue::Gpu(queue)) => {
                self.device.bind()?;
                let executable = lock(&executable.0);
                // SAFETY: graph and stream are alive and of the same context, which is current. The rest is
                // the caller's promise.
                let code = unsafe { sys::cuGraphLaunch(*executable, queue.cu_stream()) };
                check("launching a graph", code)?;
            }
            _ => {}
        }
        stream.order().follows_mark(&self.replayed);
        self.replayed.add(stream.order());
        Ok(())
    }
}

impl Graph {
    /// A replay in the stream is about to use the memory, and is done before it is freed.
    fn is_used_in(&self, stream: &Stream) -> Result<()> {
        let Some(user) = stream.user() else {
            return Ok(());
        };
        let mut last = lock(&self.last_user);
        if !last.as_ref().is_some_and(|it| Arc::ptr_eq(it, user)) {
            self.memory
                .iter()
                .try_for_each(|it| it.is_used_in(stream))?;
            *last = Some(user.clone());
        }
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Recorded::Gpu(executable), Place::Gpu(gpu)) = (&self.recorded, self.device.place())
            && gpu.make_current().is_ok()
        {
            let _relaxed = RelaxedCaptureMode::enter();
            let executable = lock(&executable.0);
            // SAFETY: made by a capture and dropped once. The driver keeps it until launches in
            // flight are done. An error here is an earlier kernel's, and the next call returns it.
            let _ = unsafe { sys::cuGraphExecDestroy(*executable) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph(on {})", self.device.name())
    }
}
