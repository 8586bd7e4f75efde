//! Scratch memory: memory for an operation of several launches, allocated and freed in stream order.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cutlet_device::DeviceData;

use crate::buffer::{elements_fit, too_large};
use crate::device::Place;
use crate::gpu::Gpu;
use crate::graph_memory::GraphMemory;
use crate::home::Home;
use crate::resident::StreamMemory;
use crate::scratch_pool::Block;
use crate::stream::Queue;
use crate::{Buffer, Result, Stream, View, ViewMut};

/// `len` elements of `T` for temporary use by a stream's work. They are uninitialised: any bytes.
///
/// Allocation and drop do not wait. The memory belongs to the work that is enqueued in the stream
/// between the two; a later scratch may reuse it. So only this stream may use it:
/// [`Error::WrongStream`](crate::Error::WrongStream) if another one does.
///
/// Both can be captured. The [captured](Stream::capture) graph then has memory of its own, and keeps it.
/// In a capture that another library began, the memory is the graph's alone. It may be used until the
/// capture ends: [`Error::Capture`](crate::Error::Capture) afterwards.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// let stream = cutlet_host::Device::auto().stream()?;
/// let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
/// let mut scratch = stream.scratch::<f32>(3)?;
/// stream.copy(&x, scratch.view_mut())?;
/// assert_eq!(stream.download(scratch.view())?, [1.0, 2.0, 3.0]);
/// # Ok(()) }
/// ```
pub struct Scratch<T: DeviceData> {
    stream: Stream,
    memory: Memory<T>,
}

enum Memory<T: DeviceData> {
    Cpu(Buffer<T>),
    /// A block of a GPU's pool.
    Block {
        block: Block,
        len: usize,
    },
    /// A block that a graph allocates when it runs, because another library began the capture.
    Node {
        block: Block,
        len: usize,
    },
    /// Memory of a graph. It is not allocated by a node of the CUDA graph, as such a node would keep a launch from
    /// overlapping the previous one.
    Graph {
        memory: Option<Buffer<u8>>,
        len: usize,
        graph: Arc<GraphMemory>,
    },
}

impl Stream {
    /// Scratch memory for `len` elements.
    ///
    /// A GPU's stream that this crate made keeps up to three blocks of dropped scratch memory, of at
    /// most 32 MiB each. Later calls reuse them without a call of the driver's allocator.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::Driver`](crate::Error::Driver).
    pub fn scratch<T: DeviceData>(&self, len: usize) -> Result<Scratch<T>> {
        const { elements_fit::<T>() }
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        let memory = match (self.device().place(), self.queue()) {
            (Place::Gpu(gpu), Queue::Gpu(queue)) => {
                // What is allocated for the stream must not become a node of a capture that begins meanwhile.
                let _joins = self.joins_no_capture();
                match (self.is_capturing()?, self.graph_memory()) {
                    (true, Some(graph)) => self.of_graph(graph, bytes, len)?,
                    (true, None) => self.of_pool(gpu, queue, None, bytes, len)?,
                    (false, _) => self.of_pool(gpu, queue, self.memory(), bytes, len)?,
                }
            }
            _ => match self.graph_memory() {
                Some(graph) => self.of_graph(graph, bytes, len)?,
                None => Memory::Cpu(Buffer::allocate(self.device(), len)?),
            },
        };
        Ok(Scratch {
            stream: self.clone(),
            memory,
        })
    }

    /// A block that the stream has kept in `kept`, or a new one.
    fn of_pool<T: DeviceData>(
        &self,
        gpu: &Gpu,
        queue: &CudaStream,
        kept: Option<&StreamMemory>,
        bytes: usize,
        len: usize,
    ) -> Result<Memory<T>> {
        let allocate = || {
            let pool = self.device().scratch_pool();
            pool.allocate(gpu, bytes, queue.cu_stream())
        };
        if let Some(block) = kept.and_then(|kept| kept.take_idle(bytes)) {
            return Ok(Memory::Block { block, len });
        }
        let mut block = allocate()?;
        if block.is_none() && kept.is_some() {
            // The memory of smaller idle blocks may suffice.
            self.free_idle_blocks();
            block = allocate()?;
        }
        let block = block.ok_or_else(|| too_large(self.device(), bytes))?;
        // Asked after the allocation, because another library may have begun a capture before it.
        match self.is_capturing()? {
            true => Ok(Memory::Node { block, len }),
            false => Ok(Memory::Block { block, len }),
        }
    }

    fn of_graph<T: DeviceData>(
        &self,
        graph: Arc<GraphMemory>,
        bytes: usize,
        len: usize,
    ) -> Result<Memory<T>> {
        let memory = Some(graph.take(self.device(), self.id(), bytes)?);
        Ok(Memory::Graph { memory, len, graph })
    }
}

impl<T: DeviceData> Scratch<T> {
    /// A view of all elements, for reading.
    pub fn view(&self) -> View<'_, T> {
        let (address, len) = self.place();
        // SAFETY: the memory has that many elements while `self` is borrowed. It is freed after the stream's earlier
        // work, and only the stream may use it.
        let view = unsafe { View::of_allocation(self.stream.device(), address, len) };
        view.bound_to(self.home())
    }

    /// A view of all elements, for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (address, len) = self.place();
        // SAFETY: as in `view`, and `self` is borrowed exclusively.
        let view = unsafe { ViewMut::of_allocation(self.stream.device(), address, len) };
        view.bound_to(self.home())
    }

    /// Who may use the memory.
    fn home(&self) -> Home<'_> {
        match &self.memory {
            Memory::Node { .. } => Home::Capture(&self.stream),
            _ => Home::Stream(&self.stream),
        }
    }

    fn place(&self) -> (u64, usize) {
        match &self.memory {
            Memory::Cpu(buffer) => (buffer.view().address(), buffer.len()),
            Memory::Block { block, len } | Memory::Node { block, len } => (block.address, *len),
            Memory::Graph { memory, len, .. } => {
                (memory.as_ref().map_or(0, |it| it.view().address()), *len)
            }
        }
    }
}

impl<T: DeviceData> Drop for Scratch<T> {
    fn drop(&mut self) {
        let (stream, queue) = (&self.stream, self.stream.queue());
        match (&mut self.memory, queue) {
            (Memory::Graph { memory, graph, .. }, _) => {
                if let Some(memory) = memory.take() {
                    graph.give(stream.id(), memory);
                }
            }
            (Memory::Block { block, .. }, Queue::Gpu(queue)) => {
                let unused = match stream.memory() {
                    Some(kept) => kept.give_idle(*block),
                    None => Some(*block),
                };
                if let Some(block) = unused
                    && stream.device().make_current().is_ok()
                {
                    // SAFETY: no other scratch memory has the block, the stream is alive, and its context is current.
                    unsafe { block.free(queue.cu_stream()) };
                }
            }
            // Not after the capture: only the graph knows then whether its work is done.
            (Memory::Node { block, .. }, Queue::Gpu(queue))
                if stream.is_capturing().unwrap_or(false) =>
            {
                // SAFETY: as above. The call makes a node that frees the block when the graph runs.
                unsafe { block.free(queue.cu_stream()) };
            }
            _ => {}
        }
    }
}

impl<T: DeviceData> fmt::Debug for Scratch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, len) = self.place();
        write!(f, "Scratch({len} elements at {address:#x})")
    }
}
