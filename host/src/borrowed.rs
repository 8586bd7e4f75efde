//! cudarc's buffers, borrowed for use in their own stream.

use std::sync::Arc;

use cudarc::driver::{CudaStream, CudaView, CudaViewMut, DeviceSlice, SyncOnDrop};
use cutlet_device::DeviceData;

use crate::binding::Binding;
use crate::{Device, Error, Result, Stream, View, ViewMut};

/// A cudarc view (`CudaSlice::as_view`, `CudaSlice::slice`) borrowed for reading in its own stream.
///
/// cudarc frees a slice in the stream that the slice was allocated in. So this is the one stream that may use
/// the elements: others get [`Error::WrongStream`]. [`Stream::from_cudarc`] makes a stream of this crate of it,
/// and [`Stream::as_cudarc`] one of cudarc, to allocate slices in. For use in another stream, order the work
/// with events and make a view by [`View::from_raw`].
///
/// [`new`](Self::new) makes the stream wait for work of other cudarc streams on the slice. Dropping the result
/// makes their later work wait for the stream. So keep it until all work that uses it is enqueued.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cutlet_host::{Borrowed, Stream};
/// let context = cudarc::driver::CudaContext::new(0)?;
/// let theirs = context.default_stream();
/// let slice = theirs.clone_htod(&[1.0f32, 2.0])?;
///
/// let stream = Stream::from_cudarc(&theirs)?;
/// let x = Borrowed::new(&stream, slice.as_view())?;
/// assert_eq!(stream.download(x.view())?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// The elements cannot be used after their slice:
///
/// ```compile_fail,E0505
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use cutlet_host::{Borrowed, Stream};
/// # let context = cudarc::driver::CudaContext::new(0)?;
/// # let theirs = context.default_stream();
/// # let stream = Stream::from_cudarc(&theirs)?;
/// # let slice = theirs.clone_htod(&[1.0f32, 2.0])?;
/// let x = Borrowed::new(&stream, slice.as_view())?;
/// drop(slice);
/// stream.download(x.view())?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Borrowed<'a, T: DeviceData> {
    view: View<'a, T>,
    _until_drop: SyncOnDrop<'a>,
}

impl<'a, T: DeviceData> Borrowed<'a, T> {
    /// Borrows a view in the stream that its slice was allocated in.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the slice is on another device than the stream, [`Error::WrongStream`] if it was
    /// allocated in another stream.
    pub fn new(stream: &'a Stream, slice: CudaView<'a, T>) -> Result<Self> {
        let theirs = own_stream(stream, slice.stream())?;
        let len = slice.len();
        let (address, until_drop) = slice.view_ptr(theirs);
        // SAFETY: cudarc's view borrows that many elements for `'a`. Its slice is freed after the stream's earlier
        // work, and only the stream may use the result. cudarc's events order its other streams.
        let view = unsafe { View::from_raw(stream.device(), address, len)? };
        Ok(Borrowed {
            view: view.bound_to(Binding::Stream {
                stream,
                is_own: false,
            }),
            _until_drop: until_drop,
        })
    }

    /// The elements.
    pub fn view(&self) -> View<'_, T> {
        self.view
    }
}

/// A cudarc view (`CudaSlice::as_view_mut`, `CudaSlice::slice_mut`) borrowed for writing in its own stream; see
/// [`Borrowed`].
#[derive(Debug)]
pub struct BorrowedMut<'a, T: DeviceData> {
    view: ViewMut<'a, T>,
    _until_drop: SyncOnDrop<'a>,
}

impl<'a, T: DeviceData> BorrowedMut<'a, T> {
    /// Borrows a view in the stream that its slice was allocated in.
    ///
    /// # Errors
    /// As [`Borrowed::new`].
    pub fn new(stream: &'a Stream, slice: CudaViewMut<'a, T>) -> Result<Self> {
        let theirs = own_stream(stream, slice.stream())?;
        let len = slice.len();
        let (address, until_drop) = slice.view_ptr_mut(theirs);
        // SAFETY: as in `Borrowed::new`, and the view borrows the elements exclusively.
        let view = unsafe { ViewMut::from_raw(stream.device(), address, len)? };
        Ok(BorrowedMut {
            view: view.bound_to(Binding::Stream {
                stream,
                is_own: false,
            }),
            _until_drop: until_drop,
        })
    }

    /// The elements.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.view.reborrow()
    }
}

/// The stream as one of cudarc. Returns an error unless it is `theirs`, the stream of a slice.
fn own_stream<'a>(stream: &'a Stream, theirs: &Arc<CudaStream>) -> Result<&'a CudaStream> {
    let what = || "the cudarc slice".to_string();
    match stream.as_cudarc() {
        Some(ours) if ours == theirs => Ok(ours),
        _ => {
            Device::from_cudarc(theirs.context())?.expect(stream.device(), what)?;
            Err(Error::WrongStream { what: what() })
        }
    }
}
