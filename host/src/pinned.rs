//! Page-locked host memory, which a GPU copies from and to directly.

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use cudarc::driver::sys;
use cutlet_device::DeviceData;

use crate::buffer::elements_fit;
use crate::device::Place;
use crate::driver::{RelaxedCaptureMode, check};
use crate::{Device, Error, Result};

/// `len` elements of page-locked host memory, used as a slice.
///
/// [`Stream::copy_from_host_async`](crate::Stream::copy_from_host_async) and
/// [`copy_to_host_async`](crate::Stream::copy_to_host_async) need it to overlap copies with other
/// work. On the CPU backend it is ordinary memory.
pub struct PinnedBuffer<T: DeviceData> {
    device: Device,
    memory: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its memory, like a boxed slice.
unsafe impl<T: DeviceData> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceData> Sync for PinnedBuffer<T> {}

impl<T: DeviceData> PinnedBuffer<T> {
    /// A buffer of `len` elements with all bytes 0, for copies to and from `device`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn zeroed(device: &Device, len: usize) -> Result<PinnedBuffer<T>> {
        const { elements_fit::<T>() }
        let out_of_memory = |found: &str| Error::OutOfMemory {
            bytes: len.saturating_mul(size_of::<T>()),
            device: format!("the host, page-locked for {}", device.name()),
            found: found.to_string(),
        };
        let layout = Layout::array::<T>(len).map_err(|_| out_of_memory("there is less memory"))?;
        let memory = match device.place() {
            _ if layout.size() == 0 => Some(NonNull::dangling()),
            // SAFETY: the layout has at least one byte.
            Place::Cpu => NonNull::new(unsafe { alloc::alloc_zeroed(layout) }.cast()),
            Place::Gpu(gpu) => {
                gpu.make_current()?;
                let _relaxed = RelaxedCaptureMode::enter()?;
                let mut memory = std::ptr::null_mut();
                // SAFETY: the driver writes one pointer.
                let code = unsafe { sys::cuMemHostAlloc(&mut memory, layout.size(), 0) };
                if code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                    return Err(out_of_memory("the system locks less"));
                }
                check("allocating page-locked memory", code)?;
                // SAFETY: the driver allocated that many bytes.
                unsafe { std::ptr::write_bytes(memory.cast::<u8>(), 0, layout.size()) };
                NonNull::new(memory.cast())
            }
        };
        Ok(PinnedBuffer {
            device: device.clone(),
            memory: memory.ok_or_else(|| out_of_memory("there is less memory"))?,
            len,
        })
    }
}

impl<T: DeviceData> Deref for PinnedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the buffer owns that many elements. Every bit pattern is a value of `T`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

impl<T: DeviceData> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }
}

impl<T: DeviceData> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let Ok(layout) = Layout::array::<T>(self.len) else {
            return;
        };
        if layout.size() == 0 {
            return;
        }
        match self.device.place() {
            // SAFETY: allocated with this layout in `zeroed`.
            Place::Cpu => unsafe { alloc::dealloc(self.memory.as_ptr().cast(), layout) },
            Place::Gpu(gpu) => {
                if gpu.make_current().is_ok() {
                    let _relaxed = RelaxedCaptureMode::enter();
                    // SAFETY: allocated in `zeroed` and freed once. An error here is an earlier
                    // kernel's, and the next call returns it.
                    let _ = unsafe { sys::cuMemFreeHost(self.memory.as_ptr().cast()) };
                }
            }
        }
    }
}

impl<T: DeviceData> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = std::any::type_name::<T>();
        write!(
            f,
            "PinnedBuffer<{element}>({} for {})",
            self.len,
            self.device.name()
        )
    }
}
