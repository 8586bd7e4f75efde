//! The memory of a buffer. The buffer owns it, and so do graphs whose recorded work uses it.

use std::alloc::{self, Layout};

use cudarc::driver::sys::{self, CUresult};
use cutlet_simt::{Contents, LiveMemory};

use crate::buffer::too_large;
use crate::device::Place;
use crate::driver::{RelaxedCaptureMode, check};
use crate::{Device, Result};

/// Alignment of every buffer in bytes, on the GPU and on the CPU.
pub(crate) const ALIGNMENT: usize = 256;

/// Memory of a device.
pub(crate) struct Allocation {
    device: Device,
    address: u64,
    bytes: usize,
    /// The memory as kernels on the CPU know it.
    live: Option<LiveMemory>,
}

impl Allocation {
    /// So many bytes, uninitialised. On the CPU they are zeros, but a kernel may not read them.
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Allocation> {
        let address = match device.place() {
            Place::Cpu if bytes == 0 => ALIGNMENT as u64,
            Place::Cpu => {
                let layout = layout_of(bytes).ok_or_else(|| too_large(device, bytes))?;
                // SAFETY: the layout has at least one byte.
                let memory = unsafe { alloc::alloc_zeroed(layout) };
                if memory.is_null() {
                    return Err(too_large(device, bytes));
                }
                memory.expose_provenance() as u64
            }
            Place::Gpu(_) if bytes == 0 => 0,
            Place::Gpu(gpu) => {
                gpu.make_current()?;
                let _relaxed = RelaxedCaptureMode::enter()?;
                let mut address = 0;
                // SAFETY: the driver writes one address.
                match unsafe { sys::cuMemAlloc_v2(&mut address, bytes) } {
                    CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Err(too_large(device, bytes)),
                    code => check("allocating a buffer", code)?,
                }
                address
            }
        };
        let is_on_cpu = matches!(device.place(), Place::Cpu) && bytes > 0;
        Ok(Allocation {
            device: device.clone(),
            address,
            bytes,
            live: is_on_cpu.then(|| LiveMemory::new(address as usize, bytes, Contents::Unwritten)),
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        match self.device.place() {
            Place::Cpu => {
                // Before other memory can have the address.
                self.live = None;
                if let Some(layout) = layout_of(self.bytes) {
                    let memory = std::ptr::with_exposed_provenance_mut(self.address as usize);
                    // SAFETY: allocated with this layout in `new`. No work of the CPU backend runs after its call has
                    // returned.
                    unsafe { alloc::dealloc(memory, layout) }
                }
            }
            Place::Gpu(gpu) => {
                // An error here is an earlier kernel's. A destructor cannot return it; the next call on the device does.
                if gpu.make_current().is_ok() {
                    let _relaxed = RelaxedCaptureMode::enter();
                    // SAFETY: allocated in `new`. The driver waits for work in flight before it frees memory.
                    let _ = unsafe { sys::cuMemFree_v2(self.address) };
                }
            }
        }
    }
}

fn layout_of(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGNMENT).ok()
}
