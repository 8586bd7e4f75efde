//! Tensors on a GPU, in their own memory and in the stream of their candle device.

use std::cell::RefCell;
use std::sync::Arc;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, DeviceRepr};
use candle_core::cuda_backend::{CudaDType, CudaStorage, CudaStorageSlice};
use candle_core::{Error, Result, Storage};
use cutlet::{DeviceData, F8E4M3, Stream, View, ViewMut};
use cutlet_host::{Borrowed, BorrowedMut};

use super::{Elements, Place, Scalar, not_e4m3};
use crate::context::Context;

/// What an element on a GPU must be.
pub(crate) trait OnCuda: CudaDType + DeviceRepr {}
impl<T: CudaDType + DeviceRepr> OnCuda for T {}

/// A GPU.
pub(crate) struct Cuda;

impl Place for Cuda {
    type Storage = CudaStorage;
    type Elements<'a, T: DeviceData> = Borrowed<'a, T>;

    const WAITS: bool = false;

    fn with<R>(storage: &CudaStorage, work: impl FnOnce(&mut Context) -> Result<R>) -> Result<R> {
        thread_local! {
            static CONTEXTS: RefCell<Vec<(Arc<CudaStream>, Context)>> = const { RefCell::new(Vec::new()) };
        }
        let stream = storage.device().cuda_stream();
        CONTEXTS.with_borrow_mut(|kept| {
            let at = match kept.iter().position(|(of, _)| *of == stream) {
                Some(at) => at,
                None => {
                    let context = Context::new(stream_of_this_thread(&stream)?)?;
                    kept.push((stream, context));
                    kept.len() - 1
                }
            };
            work(&mut kept[at].1)
        })
    }

    fn read<'a, T: Scalar>(
        stream: &'a Stream,
        storage: &'a CudaStorage,
    ) -> Result<Borrowed<'a, T>> {
        let elements = storage.as_cuda_slice::<T>()?;
        Borrowed::new(stream, elements.as_view()).map_err(Error::wrap)
    }

    fn read_e4m3<'a>(stream: &'a Stream, storage: &'a CudaStorage) -> Result<Borrowed<'a, F8E4M3>> {
        let CudaStorageSlice::F8E4M3(elements) = &storage.slice else {
            return Err(not_e4m3(storage));
        };
        // SAFETY: both types are the byte of a number of e4m3.
        let elements = unsafe { elements.transmute(elements.len()) };
        let elements = elements.expect("there are as many bytes");
        Borrowed::new(stream, elements).map_err(Error::wrap)
    }

    fn make<T: Scalar>(
        stream: &Stream,
        like: &CudaStorage,
        len: usize,
        write: impl FnOnce(ViewMut<'_, T>) -> cutlet::Result<()>,
    ) -> Result<CudaStorage> {
        // SAFETY: `write` enqueues the work that makes all elements. Nobody has the memory earlier.
        let mut elements = unsafe { like.device().alloc::<T>(len)? };
        let mut written = BorrowedMut::new(stream, elements.as_view_mut()).map_err(Error::wrap)?;
        write(written.view_mut()).map_err(Error::wrap)?;
        drop(written);
        Ok(CudaStorage::wrap_cuda_slice(
            elements,
            like.device().clone(),
        ))
    }

    fn any(storage: CudaStorage) -> Storage {
        Storage::Cuda(storage)
    }
}

impl<T: DeviceData> Elements<T> for Borrowed<'_, T> {
    fn view(&self) -> View<'_, T> {
        Borrowed::view(self)
    }
}

/// A candle device's stream as one of cutlet's. Most devices have the stream that each thread has by default.
fn stream_of_this_thread(stream: &Arc<CudaStream>) -> Result<Stream> {
    let context = stream.context();
    let made = match *stream == context.per_thread_stream() {
        // SAFETY: the result is kept in a variable of the thread, and lent to operations that the thread runs.
        true => unsafe { Stream::of_this_thread(context) },
        false => Stream::from_cudarc(stream),
    };
    made.map_err(Error::wrap)
}
