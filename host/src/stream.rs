//! Streams: queues of work on a device, and everything that is put into them but launches.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUresult, CUstream};
use cutlet_device::DeviceData;

use crate::buffer::{IntoView, IntoViewMut};
use crate::cpu_queue::CpuQueue;
use crate::device::{Gpu, Place};
use crate::driver::{During, check};
use crate::resident::Resident;
use crate::{Buffer, Device, Error, Result, View, ViewMut};

/// A queue of work on a device: launches, copies and fills run in the order they were put in.
///
/// On a GPU, work runs some time after the call that put it in; [`synchronize`](Self::synchronize)
/// waits. On the CPU it is done when the call returns, which waits for what other threads have running
/// in the stream. Work of two streams is not ordered unless an [`Event`](crate::Event) orders it.
/// Cloning is cheap; clones are the same stream.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// let stream = cutlet_host::Device::auto().stream()?;
/// let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
/// let mut y = stream.zeroed::<f32>(3)?;
/// stream.copy(&x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0, 2.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Stream {
    device: Device,
    queue: Queue,
    /// What it keeps; only a stream that was made here has such.
    kept: Option<Arc<Resident>>,
}

#[derive(Clone)]
pub(crate) enum Queue {
    Cpu(Arc<CpuQueue>),
    Gpu(Arc<CudaStream>),
}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Stream> {
        let queue = match device.place() {
            Place::Cpu => Queue::Cpu(Arc::default()),
            Place::Gpu(gpu) => {
                let stream = gpu.context.new_stream();
                Queue::Gpu(stream.during("making a stream")?)
            }
        };
        Ok(Stream {
            device: device.clone(),
            queue,
            kept: Some(Arc::default()),
        })
    }

    /// The same stream as a cudarc stream; they share its work and its life.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device cannot be asked for its properties.
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Stream> {
        Ok(Stream {
            device: Device::from_cudarc(stream.context())?,
            queue: Queue::Gpu(stream.clone()),
            kept: None,
        })
    }

    /// Borrows a stream by its handle (`CUstream`, `cudaStream_t`; null is the default stream).
    /// Dropping the result leaves it alone.
    ///
    /// # Errors
    /// [`Error::NoDriver`] when `device` is the CPU, which has no such handles.
    ///
    /// # Safety
    /// The handle is of a stream of `device`'s context and outlives the result and its clones.
    pub unsafe fn from_raw(device: &Device, handle: *mut c_void) -> Result<Stream> {
        let Place::Gpu(gpu) = device.place() else {
            return Err(Error::NoDriver {
                asked: "a stream by its handle".to_string(),
                found: "the device is the CPU".to_string(),
            });
        };
        // SAFETY: the caller's promise.
        let stream = unsafe { gpu.context.wrap_borrowed_stream(handle.cast()) };
        Ok(Stream {
            device: device.clone(),
            queue: Queue::Gpu(stream),
            kept: None,
        })
    }

    /// The stream as cudarc has it; `None` on the CPU.
    pub fn as_cudarc(&self) -> Option<&Arc<CudaStream>> {
        match &self.queue {
            Queue::Cpu(_) => None,
            Queue::Gpu(stream) => Some(stream),
        }
    }

    /// The stream's handle (`CUstream`, `cudaStream_t`), for other libraries; `None` on the CPU.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.gpu().map(|(_, handle)| handle.cast())
    }

    /// The device it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until everything put in so far is done.
    ///
    /// # Errors
    /// [`Error::Driver`], which is also where a kernel that went wrong shows;
    /// [`Error::Capturing`] during a capture.
    pub fn synchronize(&self) -> Result<()> {
        self.must_not_capture("waiting for the stream")?;
        match &self.queue {
            Queue::Cpu(queue) => {
                queue.wait();
                Ok(())
            }
            Queue::Gpu(stream) => {
                self.device.make_current()?;
                // SAFETY: the stream is alive.
                let code = unsafe { sys::cuStreamSynchronize(stream.cu_stream()) };
                check("waiting for the stream", code)
            }
        }
    }

    /// A buffer of `len` zeros (all bytes 0).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn zeroed<T: DeviceData>(&self, len: usize) -> Result<Buffer<T>> {
        self.filled(len, 0)
    }

    /// A buffer of `len` elements of which every byte is `byte`: tests fill outputs with `0xff`
    /// (NaN as a float) first, so that an element that a kernel leaves out shows.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn filled<T: DeviceData>(&self, len: usize, byte: u8) -> Result<Buffer<T>> {
        let mut buffer = Buffer::allocate(&self.device, len)?;
        self.fill_bytes(&mut buffer, byte)?;
        Ok(buffer)
    }

    /// A buffer with a copy of `data`, complete when this returns.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`]; [`Error::Capturing`] during a capture.
    pub fn upload<T: DeviceData>(&self, data: &[T]) -> Result<Buffer<T>> {
        self.must_not_capture("a copy from the host that is complete when it returns")?;
        let mut buffer = Buffer::allocate(&self.device, data.len())?;
        self.copy_from_host(data, &mut buffer)?;
        Ok(buffer)
    }

    /// A copy of `from` on the host, after everything put in before.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the host has too little for it, [`Error::WrongDevice`],
    /// [`Error::Driver`]; [`Error::Capturing`] during a capture.
    pub fn download<'a, V: IntoView<'a>>(&self, from: V) -> Result<Vec<V::Element>> {
        let from = from.into_view();
        let mut data = Vec::new();
        data.try_reserve_exact(from.len())
            .map_err(|_| Error::OutOfMemory {
                bytes: from.bytes(),
                device: "the host".to_string(),
                found: "there is not that much memory".to_string(),
            })?;
        self.must_not_capture("a copy to the host that is complete when it returns")?;
        // SAFETY: the vector has room for the elements and nothing else uses it; the wait below
        // keeps it until the copy is done.
        unsafe { self.read(from, data.as_mut_ptr())? };
        self.synchronize()?;
        // SAFETY: the copy wrote all of them, and every bit pattern is a value of `DeviceData`.
        unsafe { data.set_len(from.len()) };
        Ok(data)
    }

    /// Copies `from` into `to`, which has as many elements; complete when this returns.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::Driver`];
    /// [`Error::Capturing`] during a capture.
    pub fn copy_from_host<'a, V: IntoViewMut<'a>>(&self, from: &[V::Element], to: V) -> Result<()> {
        self.must_not_capture("a copy from the host that is complete when it returns")?;
        // SAFETY: both live past the wait below.
        unsafe { self.copy_from_host_async(from, to)? };
        self.synchronize()
    }

    /// Copies `from` into `to`, which has as many elements; complete when this returns.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::Driver`];
    /// [`Error::Capturing`] during a capture.
    pub fn copy_to_host<'a, V: IntoView<'a>>(&self, from: V, to: &mut [V::Element]) -> Result<()> {
        self.must_not_capture("a copy to the host that is complete when it returns")?;
        // SAFETY: both live past the wait below.
        unsafe { self.copy_to_host_async(from, to)? };
        self.synchronize()
    }

    /// Puts in a copy of `from` into `to` without waiting for it. The host runs on while the copy
    /// does if `from` lies in [`PinnedBuffer`](crate::PinnedBuffer); can be part of a capture.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::Driver`].
    ///
    /// # Safety
    /// Until the stream has got there (in a graph, at every replay), `from` stays alive and
    /// unchanged and `to` stays alive.
    pub unsafe fn copy_from_host_async<'a, V: IntoViewMut<'a>>(
        &self,
        from: &[V::Element],
        to: V,
    ) -> Result<()> {
        let to = to.into_view_mut();
        same_len("a copy from the host", from.len(), to.len())?;
        to.device()
            .expect(&self.device, || "the destination".to_string())?;
        let copy = CopyBytes {
            from: from.as_ptr().expose_provenance(),
            to: to.address() as usize,
            bytes: to.view().bytes(),
        };
        // SAFETY: both ends have that many bytes and live until the copy is done.
        self.put_copy("copying from the host", copy, |stream| unsafe {
            sys::cuMemcpyHtoDAsync_v2(to.address(), from.as_ptr().cast(), copy.bytes, stream)
        })
    }

    /// Puts in a copy of `from` into `to` without waiting for it. The host runs on while the copy
    /// does if `to` lies in [`PinnedBuffer`](crate::PinnedBuffer); can be part of a capture.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::Driver`].
    ///
    /// # Safety
    /// Until the stream has got there (in a graph, at every replay), `from` stays alive, and `to`
    /// stays alive and is not touched.
    pub unsafe fn copy_to_host_async<'a, V: IntoView<'a>>(
        &self,
        from: V,
        to: &mut [V::Element],
    ) -> Result<()> {
        let from = from.into_view();
        same_len("a copy to the host", from.len(), to.len())?;
        // SAFETY: `to` has as many elements; the rest is the caller's promise.
        unsafe { self.read(from, to.as_mut_ptr()) }
    }

    /// Puts in a copy of `from`'s elements to host memory.
    ///
    /// # Safety
    /// `to` has room for them, and both live, `to` untouched, until the copy is done.
    unsafe fn read<T: DeviceData>(&self, from: View<'_, T>, to: *mut T) -> Result<()> {
        from.device()
            .expect(&self.device, || "the source".to_string())?;
        let copy = CopyBytes {
            from: from.address() as usize,
            to: to.expose_provenance(),
            bytes: from.bytes(),
        };
        // SAFETY: both ends have that many bytes and live until the copy is done.
        self.put_copy("copying to the host", copy, |stream| unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast(), from.address(), copy.bytes, stream)
        })
    }

    /// Puts in a copy of `from` into `to`, both on this stream's device and of as many elements.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::Driver`].
    pub fn copy<'a, 'b, V, W>(&self, from: V, to: W) -> Result<()>
    where
        V: IntoView<'a>,
        W: IntoViewMut<'b, Element = V::Element>,
    {
        let (from, to): (View<V::Element>, ViewMut<V::Element>) =
            (from.into_view(), to.into_view_mut());
        same_len("a copy on the device", from.len(), to.len())?;
        from.device()
            .expect(&self.device, || "the source".to_string())?;
        to.device()
            .expect(&self.device, || "the destination".to_string())?;
        let copy = CopyBytes {
            from: from.address() as usize,
            to: to.address() as usize,
            bytes: from.bytes(),
        };
        // SAFETY: both ends have that many bytes; the driver keeps freed memory until the copy is
        // done.
        self.put_copy("copying on the device", copy, |stream| unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), copy.bytes, stream)
        })
    }

    /// Puts in a copy, for which `on_gpu` calls the driver.
    fn put_copy(
        &self,
        doing: &'static str,
        copy: CopyBytes,
        on_gpu: impl FnOnce(CUstream) -> CUresult,
    ) -> Result<()> {
        if copy.bytes == 0 {
            return Ok(());
        }
        match &self.queue {
            Queue::Cpu(queue) => queue.submit(copy),
            Queue::Gpu(stream) => {
                self.device.make_current()?;
                check(doing, on_gpu(stream.cu_stream()))
            }
        }
    }

    /// Puts in setting every byte of `to` to `byte`.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Driver`].
    pub fn fill_bytes<'a, V: IntoViewMut<'a>>(&self, to: V, byte: u8) -> Result<()> {
        let to = to.into_view_mut();
        to.device()
            .expect(&self.device, || "the destination".to_string())?;
        let bytes = to.view().bytes();
        if bytes == 0 {
            return Ok(());
        }
        match &self.queue {
            Queue::Cpu(queue) => queue.submit(FillBytes {
                to: to.address() as usize,
                byte,
                bytes,
            }),
            Queue::Gpu(stream) => {
                self.device.make_current()?;
                // SAFETY: the memory has that many bytes; the driver keeps freed memory until the
                // fill is done.
                let code =
                    unsafe { sys::cuMemsetD8Async(to.address(), byte, bytes, stream.cu_stream()) };
                check("filling a buffer", code)
            }
        }
    }

    pub(crate) fn kept(&self) -> Option<&Resident> {
        self.kept.as_deref()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The GPU and the stream's handle; `None` on the CPU.
    pub(crate) fn gpu(&self) -> Option<(&Gpu, CUstream)> {
        match (self.device.place(), &self.queue) {
            (Place::Gpu(gpu), Queue::Gpu(stream)) => Some((gpu, stream.cu_stream())),
            _ => None,
        }
    }

    /// An error while the stream is being captured into a graph.
    pub(crate) fn must_not_capture(&self, doing: &'static str) -> Result<()> {
        if self.is_capturing()? {
            return Err(Error::Capturing { doing });
        }
        Ok(())
    }

    /// Whether the stream is being captured into a graph.
    ///
    /// # Errors
    /// [`Error::Driver`] when the driver does not say.
    pub fn is_capturing(&self) -> Result<bool> {
        match &self.queue {
            Queue::Cpu(queue) => Ok(queue.is_recording()),
            Queue::Gpu(stream) => {
                self.device.make_current()?;
                let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
                // SAFETY: the stream is alive and the driver writes one status.
                let code = unsafe { sys::cuStreamIsCapturing(stream.cu_stream(), &mut status) };
                check("asking whether the stream is being captured", code)?;
                Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream(on {})", self.device.name())
    }
}

fn same_len(doing: &'static str, source_len: usize, destination_len: usize) -> Result<()> {
    if source_len == destination_len {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        doing,
        source_len,
        destination_len,
    })
}

/// A copy on the CPU backend, by exposed addresses so that a graph can replay it.
#[derive(Clone, Copy)]
struct CopyBytes {
    from: usize,
    to: usize,
    bytes: usize,
}

impl crate::cpu_queue::Work for CopyBytes {
    unsafe fn run(&self) -> Result<()> {
        let from: *const u8 = ptr::with_exposed_provenance(self.from);
        let to: *mut u8 = ptr::with_exposed_provenance_mut(self.to);
        // SAFETY: both ends had that many bytes when the copy was put in and, by `run`'s contract,
        // still have. `copy` allows them to overlap.
        unsafe { ptr::copy(from, to, self.bytes) };
        Ok(())
    }
}

/// A fill on the CPU backend, by an exposed address so that a graph can replay it.
struct FillBytes {
    to: usize,
    byte: u8,
    bytes: usize,
}

impl crate::cpu_queue::Work for FillBytes {
    unsafe fn run(&self) -> Result<()> {
        let to: *mut u8 = ptr::with_exposed_provenance_mut(self.to);
        // SAFETY: the memory had that many bytes when the fill was put in and, by `run`'s
        // contract, still has.
        unsafe { ptr::write_bytes(to, self.byte, self.bytes) };
        Ok(())
    }
}
