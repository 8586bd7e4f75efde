//! Scratch memory: memory for an operation of several launches, allocated and freed in stream order.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};
use cutlet_device::DeviceData;

use crate::buffer::too_large;
use crate::device::Place;
use crate::driver::check;
use crate::resident::ResidentMemory;
use crate::stream::Queue;
use crate::{Buffer, Result, Stream, View, ViewMut};

/// `len` elements of `T` for temporary use by a stream's work. They are uninitialised: any bytes.
///
/// Allocation and drop do not wait. The memory belongs to the work that is enqueued in the stream
/// between the two; a later scratch may reuse it. Both can be captured. The
/// [captured](Stream::capture) graph then has memory of its own.
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
    Gpu {
        address: u64,
        len: usize,
    },
    /// Memory of a graph. It is not allocated by a node of the CUDA graph, as such a node would keep a launch from
    /// overlapping the previous one.
    Graph {
        memory: Option<Buffer<u8>>,
        len: usize,
        graph: Arc<ResidentMemory>,
    },
}

impl Stream {
    /// Scratch memory for `len` elements.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::Driver`](crate::Error::Driver).
    pub fn scratch<T: DeviceData>(&self, len: usize) -> Result<Scratch<T>> {
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        if let Some(graph) = self.graph_memory() {
            let memory = Some(graph.take(self.device(), bytes)?);
            return Ok(Scratch {
                stream: self.clone(),
                memory: Memory::Graph { memory, len, graph },
            });
        }
        let memory = match (self.device().place(), self.queue()) {
            (Place::Gpu(gpu), Queue::Gpu(stream)) => {
                let mut address = 0;
                let pool = self.device().scratch_pool().pool(gpu)?;
                gpu.make_current()?;
                // SAFETY: the driver writes one address. Pool and stream are of this context.
                let code = unsafe {
                    sys::cuMemAllocFromPoolAsync(&mut address, bytes, pool, stream.cu_stream())
                };
                match code {
                    CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                        return Err(too_large(self.device(), bytes));
                    }
                    code => check("allocating scratch memory", code)?,
                }
                Memory::Gpu { address, len }
            }
            _ => Memory::Cpu(Buffer::allocate(self.device(), len)?),
        };
        Ok(Scratch {
            stream: self.clone(),
            memory,
        })
    }
}

impl<T: DeviceData> Scratch<T> {
    /// A view of all elements, for reading.
    pub fn view(&self) -> View<'_, T> {
        let (address, len) = self.place();
        View::over(self.stream.device(), address, len)
    }

    /// A view of all elements, for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (address, len) = self.place();
        ViewMut::over(self.stream.device(), address, len)
    }

    fn place(&self) -> (u64, usize) {
        match &self.memory {
            Memory::Cpu(buffer) => (buffer.view().address(), buffer.len()),
            Memory::Gpu { address, len } => (*address, *len),
            Memory::Graph { memory, len, .. } => {
                (memory.as_ref().map_or(0, |it| it.view().address()), *len)
            }
        }
    }
}

impl<T: DeviceData> Drop for Scratch<T> {
    fn drop(&mut self) {
        match (&mut self.memory, self.stream.queue()) {
            (Memory::Graph { memory, graph, .. }, _) => {
                if let Some(memory) = memory.take() {
                    graph.give(memory);
                }
            }
            (Memory::Gpu { address, .. }, Queue::Gpu(stream))
                if self.stream.device().make_current().is_ok() =>
            {
                // SAFETY: allocated in `scratch` and freed once, in stream order after all work that
                // uses it. An error here is an earlier kernel's, and the next call returns it.
                let _ = unsafe { sys::cuMemFreeAsync(*address, stream.cu_stream()) };
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
