//! Copies and fills in a stream, and buffers made by them.

use std::ptr;

use cudarc::driver::sys::{self, CUresult, CUstream};
use cutlet_device::DeviceData;
use cutlet_simt::LiveMemory;

use crate::buffer::{IntoView, IntoViewMut};
use crate::cpu_queue::Work;
use crate::driver::{RelaxedCaptureMode, check};
use crate::order::Caller;
use crate::stream::Queue;
use crate::{Buffer, Error, Result, Stream, View, ViewMut};

impl Stream {
    /// A new buffer of `len` elements with all bytes 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn zeroed<T: DeviceData>(&self, len: usize) -> Result<Buffer<T>> {
        self.filled(len, 0)
    }

    /// A new buffer of `len` elements with all bytes `byte`. Tests fill outputs with `0xff`, a NaN as
    /// a float, to detect elements that a kernel does not write.
    ///
    /// During a capture the buffer is filled at once, and not by the graph. To fill it at each replay, use
    /// [`fill_bytes`](Self::fill_bytes).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn filled<T: DeviceData>(&self, len: usize, byte: u8) -> Result<Buffer<T>> {
        let mut buffer = Buffer::allocate(self, len)?;
        self.initialize(buffer.view_mut(), byte)?;
        Ok(buffer)
    }

    /// Fills a buffer that nothing else knows yet. A fill that was recorded would leave it uninitialised.
    #[cfg_attr(debug_assertions, track_caller)]
    fn initialize<T: DeviceData>(&self, buffer: ViewMut<'_, T>, byte: u8) -> Result<()> {
        match self.queue() {
            Queue::Cpu(_) => {
                buffer.note_write(self, FILL, || "the new buffer".to_string())?;
                let fill = FillBytes {
                    to: buffer.address() as usize,
                    byte,
                    bytes: buffer.view().bytes(),
                };
                // SAFETY: the buffer has that many bytes, and is borrowed for the call.
                unsafe { fill.run() }
            }
            Queue::Gpu(_) if self.is_capturing()? => {
                let another = self.device().stream()?;
                another.fill_bytes(buffer, byte)?;
                another.synchronize()
            }
            Queue::Gpu(_) => self.fill_bytes(buffer, byte),
        }
    }

    /// A new buffer with a copy of `data`. Returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`]; [`Error::Capturing`] during a capture.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn upload<T: DeviceData>(&self, data: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::allocate(self, data.len())?;
        self.copy_from_host(data, &mut buffer)?;
        Ok(buffer)
    }

    /// A copy of `from` on the host. Waits for all earlier work in the stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the host has too little memory, [`Error::WrongDevice`],
    /// [`Error::WrongStream`], [`Error::Driver`]; [`Error::Capturing`] during a capture.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn download<'a, V: IntoView<'a>>(&self, from: V) -> Result<Vec<V::Element>> {
        let from = from.into_view();
        let mut data = Vec::new();
        data.try_reserve_exact(from.len())
            .map_err(|_| Error::OutOfMemory {
                bytes: from.bytes(),
                device: "the host".to_string(),
                found: "there is less memory".to_string(),
            })?;
        // SAFETY: the vector has room for the elements and nothing else uses it. The copy is done when
        // the call returns.
        unsafe { self.read(from, data.as_mut_ptr(), Return::WhenDone)? };
        // SAFETY: the copy wrote all elements, and every bit pattern is a value of `DeviceData`.
        unsafe { data.set_len(from.len()) };
        Ok(data)
    }

    /// Copies `from` into `to`, which has as many elements. Returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`];
    /// [`Error::Capturing`] during a capture.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn copy_from_host<'a, V: IntoViewMut<'a>>(&self, from: &[V::Element], to: V) -> Result<()> {
        // SAFETY: both live until the call returns, and the copy is done by then.
        unsafe { self.write(from, to.into_view_mut(), Return::WhenDone) }
    }

    /// Copies `from` into `to`, which has as many elements. Returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`];
    /// [`Error::Capturing`] during a capture.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn copy_to_host<'a, V: IntoView<'a>>(&self, from: V, to: &mut [V::Element]) -> Result<()> {
        let from = from.into_view();
        same_len("a copy to the host", from.len(), to.len())?;
        // SAFETY: `to` has as many elements. Both live until the call returns, and the copy is done by then.
        unsafe { self.read(from, to.as_mut_ptr(), Return::WhenDone) }
    }

    /// Enqueues a copy of `from` into `to`, and does not wait for it. The copy overlaps with work of
    /// the host if `from` is a [`PinnedBuffer`](crate::PinnedBuffer). It can be captured.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`].
    ///
    /// # Safety
    /// `from` stays alive and unchanged, and `to` stays alive, until the copy is done: in a graph,
    /// until every replay is.
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn copy_from_host_async<'a, V: IntoViewMut<'a>>(
        &self,
        from: &[V::Element],
        to: V,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.write(from, to.into_view_mut(), Return::AtOnce) }
    }

    /// Copies `from` into `to`.
    ///
    /// # Safety
    /// `from` stays alive and unchanged, and `to` stays alive, until the copy is done: in a graph, until every replay
    /// is.
    #[cfg_attr(debug_assertions, track_caller)]
    unsafe fn write<T: DeviceData>(
        &self,
        from: &[T],
        to: ViewMut<'_, T>,
        returns: Return,
    ) -> Result<()> {
        same_len("a copy from the host", from.len(), to.len())?;
        to.note_write(self, Caller::call("a copy from the host"), || {
            "the destination".to_string()
        })?;
        let copy = CopyBytes {
            doing: "copying from the host",
            from: from.as_ptr().expose_provenance(),
            to: to.address() as usize,
            bytes: to.view().bytes(),
            element_bytes: size_of::<T>(),
        };
        // SAFETY: source and destination have that many bytes and live until the copy is done.
        self.put_copy(copy, returns, |stream| unsafe {
            sys::cuMemcpyHtoDAsync_v2(to.address(), from.as_ptr().cast(), copy.bytes, stream)
        })
    }

    /// Enqueues a copy of `from` into `to`, and does not wait for it. The copy overlaps with work of
    /// the host if `to` is a [`PinnedBuffer`](crate::PinnedBuffer). It can be captured.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`].
    ///
    /// # Safety
    /// `from` stays alive, and `to` stays alive and is not accessed, until the copy is done: in a
    /// graph, until every replay is.
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn copy_to_host_async<'a, V: IntoView<'a>>(
        &self,
        from: V,
        to: &mut [V::Element],
    ) -> Result<()> {
        let from = from.into_view();
        same_len("a copy to the host", from.len(), to.len())?;
        // SAFETY: `to` has as many elements; the rest is the caller's promise.
        unsafe { self.read(from, to.as_mut_ptr(), Return::AtOnce) }
    }

    /// Copies `from` to host memory.
    ///
    /// # Safety
    /// `to` has room for the elements. Until the copy is done, both stay alive and `to` is not
    /// accessed.
    #[cfg_attr(debug_assertions, track_caller)]
    unsafe fn read<T: DeviceData>(
        &self,
        from: View<'_, T>,
        to: *mut T,
        returns: Return,
    ) -> Result<()> {
        from.note_read(self, Caller::call("a copy to the host"), || {
            "the source".to_string()
        })?;
        let copy = CopyBytes {
            doing: "copying to the host",
            from: from.address() as usize,
            to: to.expose_provenance(),
            bytes: from.bytes(),
            element_bytes: size_of::<T>(),
        };
        // SAFETY: source and destination have that many bytes and live until the copy is done.
        self.put_copy(copy, returns, |stream| unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast(), from.address(), copy.bytes, stream)
        })
    }

    /// Enqueues a copy of `from` into `to`, which has as many elements. Both are on the stream's device.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn copy<'a, 'b, V, W>(&self, from: V, to: W) -> Result<()>
    where
        V: IntoView<'a>,
        W: IntoViewMut<'b, Element = V::Element>,
    {
        let (from, to): (View<V::Element>, ViewMut<V::Element>) =
            (from.into_view(), to.into_view_mut());
        same_len("a copy on the device", from.len(), to.len())?;
        let this = Caller::call("a copy on the device");
        from.note_read(self, this, || "the source".to_string())?;
        to.note_write(self, this, || "the destination".to_string())?;
        let copy = CopyBytes {
            doing: "copying on the device",
            from: from.address() as usize,
            to: to.address() as usize,
            bytes: from.bytes(),
            element_bytes: size_of::<V::Element>(),
        };
        // SAFETY: source and destination have that many bytes. Freeing either waits for the copy.
        self.put_copy(copy, Return::AtOnce, |stream| unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), copy.bytes, stream)
        })
    }

    /// Enqueues a copy; on a GPU, `on_gpu` calls the driver for it.
    fn put_copy(
        &self,
        copy: CopyBytes,
        returns: Return,
        on_gpu: impl FnOnce(CUstream) -> CUresult,
    ) -> Result<()> {
        match (self.queue(), returns) {
            (Queue::Cpu(queue), Return::AtOnce) if copy.bytes > 0 => queue.submit(copy),
            (Queue::Cpu(_), Return::AtOnce) => Ok(()),
            (Queue::Cpu(queue), Return::WhenDone) => {
                self.must_not_capture(WAITS)?;
                let enqueued = self.order().enqueued();
                queue.run(&copy)?;
                self.order().is_waited_for(enqueued);
                Ok(())
            }
            (Queue::Gpu(stream), Return::AtOnce) if copy.bytes > 0 => {
                self.device().bind()?;
                check(copy.doing, on_gpu(stream.cu_stream()))
            }
            (Queue::Gpu(_), Return::AtOnce) => Ok(()),
            (Queue::Gpu(stream), Return::WhenDone) => {
                self.must_not_capture(WAITS)?;
                let _relaxed = RelaxedCaptureMode::enter()?;
                let enqueued = match copy.bytes {
                    0 => CUresult::CUDA_SUCCESS,
                    _ => on_gpu(stream.cu_stream()),
                };
                // Also after an error, which may be that of earlier work: nothing uses the host's memory afterwards.
                let waited = self.synchronize();
                check(copy.doing, enqueued)?;
                waited
            }
        }
    }

    /// Enqueues setting every byte of `to` to `byte`.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::WrongStream`], [`Error::Driver`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn fill_bytes<'a, V: IntoViewMut<'a>>(&self, to: V, byte: u8) -> Result<()> {
        let to = to.into_view_mut();
        to.note_write(self, FILL, || "the destination".to_string())?;
        let bytes = to.view().bytes();
        if bytes == 0 {
            return Ok(());
        }
        match self.queue() {
            Queue::Cpu(queue) => queue.submit(FillBytes {
                to: to.address() as usize,
                byte,
                bytes,
            }),
            Queue::Gpu(stream) => {
                self.device().bind()?;
                // SAFETY: the memory has that many bytes. Freeing it waits for the fill.
                let code =
                    unsafe { sys::cuMemsetD8Async(to.address(), byte, bytes, stream.cu_stream()) };
                check("filling a buffer", code)
            }
        }
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

/// When a copy returns.
#[derive(Clone, Copy)]
enum Return {
    /// When it is enqueued or recorded.
    AtOnce,
    /// When it is done. It is never recorded.
    WhenDone,
}

/// What fills are called in messages.
const FILL: Caller = Caller::call("a fill");

/// What a capture refuses.
const WAITS: &str = "a copy from or to the host that is complete when it returns";

/// A copy on the CPU backend. It holds exposed addresses, so that a graph can replay it.
#[derive(Clone, Copy)]
struct CopyBytes {
    /// What it is, in messages.
    doing: &'static str,
    from: usize,
    to: usize,
    bytes: usize,
    element_bytes: usize,
}

impl Work for CopyBytes {
    unsafe fn run(&self) -> Result<()> {
        if let Some(byte) = LiveMemory::first_unwritten(self.from, self.bytes) {
            return Err(Error::Unwritten {
                doing: self.doing,
                element: byte / self.element_bytes,
                len: self.bytes / self.element_bytes,
            });
        }
        let from: *const u8 = ptr::with_exposed_provenance(self.from);
        let to: *mut u8 = ptr::with_exposed_provenance_mut(self.to);
        // SAFETY: source and destination had that many bytes when the copy was enqueued and, by
        // `run`'s contract, still have. `copy` allows overlap.
        unsafe { ptr::copy(from, to, self.bytes) };
        LiveMemory::written(self.to, self.bytes);
        Ok(())
    }
}

/// A fill on the CPU backend. It holds an exposed address, so that a graph can replay it.
struct FillBytes {
    to: usize,
    byte: u8,
    bytes: usize,
}

impl Work for FillBytes {
    unsafe fn run(&self) -> Result<()> {
        let to: *mut u8 = ptr::with_exposed_provenance_mut(self.to);
        // SAFETY: the memory had that many bytes when the fill was enqueued and, by `run`'s contract,
        // still has.
        unsafe { ptr::write_bytes(to, self.byte, self.bytes) };
        LiveMemory::written(self.to, self.bytes);
        Ok(())
    }
}
