//! Where tensors are, the CPU or a GPU: how operations read their elements, and make new ones.

use std::cell::RefCell;

use candle_core::backend::BackendStorage;
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, DType, Error, Result, Shape, Storage, Tensor, WithDType};
use cutlet::{DeviceData, F8E4M3, Stream, View, ViewMut};

use crate::context::Context;

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
pub(crate) use cuda::Cuda;

/// A type that candle's tensors and cutlet's buffers both have as elements.
pub(crate) trait Scalar: DeviceData + WithDType + OnCuda {}
impl<T: DeviceData + WithDType + OnCuda> Scalar for T {}

#[cfg(feature = "cuda")]
pub(crate) use cuda::OnCuda;
/// What an element on a GPU must be, in a build without GPUs.
#[cfg(not(feature = "cuda"))]
pub(crate) trait OnCuda {}
#[cfg(not(feature = "cuda"))]
impl<T> OnCuda for T {}

/// A kind of device that tensors are on.
pub(crate) trait Place: Sized {
    /// A tensor's memory.
    type Storage: BackendStorage;
    /// Elements that are borrowed for work in a stream.
    type Elements<'a, T: DeviceData>: Elements<T>;

    /// Whether an operation waits until its work is done. Then it reports bad indices.
    const WAITS: bool;

    /// Calls `work` with what the thread keeps for the stream of this memory.
    fn with<R>(storage: &Self::Storage, work: impl FnOnce(&mut Context) -> Result<R>) -> Result<R>;

    /// All elements of the memory, for reading by work in the stream.
    fn read<'a, T: Scalar>(
        stream: &'a Stream,
        storage: &'a Self::Storage,
    ) -> Result<Self::Elements<'a, T>>;

    /// The same of 8-bit floats, whose type is another one in candle. An error if the memory has other elements.
    fn read_e4m3<'a>(
        stream: &'a Stream,
        storage: &'a Self::Storage,
    ) -> Result<Self::Elements<'a, F8E4M3>>;

    /// Memory on the device of `like`, whose `len` elements the work that `write` enqueues makes. It must make all.
    fn make<T: Scalar>(
        stream: &Stream,
        like: &Self::Storage,
        len: usize,
        write: impl FnOnce(ViewMut<'_, T>) -> cutlet::Result<()>,
    ) -> Result<Self::Storage>;

    /// The memory as candle has it for all devices.
    fn any(storage: Self::Storage) -> Storage;

    /// A packed tensor of this memory, without a gradient.
    fn tensor(storage: Self::Storage, shape: Shape) -> Tensor {
        Tensor::from_storage(Self::any(storage), shape, BackpropOp::none(), false)
    }
}

/// Elements that are borrowed for work in a stream. They may be dropped when the work is enqueued.
pub(crate) trait Elements<T: DeviceData> {
    fn view(&self) -> View<'_, T>;
}

/// The CPU. Kernels run on cutlet's CPU backend.
pub(crate) struct Cpu;

impl Place for Cpu {
    type Storage = CpuStorage;
    type Elements<'a, T: DeviceData> = View<'a, T>;

    const WAITS: bool = true;

    fn with<R>(_: &CpuStorage, work: impl FnOnce(&mut Context) -> Result<R>) -> Result<R> {
        thread_local! {
            static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
        }
        CONTEXT.with_borrow_mut(|kept| {
            let context = match kept {
                Some(context) => context,
                None => {
                    let stream = cutlet::Device::cpu().stream().map_err(Error::wrap)?;
                    kept.insert(Context::new(stream)?)
                }
            };
            work(context)
        })
    }

    fn read<'a, T: Scalar>(stream: &'a Stream, storage: &'a CpuStorage) -> Result<View<'a, T>> {
        let elements = T::cpu_storage_as_slice(storage)?;
        let address = elements.as_ptr().expose_provenance() as u64;
        // SAFETY: the slice is borrowed as long as the view. Work of the CPU backend is done when its call returns.
        unsafe { View::from_raw(stream.device(), address, elements.len()) }.map_err(Error::wrap)
    }

    fn read_e4m3<'a>(stream: &'a Stream, storage: &'a CpuStorage) -> Result<View<'a, F8E4M3>> {
        let CpuStorage::F8E4M3(elements) = storage else {
            return Err(not_e4m3(storage));
        };
        let address = elements.as_ptr().expose_provenance() as u64;
        // SAFETY: as for `read`. Both types are the byte of a number of e4m3.
        unsafe { View::from_raw(stream.device(), address, elements.len()) }.map_err(Error::wrap)
    }

    fn make<T: Scalar>(
        stream: &Stream,
        _: &CpuStorage,
        len: usize,
        write: impl FnOnce(ViewMut<'_, T>) -> cutlet::Result<()>,
    ) -> Result<CpuStorage> {
        let mut elements = vec![T::zero(); len];
        let address = elements.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: nothing else uses the elements until the work is done, which is when its call returns.
        let view = unsafe { ViewMut::from_raw(stream.device(), address, len) };
        write(view.map_err(Error::wrap)?).map_err(Error::wrap)?;
        Ok(T::to_cpu_storage_owned(elements))
    }

    fn any(storage: CpuStorage) -> Storage {
        Storage::Cpu(storage)
    }
}

/// The error about memory that has no 8-bit floats.
fn not_e4m3(storage: &impl BackendStorage) -> Error {
    Error::UnexpectedDType {
        msg: "8-bit floats are read",
        expected: DType::F8E4M3,
        got: storage.dtype(),
    }
    .bt()
}

impl<T: DeviceData> Elements<T> for View<'_, T> {
    fn view(&self) -> View<'_, T> {
        *self
    }
}
