//! Buffers as tensors of other libraries, and the streams in which those use them.

use std::ffi::c_void;
use std::ptr;

use dlpark::ffi::DLDevice;
use dlpark::metadata::Dynamic;
use dlpark::{Managed, ManagedTensorBase};

use super::Element;
use super::extents::{Tuple, row_major, span};
use crate::device::Place;
use crate::order::Caller;
use crate::{Buffer, Error, Result, Stream};

impl Stream {
    /// The stream as DLPack's protocol names it, for the producer of a tensor that this stream will use: in Python,
    /// `x.__dlpack__(stream=…)`. The producer makes this stream wait for its own work. `None` on the CPU.
    ///
    /// It is 1 for the default stream, 2 for that of a thread, and else the handle.
    pub fn dlpack_stream(&self) -> Option<i64> {
        let handle = self.as_raw()?;
        Some(match handle.addr() {
            0 => 1,
            handle => handle as i64,
        })
    }

    /// Makes a tensor of a buffer, for other libraries. Waits for the work of this stream, so that the tensor may be used
    /// in any stream.
    ///
    /// Element (i, j, …) is at i·`strides[0]` + j·`strides[1]` + … in the buffer. Without strides, the tensor is
    /// row-major. The tensor owns the buffer: its deleter frees it, from any thread, after the device's work.
    ///
    /// The type of the result says whether it has the versioned interface (`dlpark::versioned::Dlpack`) or the older one
    /// (`dlpark::legacy::Dlpack`).
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the buffer is on another device than the stream, [`Error::Unordered`] if another stream
    /// uses the buffer and nothing orders the two, [`Error::Dlpack`] if the shape does not fit in the buffer;
    /// [`Error::Capturing`] during a capture, [`Error::Driver`]. The buffer is freed.
    ///
    /// ```
    /// use cutlet_host::Device;
    /// use cutlet_host::dlpack::dlpark::versioned;
    ///
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = Device::auto().stream()?;
    /// let buffer = stream.upload(&[1i32, 2, 3, 4, 5, 6])?;
    /// // The buffer's first two columns, if its rows have three elements.
    /// let tensor: versioned::Dlpack = stream.export_dlpack(buffer, &[2, 2], Some(&[3, 1]))?;
    /// // For C: `tensor.into_raw()`.
    /// # Ok(()) }
    /// ```
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn export_dlpack<T: Element, M: ManagedTensorBase>(
        &self,
        buffer: Buffer<T>,
        shape: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<Managed<M>> {
        let tensor = self.owning(buffer, shape, strides)?;
        self.synchronize()?;
        Ok(tensor)
    }

    /// Makes a tensor of a buffer, as [`export_dlpack`](Self::export_dlpack) does, for use in the consumer's stream. That
    /// stream waits for the work of this one, and the call does not wait.
    ///
    /// The consumer names its stream by DLPack's protocol: in Python, it is the argument `stream` of `__dlpack__`.
    ///
    /// | `consumer` | meaning |
    /// |---|---|
    /// | `None`, 1 | the default stream |
    /// | 2 | the default stream of the calling thread |
    /// | −1 | nothing waits: the consumer orders the work itself |
    /// | from 3 on | the stream with this handle |
    ///
    /// On the CPU, nothing waits.
    ///
    /// # Errors
    /// As [`export_dlpack`](Self::export_dlpack), and [`Error::Dlpack`] if `consumer` names no stream.
    ///
    /// # Safety
    /// `consumer` is a stream of this device. While the call uses it, no other thread begins or ends a capture of it.
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn export_dlpack_to<T: Element, M: ManagedTensorBase>(
        &self,
        consumer: Option<i64>,
        buffer: Buffer<T>,
        shape: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<Managed<M>> {
        let tensor = self.owning(buffer, shape, strides)?;
        // SAFETY: the caller's promise.
        unsafe { self.precede(consumer)? };
        Ok(tensor)
    }

    /// The tensor, which owns the buffer. Nothing waits for the buffer's work.
    #[cfg_attr(debug_assertions, track_caller)]
    fn owning<T: Element, M: ManagedTensorBase>(
        &self,
        mut buffer: Buffer<T>,
        shape: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<Managed<M>> {
        // The consumer may write it.
        let this = Caller::call("an export by DLPack");
        let what = || "the buffer".to_string();
        buffer.view_mut().note_write(self, this, what)?;
        buffer.memory().is_used_elsewhere();
        if self.gpu().is_some() {
            // The consumer may wait for the whole device.
            self.device().order().share();
        }
        owning(buffer, shape, strides).map_err(|found| does_not_fit(shape, strides, found))
    }

    /// Has the consumer wait for the work in this stream.
    ///
    /// # Safety
    /// As [`export_dlpack_to`](Self::export_dlpack_to).
    unsafe fn precede(&self, consumer: Option<i64>) -> Result<()> {
        let waiting = waiting(consumer)?;
        // Work of the CPU is done.
        let Some((gpu, _)) = self.gpu() else {
            return Ok(());
        };
        // SAFETY: the caller's promise. The streams are dropped in this call.
        unsafe {
            match waiting {
                Waiting::Nobody => Ok(()),
                Waiting::ThisThread => Stream::of_this_thread(&gpu.context)?.wait_for(self),
                Waiting::Stream(handle) => Stream::from_raw(self.device(), handle)?.wait_for(self),
            }
        }
    }
}

/// Who waits for the work of a producer.
#[derive(Debug, PartialEq)]
enum Waiting {
    Nobody,
    /// The default stream of the calling thread.
    ThisThread,
    /// The stream with this handle.
    Stream(*mut c_void),
}

/// Who waits if this is the consumer's stream by DLPack's protocol.
fn waiting(consumer: Option<i64>) -> Result<Waiting> {
    Ok(match consumer {
        Some(-1) => Waiting::Nobody,
        None | Some(1) => Waiting::Stream(ptr::null_mut()),
        Some(2) => Waiting::ThisThread,
        Some(handle @ 3..) => Waiting::Stream(ptr::without_provenance_mut(handle as usize)),
        Some(number) => return Err(no_stream(number)),
    })
}

/// The tensor, which owns the buffer.
///
/// # Errors
/// Why there is none.
fn owning<T: Element, M: ManagedTensorBase>(
    buffer: Buffer<T>,
    shape: &[usize],
    strides: Option<&[usize]>,
) -> Result<Managed<M>, String> {
    let strides = strides_of(shape, strides)?;
    let (needed, len) = (span(shape, &strides)?, buffer.len());
    if needed > len {
        return Err(format!(
            "it needs {needed} elements and the buffer has {len}"
        ));
    }
    let device = device(&buffer);
    let data = match needed {
        0 => ptr::null_mut(),
        _ => ptr::with_exposed_provenance_mut(buffer.view().address() as usize),
    };
    let metadata = Dynamic::new(shape, strides.as_slice());
    let mut tensor = metadata
        .initialize_as::<M>(Box::new(buffer))
        .map_err(|error| error.to_string())?;
    tensor
        .set_data(data)
        .set_device(device)
        .set_dtype(T::DATA_TYPE);
    // SAFETY: shape and strides stay within the buffer, which the tensor owns. Nothing else has it, so it may be written.
    Ok(unsafe { tensor.finish() })
}

/// The strides as DLPack has them.
fn strides_of(shape: &[usize], strides: Option<&[usize]>) -> Result<Vec<i64>, String> {
    let Some(strides) = strides else {
        return row_major(shape).ok_or_else(|| "its strides exceed 63 bits".to_string());
    };
    if strides.len() != shape.len() {
        return Err("each dimension needs one stride".to_string());
    }
    let strides = strides.iter().map(|&stride| i64::try_from(stride));
    strides
        .collect::<Result<_, _>>()
        .map_err(|_| "its strides exceed 63 bits".to_string())
}

fn device<T: Element>(buffer: &Buffer<T>) -> DLDevice {
    match buffer.device().place() {
        Place::Cpu => DLDevice::CPU,
        // The driver numbers its GPUs by an `i32`.
        Place::Gpu(gpu) => DLDevice::cuda(gpu.context.ordinal() as i32),
    }
}

fn does_not_fit(shape: &[usize], strides: Option<&[usize]>, found: String) -> Error {
    let strides = match strides {
        Some(strides) => format!("and strides {}", Tuple(strides)),
        None => "in row-major order".to_string(),
    };
    Error::Dlpack {
        asked: format!("an export with shape {} {strides}", Tuple(shape)),
        found,
        fix: "choose a shape and strides that fit in the buffer",
    }
}

fn no_stream(number: i64) -> Error {
    Error::Dlpack {
        asked: format!("an export for the stream {number}"),
        found: "this is no stream's number in DLPack's protocol".to_string(),
        fix: "give the consumer's number: -1, 1, 2 or a stream's handle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_name_streams_by_the_protocol() -> Result<()> {
        let default = Waiting::Stream(ptr::null_mut());
        assert_eq!(waiting(None)?, default);
        assert_eq!(waiting(Some(1))?, default);
        assert_eq!(waiting(Some(2))?, Waiting::ThisThread);
        assert_eq!(waiting(Some(-1))?, Waiting::Nobody);
        let handle = ptr::without_provenance_mut(0x7f00_0000_1000);
        assert_eq!(waiting(Some(0x7f00_0000_1000))?, Waiting::Stream(handle));
        for number in [0, -2, i64::MIN] {
            let error = waiting(Some(number)).unwrap_err().to_string();
            assert!(
                error.contains(&format!("stream {number} was asked for")),
                "{error}"
            );
        }
        Ok(())
    }
}
