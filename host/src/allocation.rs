//! The memory of a buffer. The buffer owns it, and so do graphs whose recorded work uses it.

use std::alloc::{self, Layout};

use cudarc::driver::sys::{self, CUresult};
use cutlet_simt::{Contents, LiveMemory};

use crate::buffer::too_large;
use crate::device::Place;
use crate::driver::{RelaxedCaptureMode, check};
use crate::gpu::Gpu;
use crate::pooled::Pooled;
use crate::{Device, Result, Stream};

/// Alignment of every buffer in bytes, on the GPU and on the CPU.
pub(crate) const ALIGNMENT: usize = 256;

/// Memory of a device.
pub(crate) struct Allocation {
    device: Device,
    address: u64,
    from: From,
}

/// Where memory comes from.
enum From {
    /// There are no bytes.
    Nowhere,
    /// The process' heap, and the memory as kernels on the CPU know it.
    Host {
        layout: Layout,
        live: Option<LiveMemory>,
    },
    /// A GPU's pool: freed in the order of streams. `None` after it was freed.
    Pool(Option<Pooled>),
    /// A GPU's driver, which waits for the device before it frees memory: that of graphs, and of GPUs without pools.
    Driver,
}

impl Allocation {
    /// So many bytes for work of the stream, uninitialised. On the CPU they are zeros, but a kernel may not read them.
    pub(crate) fn new(stream: &Stream, bytes: usize) -> Result<Allocation> {
        let device = stream.device();
        match device.place() {
            Place::Gpu(gpu) if bytes > 0 => match Pooled::new(stream, bytes)? {
                Some(pooled) => Ok(Allocation {
                    device: device.clone(),
                    address: pooled.address(),
                    from: From::Pool(Some(pooled)),
                }),
                None => Self::of_driver(device, gpu, bytes),
            },
            _ => Self::apart(device, bytes),
        }
    }

    /// So many bytes whose use has nothing to do with the order of streams.
    pub(crate) fn apart(device: &Device, bytes: usize) -> Result<Allocation> {
        match device.place() {
            Place::Cpu if bytes > 0 => Self::of_host(device, bytes),
            Place::Gpu(gpu) if bytes > 0 => Self::of_driver(device, gpu, bytes),
            place => Ok(Allocation {
                device: device.clone(),
                address: match place {
                    Place::Cpu => ALIGNMENT as u64,
                    Place::Gpu(_) => 0,
                },
                from: From::Nowhere,
            }),
        }
    }

    fn of_host(device: &Device, bytes: usize) -> Result<Allocation> {
        let layout = Layout::from_size_align(bytes, ALIGNMENT);
        let layout = layout.map_err(|_| too_large(device, bytes))?;
        // SAFETY: the layout has at least one byte.
        let memory = unsafe { alloc::alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(too_large(device, bytes));
        }
        let address = memory.expose_provenance();
        let live = Some(LiveMemory::new(address, bytes, Contents::Unwritten));
        Ok(Allocation {
            device: device.clone(),
            address: address as u64,
            from: From::Host { layout, live },
        })
    }

    fn of_driver(device: &Device, gpu: &Gpu, bytes: usize) -> Result<Allocation> {
        gpu.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let mut allocate = || unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
        let mut code = allocate();
        if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            // The pool's unused memory may suffice.
            device.memory_pool().trim(gpu, 0)?;
            code = allocate();
        }
        match code {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Err(too_large(device, bytes)),
            code => check("allocating a buffer", code)?,
        }
        Ok(Allocation {
            device: device.clone(),
            address,
            from: From::Driver,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Work of the stream is about to use the memory, and is done before it is freed.
    pub(crate) fn is_used_in(&self, stream: &Stream) -> Result<()> {
        match &self.from {
            From::Pool(Some(pooled)) => pooled.is_used_in(stream),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "dlpack")]
impl Allocation {
    /// Another library may use the memory in streams of its own, until it is freed.
    pub(crate) fn is_used_elsewhere(&self) {
        if let From::Pool(Some(pooled)) = &self.from {
            pooled.is_used_elsewhere();
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        match (&mut self.from, self.device.place()) {
            (From::Host { layout, live }, _) => {
                // Before other memory can have the address.
                *live = None;
                let memory = std::ptr::with_exposed_provenance_mut(self.address as usize);
                // SAFETY: allocated with this layout in `of_host`. No work of the CPU backend runs after its call has
                // returned.
                unsafe { alloc::dealloc(memory, *layout) }
            }
            // An error here is an earlier kernel's. A destructor cannot return it; the next call on the device does.
            (from, Place::Gpu(gpu)) if gpu.make_current().is_ok() => {
                let _relaxed = RelaxedCaptureMode::enter();
                match from {
                    From::Pool(pooled) => {
                        let freed = pooled.take().map(|it| it.free(&self.device, gpu));
                        if let Some(Err(later)) = freed {
                            self.device.memory_pool().free_later(later);
                        }
                    }
                    From::Driver => {
                        // SAFETY: allocated in `of_driver`. The driver waits for work in flight before it frees memory.
                        let _ = unsafe { sys::cuMemFree_v2(self.address) };
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
