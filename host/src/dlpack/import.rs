//! Tensors of other libraries, in the memory of their owners.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::{AllocationDeleter, DlpackFlags, Managed, ManagedTensorBase, TensorRef};

use super::Element;
use super::element::name;
use super::extents::{Tuple, are_consecutive, span};
use crate::binding::Binding;
use crate::device::Place;
use crate::{Backend, Error, Result, Stream, View, ViewMut};

/// A tensor of another library, for reading in one stream.
///
/// Dropping it gives the tensor back to its owner. On a GPU, the drop first waits for the stream's work. It cannot wait
/// while another library captures the stream: then the tensor is never given back.
/// [`freed_in_order`](Self::freed_in_order) avoids both.
///
/// Elements cannot be used after their tensor:
///
/// ```compile_fail,E0505
/// # use cutlet_host::{Device, dlpack::{Imported, dlpark::versioned}};
/// # fn main() -> cutlet_host::Result<()> {
/// # let stream = Device::cpu().stream()?;
/// # let tensor: versioned::Dlpack = stream.export_dlpack(stream.zeroed::<f32>(3)?, &[3], None)?;
/// # // SAFETY: the tensor is a buffer of this device, which nothing else uses.
/// # let tensor = unsafe { Imported::new(&stream, tensor)? };
/// let elements = tensor.view::<f32>()?;
/// drop(tensor);
/// stream.download(elements)?;
/// # Ok(()) }
/// ```
pub struct Imported<'s> {
    stream: &'s Stream,
    data_type: DLDataType,
    shape: Vec<usize>,
    /// In elements. That of a dimension with at most one element is any number.
    strides: Vec<i64>,
    /// Of the first element, which has the lowest address.
    address: u64,
    /// Elements from the first to the last, with gaps.
    span: usize,
    is_freed_in_order: bool,
    /// Gives the tensor back when it is dropped.
    owner: ManuallyDrop<AllocationDeleter>,
}

impl<'s> Imported<'s> {
    /// Takes a tensor over, for reading in a stream of the tensor's device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the tensor is not on the stream's device, and [`Error::Dlpack`] if a stride is
    /// negative, or the description is no tensor's. The tensor is given back.
    ///
    /// # Safety
    /// Until the result is dropped, the tensor's elements are initialised memory of the device that it names. Every
    /// write to them is ordered with the stream's work: on a GPU, the producer was given
    /// [`Stream::dlpack_stream`], or its work was waited for.
    pub unsafe fn new<M: ManagedTensorBase>(
        stream: &'s Stream,
        tensor: Managed<M>,
    ) -> Result<Imported<'s>> {
        let described = tensor.validate().map_err(wrong)?;
        is_on_device_of(stream, described.device())?;
        let strides = described.strides_or_compact().map_err(wrong)?.into_owned();
        // `validate` has refused negative extents.
        let shape: Vec<usize> = described.shape().iter().map(|&it| it as usize).collect();
        let data_type = described.dtype();
        let span = span(&shape, &strides).map_err(|found| {
            let asked = format!("an import of a {}", in_words(data_type, &shape, &strides));
            let fix = "copy it to a contiguous tensor in the library that owns it";
            refused(asked, found, fix)
        })?;
        let address = address(&described)?;
        Ok(Imported {
            stream,
            data_type,
            shape,
            strides,
            address,
            span,
            is_freed_in_order: false,
            owner: ManuallyDrop::new(tensor.into_deleter()),
        })
    }

    /// The same tensor. Dropping it gives it back to its owner without waiting for the stream.
    ///
    /// It is for streams of the owner. An operation on tensors of PyTorch that runs in PyTorch's current stream
    /// ([`Stream::from_raw`]) need not wait, as PyTorch uses the memory again in the same stream.
    ///
    /// # Safety
    /// After the tensor is given back, its memory is neither used nor freed before the stream's work is done.
    pub unsafe fn freed_in_order(mut self) -> Self {
        self.is_freed_in_order = true;
        self
    }

    /// The stream that may use the elements. Its device is the tensor's.
    pub fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// The type of the elements. [`Element::DATA_TYPE`] is that of a Rust type.
    pub fn data_type(&self) -> DLDataType {
        self.data_type
    }

    /// The extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements from one index of a dimension to the next. If the dimension has at most one element, it is any number.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// All elements, in the order of their addresses.
    ///
    /// # Errors
    /// [`Error::Dlpack`] if the elements are not of type `T`, or not consecutive; [`Error::BadPointer`] if they are not
    /// aligned.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>> {
        self.expect_consecutive::<T>()?;
        // SAFETY: the tensor has every element of the span.
        unsafe { self.span() }
    }

    /// The memory from the first element to the last, with what lies between them. Element (i, j, …) is at
    /// i·[`strides`](Self::strides)`[0]` + j·`strides()[1]` + ….
    ///
    /// # Errors
    /// [`Error::Dlpack`] if the elements are not of type `T`; [`Error::BadPointer`] if they are not aligned.
    ///
    /// # Safety
    /// Only elements of the tensor are read. Others may have no value, and others may write them meanwhile.
    pub unsafe fn span<T: Element>(&self) -> Result<View<'_, T>> {
        self.expect_type::<T>()?;
        // SAFETY: promised to `new` of the elements of the tensor, and to this function that no others are read. Only the
        // stream may use the view, and `drop` waits for it.
        let view = unsafe { View::from_raw(self.stream.device(), self.address, self.span)? };
        Ok(view.bound_to(Binding::Stream {
            stream: self.stream,
            is_own: false,
        }))
    }

    fn expect_type<T: Element>(&self) -> Result<()> {
        if self.data_type == T::DATA_TYPE {
            return Ok(());
        }
        Err(refused(
            format!("a view of {}", name(T::DATA_TYPE)),
            format!("this is a {self}"),
            "ask for its own type, or convert it in the library that owns it",
        ))
    }

    fn expect_consecutive<T: Element>(&self) -> Result<()> {
        if are_consecutive(&self.shape, &self.strides) {
            return Ok(());
        }
        Err(refused(
            format!("a view of {}", name(T::DATA_TYPE)),
            format!("the elements of this {self} are not consecutive"),
            "use its `span` with the strides, or copy it to a contiguous tensor in the library that owns it",
        ))
    }
}

impl Drop for Imported<'_> {
    fn drop(&mut self) {
        let must_wait = !self.is_freed_in_order && self.stream.device().backend() == Backend::Gpu;
        // Earlier work of a stream that another library captures may be running. A capture of this crate has a stream of
        // its own, which runs nothing. Other errors are an earlier kernel's, after which nothing runs either.
        if must_wait
            && let Err(Error::Capturing { .. }) = self.stream.synchronize()
            && self.stream.capture().is_none()
        {
            return;
        }
        // SAFETY: dropped once, and not used later.
        unsafe { ManuallyDrop::drop(&mut self.owner) };
    }
}

/// The tensor in words, for messages: `DLPack tensor of f32 with shape (2, 3) and strides (3, 1)`.
impl fmt::Display for Imported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_words(self.data_type, &self.shape, &self.strides))
    }
}

impl fmt::Debug for Imported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} on {}", self.stream.device().name())
    }
}

/// A tensor of another library, for reading and writing in one stream; see [`Imported`].
#[derive(Debug)]
pub struct ImportedMut<'s>(Imported<'s>);

impl<'s> ImportedMut<'s> {
    /// Takes a tensor over, for writing in a stream of the tensor's device.
    ///
    /// # Errors
    /// As [`Imported::new`], and [`Error::Dlpack`] if the tensor's owner allows no writes. The older interface does not
    /// say whether it does.
    ///
    /// # Safety
    /// As [`Imported::new`], and the elements may be written. Every other access to them is ordered with the stream's
    /// work.
    pub unsafe fn new<M: ManagedTensorBase>(
        stream: &'s Stream,
        tensor: Managed<M>,
    ) -> Result<ImportedMut<'s>> {
        let is_read_only = tensor.flags().contains(DlpackFlags::READ_ONLY);
        // SAFETY: the caller's promise.
        let tensor = unsafe { Imported::new(stream, tensor)? };
        if is_read_only {
            let found = format!("the owner of this {tensor} made it read-only");
            let fix = "import it for reading by `Imported`, or write to a copy of it";
            return Err(refused("an import for writing".to_string(), found, fix));
        }
        Ok(ImportedMut(tensor))
    }

    /// The same tensor. Dropping it gives it back to its owner without waiting for the stream; see
    /// [`Imported::freed_in_order`].
    ///
    /// # Safety
    /// As [`Imported::freed_in_order`].
    pub unsafe fn freed_in_order(self) -> Self {
        // SAFETY: the caller's promise.
        ImportedMut(unsafe { self.0.freed_in_order() })
    }

    /// All elements, in the order of their addresses, for writing.
    ///
    /// # Errors
    /// As [`Imported::view`].
    pub fn view_mut<T: Element>(&mut self) -> Result<ViewMut<'_, T>> {
        self.expect_consecutive::<T>()?;
        // SAFETY: the tensor has every element of the span.
        unsafe { self.span_mut() }
    }

    /// The memory from the first element to the last, with what lies between them, for writing.
    ///
    /// # Errors
    /// As [`Imported::span`].
    ///
    /// # Safety
    /// Only elements of the tensor are read and written.
    pub unsafe fn span_mut<T: Element>(&mut self) -> Result<ViewMut<'_, T>> {
        self.expect_type::<T>()?;
        let Imported {
            stream,
            address,
            span,
            ..
        } = self.0;
        // SAFETY: promised to `new` of the elements of the tensor, and to this function that no others are used. The view
        // borrows the tensor exclusively. Only the stream may use the view, and `drop` waits for it.
        let view = unsafe { ViewMut::from_raw(stream.device(), address, span)? };
        Ok(view.bound_to(Binding::Stream {
            stream,
            is_own: false,
        }))
    }
}

impl<'s> Deref for ImportedMut<'s> {
    type Target = Imported<'s>;
    fn deref(&self) -> &Imported<'s> {
        &self.0
    }
}

fn in_words(data_type: DLDataType, shape: &[usize], strides: &[i64]) -> String {
    format!(
        "DLPack tensor of {} with shape {} and strides {}",
        name(data_type),
        Tuple(shape),
        Tuple(strides)
    )
}

/// Returns an error unless the stream's work can use memory of a device.
fn is_on_device_of(stream: &Stream, found: DLDevice) -> Result<()> {
    let expected = stream.device();
    let is_same = match (expected.place(), found.device_type) {
        (Place::Cpu, kind) => matches!(kind, DLDeviceType::CPU | DLDeviceType::CUDAHOST),
        (Place::Gpu(gpu), DLDeviceType::CUDA) => {
            usize::try_from(found.device_id) == Ok(gpu.context.ordinal())
        }
        (Place::Gpu(_), _) => false,
    };
    if is_same {
        return Ok(());
    }
    let id = found.device_id;
    Err(Error::WrongDevice {
        what: "the DLPack tensor".to_string(),
        found: match found.device_type {
            DLDeviceType::CPU => "cpu".to_string(),
            DLDeviceType::CUDA => format!("gpu {id}"),
            DLDeviceType::CUDAHOST => "cpu, in pinned memory".to_string(),
            DLDeviceType::CUDAMANAGED => "all GPUs, in managed memory".to_string(),
            DLDeviceType(kind) => format!("device {id} of DLPack's type {kind}"),
        },
        expected: expected.name().to_string(),
    })
}

/// The address of a tensor's first element. It is null if the data is.
fn address(tensor: &TensorRef<'_>) -> Result<u64> {
    let data = tensor.data_ptr();
    let offset = match data.is_null() {
        true => 0,
        false => tensor.byte_offset(),
    };
    // The CPU backend makes pointers of addresses.
    let data = data.expose_provenance() as u64;
    data.checked_add(offset).ok_or_else(|| {
        let found = format!("{offset} bytes after address {data:#x} there is no memory");
        let fix = "correct the byte offset in the library that made it";
        refused("an import of a DLPack tensor".to_string(), found, fix)
    })
}

fn wrong(error: dlpark::tensor::Error) -> Error {
    refused(
        "an import of a DLPack tensor".to_string(),
        format!("its description is wrong: {error}"),
        "correct it in the library that made it",
    )
}

fn refused(asked: String, found: String, fix: &'static str) -> Error {
    Error::Dlpack { asked, found, fix }
}
