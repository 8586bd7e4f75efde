//! Graphs that own what their recorded work uses, so that a replay is safe.

use std::fmt;

use crate::graph::Beside;
use crate::{Device, Error, Graph, Result, Stream};

/// A [`Graph`] and the value whose buffers it was recorded with: [`Device::capture_owned`] makes both one.
///
/// A replay is safe, because nothing that the recorded work uses goes away before the graph. Between two replays,
/// [`get`](Self::get) and [`get_mut`](Self::get_mut) give the value: to write the next input, and to read the output.
///
/// ```
/// use cutlet_host::{Buffer, Device};
///
/// struct Step {
///     input: Buffer<f32>,
///     output: Buffer<f32>,
/// }
///
/// # fn main() -> cutlet_host::Result<()> {
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let (input, output) = (stream.zeroed(2)?, stream.zeroed(2)?);
/// let mut graph = device.capture_owned(Step { input, output }, |stream, step| {
///     stream.copy(&step.input, &mut step.output)
/// })?;
/// for input in [[1.0, 2.0], [3.0, 4.0]] {
///     stream.copy_from_host(&input, &mut graph.get_mut().input)?;
///     graph.launch(&stream)?;
///     assert_eq!(stream.download(&graph.get().output)?, input);
/// }
/// # Ok(()) }
/// ```
pub struct OwnedGraph<S> {
    // Dropped first: the driver keeps the executable graph until its replays are done.
    graph: Graph,
    value: S,
}

impl Device {
    /// Records the work that `work` enqueues, as [`capture`](Self::capture) does, into a graph that owns `value`.
    ///
    /// `work` gets the stream that records, and the value. The graph keeps the memory of every buffer that the recorded
    /// work uses, also of one that is not part of the value: it is freed after the graph, even if its [`Buffer`] is
    /// dropped or replaced before.
    ///
    /// `work` is as that of `capture`. A launch in it is `unsafe` as always, and its promises are for every replay.
    ///
    /// # Errors
    /// Those of [`capture`](Self::capture). [`Error::Capture`] if the graph cannot keep memory that the work uses,
    /// because another library owns it, or it is known by its address alone; and if the work has asked for the handle of
    /// the stream, with which another library may record anything.
    ///
    /// [`Buffer`]: crate::Buffer
    pub fn capture_owned<S, E: From<Error>>(
        &self,
        mut value: S,
        work: impl FnOnce(&Stream, &mut S) -> Result<(), E>,
    ) -> Result<OwnedGraph<S>, E> {
        let graph = self.capture_for(true, |stream| work(stream, &mut value))?;
        Ok(OwnedGraph { graph, value })
    }
}

impl<S> OwnedGraph<S> {
    /// Enqueues the recorded work in a stream of the same device that is not being captured.
    ///
    /// Replays run one after the other. Other work on the same buffers is ordered with a replay as with any other work:
    /// in the same stream, or by an [`Event`](crate::Event) or [`Stream::wait_for`]. On the CPU, other threads' work
    /// waits meanwhile.
    ///
    /// # Errors
    /// [`WrongDevice`](Error::WrongDevice), [`Capturing`](Error::Capturing), [`Driver`](Error::Driver); on the CPU,
    /// errors of the recorded work.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        // SAFETY: the graph keeps the memory of its work: that of buffers, and of the streams that recorded. A capture
        // for an owned graph has no work with other memory. On the CPU, nothing else runs beside it. Who recorded a
        // launch promised that it is sound in every replay.
        unsafe { self.graph.launch_beside(stream, Beside::Nothing) }
    }

    /// The value, whose buffers the recorded work uses.
    pub fn get(&self) -> &S {
        &self.value
    }

    /// The value. What is written to its buffers is what the next replay reads. A buffer that takes the place of another
    /// one is not part of the recorded work.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.value
    }

    /// The value without the graph.
    pub fn into_inner(self) -> S {
        self.value
    }
}

impl<S> fmt::Debug for OwnedGraph<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned{:?}", self.graph)
    }
}
