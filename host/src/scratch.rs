//! Scratch memory: memory for an operation of several launches, allocated and freed in stream order.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cutlet_device::DeviceData;

use crate::binding::Binding;
use crate::buffer::{elements_fit, too_large};
use crate::device::Place;
use crate::foreign_capture::ForeignCapture;
use crate::gpu::Gpu;
use crate::idle_blocks::Block;
use crate::lock::lock;
use crate::stream::Queue;
use crate::stream_memory::{CaptureId, CaptureMemory};
use crate::{Buffer, Error, Result, Stream, View, ViewMut};

/// `len` elements of `T` for temporary use by a stream's work. They are uninitialised: any bytes.
///
/// Allocation and drop do not wait. The memory belongs to the work that is enqueued in the stream
/// between the two; a later scratch may reuse it. So only this stream may use it:
/// [`Error::WrongStream`](crate::Error::WrongStream) if another one does.
///
/// Both can be captured. The graph then has memory of its own, and keeps it. That is so in a
/// [capture](crate::Device::capture), and in one that another library began.
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
///
/// Scratch memory of a capture's stream does not leave the capture:
///
/// ```compile_fail,E0521
/// # fn main() -> cutlet_host::Result<()> {
/// let mut leaked = None;
/// cutlet_host::Device::cpu().capture(|stream| {
///     leaked = Some(stream.scratch::<f32>(3)?);
///     Ok::<_, cutlet_host::Error>(())
/// })?;
/// # Ok(()) }
/// ```
pub struct Scratch<'s, T: DeviceData> {
    stream: &'s Stream,
    memory: Memory<T>,
}

enum Memory<T: DeviceData> {
    Cpu(Buffer<T>),
    /// A block of a GPU's pool.
    Block {
        block: Block,
        len: usize,
    },
    /// Memory of a graph. It is not allocated by a node of the CUDA graph, as such a node would keep a launch from
    /// overlapping the previous one.
    Graph {
        memory: Arc<Buffer<u8>>,
        len: usize,
        capture: CaptureId,
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
    pub fn scratch<T: DeviceData>(&self, len: usize) -> Result<Scratch<'_, T>> {
        const { elements_fit::<T>() }
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        let memory = match (self.device().place(), self.queue()) {
            _ if self.capture().is_some() => self.of_graph(None, bytes, len)?,
            (Place::Gpu(gpu), Queue::Gpu(queue)) => {
                gpu.make_current()?;
                match ForeignCapture::of(queue)? {
                    Some(capture) => self.of_graph(Some(&capture), bytes, len)?,
                    None => self.of_pool(gpu, queue, bytes, len)?,
                }
            }
            _ => Memory::Cpu(Buffer::allocate(self, len)?),
        };
        Ok(Scratch {
            stream: self,
            memory,
        })
    }

    /// A block that the stream has kept, or a new one.
    fn of_pool<T: DeviceData>(
        &self,
        gpu: &Gpu,
        queue: &CudaStream,
        bytes: usize,
        len: usize,
    ) -> Result<Memory<T>> {
        let allocate = || {
            let pool = self.device().memory_pool();
            let address = pool.allocate(gpu, bytes, queue.cu_stream())?;
            Ok::<_, Error>(address.map(|address| Block { address, bytes }))
        };
        if let Some(block) = self.memory().take_idle(bytes) {
            return Ok(Memory::Block { block, len });
        }
        let mut block = allocate()?;
        if block.is_none() {
            // The memory of smaller idle blocks may suffice.
            self.free_idle_blocks();
            block = allocate()?;
        }
        let block = block.ok_or_else(|| too_large(self.device(), bytes))?;
        Ok(Memory::Block { block, len })
    }

    /// Memory of the graph for which the stream records: of this crate's capture, or of another library's.
    fn of_graph<T: DeviceData>(
        &self,
        foreign: Option<&ForeignCapture>,
        bytes: usize,
        len: usize,
    ) -> Result<Memory<T>> {
        let capture = foreign.map_or(CaptureMemory::OWN, |it| it.id);
        let taken = lock(self.memory().of_capture()).take(capture, bytes);
        let memory = match taken {
            Some(memory) => memory,
            None => {
                let memory = Arc::new(Buffer::allocate_apart(self.device(), bytes)?);
                // A graph of this crate owns the stream that keeps the memory.
                if let Some(foreign) = foreign {
                    foreign.keep(memory.clone())?;
                }
                memory
            }
        };
        Ok(Memory::Graph {
            memory,
            len,
            capture,
        })
    }
}

impl<T: DeviceData> Scratch<'_, T> {
    /// A view of all elements, for reading.
    pub fn view(&self) -> View<'_, T> {
        let (address, len) = self.place();
        // SAFETY: the memory has that many elements while `self` is borrowed. It is freed after the stream's earlier
        // work, and only the stream may use it.
        let view = unsafe { View::of_allocation(self.stream.device(), address, len) };
        view.bound_to(Binding::Stream {
            stream: self.stream,
            is_own: true,
        })
    }

    /// A view of all elements, for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (address, len) = self.place();
        // SAFETY: as in `view`, and `self` is borrowed exclusively.
        let view = unsafe { ViewMut::of_allocation(self.stream.device(), address, len) };
        view.bound_to(Binding::Stream {
            stream: self.stream,
            is_own: true,
        })
    }

    fn place(&self) -> (u64, usize) {
        match &self.memory {
            Memory::Cpu(buffer) => (buffer.view().address(), buffer.len()),
            Memory::Block { block, len } => (block.address, *len),
            Memory::Graph { memory, len, .. } => (memory.view().address(), *len),
        }
    }
}

impl<T: DeviceData> Drop for Scratch<'_, T> {
    fn drop(&mut self) {
        let stream = self.stream;
        match (&self.memory, stream.queue()) {
            (
                Memory::Graph {
                    memory, capture, ..
                },
                _,
            ) => {
                lock(stream.memory().of_capture()).give(*capture, memory.clone());
            }
            (Memory::Block { block, .. }, Queue::Gpu(queue)) => {
                if let Some(block) = stream.memory().give_idle(*block)
                    && stream.device().bind().is_ok()
                {
                    // SAFETY: no other scratch memory has the block, the stream is alive, and its context is current.
                    unsafe { block.free(queue.cu_stream()) };
                }
            }
            _ => {}
        }
    }
}

impl<T: DeviceData> fmt::Debug for Scratch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, len) = self.place();
        write!(f, "Scratch({len} elements at {address:#x})")
    }
}
