//! Scratch memory: what an operation needs between two of its launches, allocated and freed in
//! stream order.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{
    self, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool, CUresult,
};
use cutlet_device::DeviceData;

use crate::buffer::too_large;
use crate::device::{Gpu, Place};
use crate::driver::check;
use crate::lock::lock;
use crate::resident::Kept;
use crate::stream::Queue;
use crate::{Buffer, Result, Stream, View, ViewMut};

/// `len` elements of `T` that a stream's work uses for a while: any bytes are in them at first.
///
/// Making and dropping it wait for nothing: the memory is there for the work that is put into the
/// stream between the two, and then for that of a later scratch. Both can be part of a
/// [`capture`](Stream::capture); the graph then has memory of its own.
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
    /// A graph's. If a CUDA graph allocated it when it gets there, a launch could not begin before the one before it
    /// has ended.
    Graph {
        memory: Option<Buffer<u8>>,
        len: usize,
        keeps: Arc<Kept>,
    },
}

impl Stream {
    /// Scratch memory for `len` elements.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::Driver`](crate::Error::Driver).
    pub fn scratch<T: DeviceData>(&self, len: usize) -> Result<Scratch<T>> {
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        if let Some(keeps) = self.graph_keeps() {
            let memory = Some(keeps.take(self.device(), bytes)?);
            return Ok(Scratch {
                stream: self.clone(),
                memory: Memory::Graph { memory, len, keeps },
            });
        }
        let memory = match (self.device().place(), self.queue()) {
            (Place::Gpu(gpu), Queue::Gpu(stream)) => {
                let mut address = 0;
                let pool = gpu.scratch.pool(gpu)?;
                gpu.bind()?;
                // SAFETY: the driver writes one address; pool and stream are of this context.
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
    /// All of it, to be read.
    pub fn view(&self) -> View<'_, T> {
        let (address, len) = self.place();
        View::over(self.stream.device(), address, len)
    }

    /// All of it, to be written.
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
            (Memory::Graph { memory, keeps, .. }, _) => {
                if let Some(memory) = memory.take() {
                    keeps.give(memory);
                }
            }
            (Memory::Gpu { address, .. }, Queue::Gpu(stream))
                if self.stream.device().make_current().is_ok() =>
            {
                // SAFETY: allocated in `scratch`, freed once, after all work that uses it. Its error
                // would be an earlier kernel's, which the next call reports.
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

/// A GPU's pool of scratch memory, which keeps what is freed for the next use; made at the first.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Option<Pool>>);

#[derive(Clone, Copy)]
struct Pool(CUmemoryPool);

// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Pool {}

impl ScratchPool {
    fn pool(&self, gpu: &Gpu) -> Result<CUmemoryPool> {
        let mut made = lock(&self.0);
        if let Some(Pool(pool)) = *made {
            return Ok(pool);
        }
        gpu.bind()?;
        // SAFETY: all zeros is a value of each field, and the one that the driver asks of those
        // that are not set below.
        let mut properties: CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: gpu.context.ordinal() as i32,
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver reads the properties and writes one handle.
        check("making a memory pool", unsafe {
            sys::cuMemPoolCreate(&mut pool, &properties)
        })?;
        let mut keep = u64::MAX;
        // SAFETY: the attribute is a 64-bit number.
        check("setting up a memory pool", unsafe {
            sys::cuMemPoolSetAttribute(
                pool,
                CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut keep).cast::<c_void>(),
            )
        })?;
        *made = Some(Pool(pool));
        Ok(pool)
    }
}
