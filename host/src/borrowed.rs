//! cudarc's buffers, borrowed for use in this crate's streams.

use cudarc::driver::{DevicePtr, DevicePtrMut, SyncOnDrop};
use cutlet_device::DeviceData;

use crate::{Device, Error, Result, Stream, View, ViewMut};

/// A cudarc slice (`CudaSlice<T>`, `CudaView<T>`) borrowed for reading in a stream.
///
/// [`new`](Self::new) makes the stream wait for cudarc's pending work on the slice. Dropping the
/// result makes cudarc's later work on the slice wait for the stream. So keep it until all work that
/// uses it is enqueued.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cutlet_host::{Borrowed, Stream};
/// let context = cudarc::driver::CudaContext::new(0)?;
/// let theirs = context.default_stream();
/// let slice = theirs.clone_htod(&[1.0f32, 2.0])?;
///
/// let stream = Stream::from_cudarc(&theirs)?;
/// let x = Borrowed::new(&stream, &slice)?;
/// assert_eq!(stream.download(x.view())?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Borrowed<'a, T: DeviceData> {
    view: View<'a, T>,
    _until_drop: SyncOnDrop<'a>,
}

impl<'a, T: DeviceData> Borrowed<'a, T> {
    /// Borrows a slice on the stream's device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the slice is on another device than the stream.
    pub fn new<S: DevicePtr<T>>(stream: &'a Stream, slice: &'a S) -> Result<Self> {
        Device::from_cudarc(slice.stream().context())?.expect(stream.device(), of_slice)?;
        let Some(theirs) = stream.as_cudarc() else {
            return Err(on_cpu());
        };
        let (address, until_drop) = slice.device_ptr(theirs);
        // SAFETY: cudarc's slice owns or borrows its elements for at least `'a`; the guard orders
        // cudarc's own work with the stream's.
        let view = unsafe { View::from_raw(stream.device(), address, slice.len())? };
        Ok(Borrowed {
            view,
            _until_drop: until_drop,
        })
    }

    /// The elements.
    pub fn view(&self) -> View<'_, T> {
        self.view
    }
}

/// A cudarc slice (`CudaSlice<T>`, `CudaViewMut<T>`) borrowed for writing in a stream; see
/// [`Borrowed`].
#[derive(Debug)]
pub struct BorrowedMut<'a, T: DeviceData> {
    view: ViewMut<'a, T>,
    _until_drop: SyncOnDrop<'a>,
}

impl<'a, T: DeviceData> BorrowedMut<'a, T> {
    /// Borrows a slice on the stream's device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the slice is on another device than the stream.
    pub fn new<S: DevicePtrMut<T>>(stream: &'a Stream, slice: &'a mut S) -> Result<Self> {
        Device::from_cudarc(slice.stream().context())?.expect(stream.device(), of_slice)?;
        let Some(theirs) = stream.as_cudarc() else {
            return Err(on_cpu());
        };
        let len = slice.len();
        let (address, until_drop) = slice.device_ptr_mut(theirs);
        // SAFETY: cudarc's slice owns or exclusively borrows its elements for at least `'a`; the
        // guard orders cudarc's own work with the stream's.
        let view = unsafe { ViewMut::from_raw(stream.device(), address, len)? };
        Ok(BorrowedMut {
            view,
            _until_drop: until_drop,
        })
    }

    /// The elements.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.view.reborrow()
    }
}

fn of_slice() -> String {
    "the cudarc slice".to_string()
}

fn on_cpu() -> Error {
    Error::WrongDevice {
        what: of_slice(),
        found: "a GPU".to_string(),
        expected: "the CPU".to_string(),
    }
}
