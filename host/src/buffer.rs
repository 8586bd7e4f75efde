//! Typed memory on a device, and views of parts of it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use cutlet_device::DeviceData;
use cutlet_simt::LiveMemory;

use crate::allocation::{ALIGNMENT, Allocation};
use crate::binding::Binding;
use crate::device::{Device, Place};
use crate::order::{Access, Caller, Tracked, Uses};
use crate::{Error, Result, Stream};

/// `len` elements of `T` on a device. A [`Stream`](crate::Stream) makes it: `zeroed`, `upload`.
///
/// On the CPU backend this is host memory.
///
/// Dropping a buffer does not wait. Its memory is freed after the work that uses it: that of the stream that made it, and
/// of every stream that a call has used it in. Later buffers reuse it. A GPU without memory pools waits for the work.
/// So does the drop of memory that was allocated in a stream whose work was being recorded.
///
/// A buffer begins at a multiple of 256 bytes. Elements that need more do not compile:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, cutlet_device::DeviceData)]
/// #[repr(C, align(512))]
/// struct Page([u8; 512]);
///
/// let stream = cutlet_host::Device::cpu().stream().unwrap();
/// stream.zeroed::<Page>(1).unwrap();
/// ```
pub struct Buffer<T: DeviceData> {
    memory: Arc<Allocation>,
    len: usize,
    elements: PhantomData<T>,
    uses: Uses,
}

impl<T: DeviceData> Buffer<T> {
    /// Memory for `len` elements and for work of the stream, uninitialised. On the CPU it has zeros, but a kernel may not
    /// read them.
    pub(crate) fn allocate(stream: &Stream, len: usize) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(stream.device(), len)?;
        Allocation::new(stream, bytes).map(|memory| Self::of(memory, len))
    }

    /// As [`allocate`](Self::allocate), for work of replays, which are in no certain streams.
    pub(crate) fn allocate_apart(device: &Device, len: usize) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(device, len)?;
        Allocation::apart(device, bytes).map(|memory| Self::of(memory, len))
    }

    fn of(memory: Allocation, len: usize) -> Self {
        const { elements_fit::<T>() }
        Buffer {
            memory: Arc::new(memory),
            len,
            elements: PhantomData,
            uses: Uses::default(),
        }
    }

    /// The device that the memory is on.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory, which the buffer owns.
    #[cfg(feature = "dlpack")]
    pub(crate) fn memory(&self) -> &Allocation {
        &self.memory
    }

    fn binding(&self) -> Binding<'_> {
        Binding::Device {
            device: self.device(),
            memory: Some(&self.memory),
            uses: Tracked::of(&self.uses),
        }
    }

    /// A view of all elements, for reading.
    pub fn view(&self) -> View<'_, T> {
        View {
            binding: self.binding(),
            address: self.memory.address(),
            len: self.len,
            elements: PhantomData,
        }
    }

    /// A view of all elements, for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut {
            binding: self.binding(),
            address: self.memory.address(),
            len: self.len,
            elements: PhantomData,
        }
    }

    /// A view of the elements of `range`, for reading.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let x = stream.upload(&[1, 2, 3, 4])?;
    /// assert_eq!(stream.download(x.slice(1..3)?)?, [2, 3]);
    /// assert!(x.slice(3..5).is_err());
    /// # Ok(()) }
    /// ```
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        self.view().slice(range)
    }

    /// A view of the elements of `range`, for writing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        self.view_mut().into_slice(range)
    }
}

impl<T: DeviceData> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "Buffer", self.view())
    }
}

/// Consecutive elements on a device, for reading: a shared slice of a [`Buffer`] or of memory with
/// another owner.
pub struct View<'a, T: DeviceData> {
    binding: Binding<'a>,
    address: u64,
    len: usize,
    elements: PhantomData<&'a [T]>,
}

impl<'a, T: DeviceData> View<'a, T> {
    /// Borrows `len` elements at `address` from another owner. On a GPU the address is a
    /// `CUdeviceptr`, such as a tensor's `data_ptr()`; on the CPU backend it is that of a host pointer whose
    /// provenance was exposed, as `as u64` does.
    ///
    /// # Errors
    /// [`Error::BadPointer`] if the address is null or not aligned for `T`.
    ///
    /// # Safety
    /// For `'a`, and until the work that was enqueued with the view is done, the elements are initialised memory
    /// of `device`, and every write to them is ordered with that work. On a GPU, work is done some time after its
    /// call.
    pub unsafe fn from_raw(device: &'a Device, address: u64, len: usize) -> Result<Self> {
        usable::<T>(address, len)?;
        is_borrowed::<T>(device, address, len);
        // SAFETY: the caller's promise, and the address is aligned.
        Ok(unsafe { Self::of_allocation(device, address, len) })
    }

    /// The elements at an address that an allocation returned.
    ///
    /// # Safety
    /// As [`from_raw`](Self::from_raw), and the address is aligned for `T`.
    pub(crate) const unsafe fn of_allocation(device: &'a Device, address: u64, len: usize) -> Self {
        const { elements_fit::<T>() }
        View {
            binding: Binding::Device {
                device,
                memory: None,
                uses: Tracked::NONE,
            },
            address,
            len,
            elements: PhantomData,
        }
    }

    /// The same elements, which may be used as `binding` says.
    pub(crate) fn bound_to(self, binding: Binding<'a>) -> Self {
        View { binding, ..self }
    }

    /// The same bytes as elements of another type of the same size and alignment.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let x = stream.upload(&[1.0f32, -2.0])?;
    /// assert_eq!(stream.download(x.view().reinterpret::<u32>())?, [0x3F80_0000, 0xC000_0000]);
    /// # Ok(()) }
    /// ```
    pub fn reinterpret<U: DeviceData>(self) -> View<'a, U> {
        const {
            assert!(
                size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>(),
                "the types have the same size and alignment"
            );
        }
        View {
            binding: self.binding,
            address: self.address,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// The device that the memory is on.
    pub fn device(&self) -> &'a Device {
        self.binding.device()
    }

    /// Returns an error unless work in `stream` may use the elements, which `what` names in the error.
    ///
    /// Copies, fills and launches check it themselves. It is for code that passes on the
    /// [`address`](Self::address). When that code enqueues work, it also calls [`use_in`](Self::use_in).
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if they are on another device, [`Error::WrongStream`] if they are bound to another
    /// stream, as a [`Scratch`](crate::Scratch) is.
    pub fn expect_usable_in(&self, stream: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        self.binding.expect(stream, what)
    }

    /// Says that work of `operation`, which is about to be enqueued in `stream`, reads the elements: their memory is
    /// not freed before, and a graph that is being recorded keeps it. An error names them `operation: operand`.
    ///
    /// Copies, fills and launches say it themselves. Code that passes on the [`address`](Self::address) must, because a
    /// buffer may be dropped while its work is under way.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let x = first.zeroed::<f32>(4)?;
    /// if cfg!(debug_assertions) {
    ///     // `sum: x (4 × f32) is read in a stream, after a fill (…) wrote it in another one that …`
    ///     assert!(x.view().use_in(&second, "sum", "x").is_err());
    /// }
    /// second.wait_for(&first)?;
    /// x.view().use_in(&second, "sum", "x")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unordered`] if another stream writes the elements, and nothing orders this one after it: builds with debug
    /// assertions look for it. [`Error::Capture`] if the stream records an [`OwnedGraph`](crate::OwnedGraph) and the
    /// elements are not those of a buffer.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn use_in(&self, stream: &Stream, operation: &'static str, operand: &str) -> Result<()> {
        let access = Access::read(self, Caller::call(operation));
        self.binding
            .note(stream, access, || format!("{operation}: {operand}"))
    }

    /// [`expect_usable_in`](Self::expect_usable_in) and [`use_in`](Self::use_in), for a call of this crate.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn note_read(
        &self,
        stream: &Stream,
        by: Caller,
        what: impl Fn() -> String,
    ) -> Result<()> {
        self.binding.expect(stream, &what)?;
        self.binding.note(stream, Access::read(self, by), what)
    }

    /// The same elements, for uses that need no order among each other: kernels that use some of the elements, and not
    /// those that another one writes, or that change elements atomically.
    ///
    /// [`Error::Unordered`] then needs another use that is not relaxed, of all of the elements. Builds without debug
    /// assertions do not look for it, and return the view as it is.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let mut x = first.zeroed::<f32>(4)?;
    /// second.wait_for(&first)?;
    /// // The first stream's kernel writes even elements, and the second one's reads odd ones.
    /// x.view_mut().relaxed().use_in(&first, "scale_even", "x")?;
    /// x.view().relaxed().use_in(&second, "sum_odd", "x")?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn relaxed(self) -> Self {
        View {
            binding: self.binding.relaxed(),
            ..self
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element on the device. Whoever enqueues work with it says so by [`use_in`](Self::use_in).
    pub fn address(&self) -> u64 {
        self.address
    }

    /// A view of the elements of `range`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<View<'a, T>> {
        let range = within(range, self.len)?;
        Ok(View {
            binding: self.binding,
            address: self.address + (range.start * size_of::<T>()) as u64,
            len: range.len(),
            elements: PhantomData,
        })
    }

    /// The same memory as elements of another type, usable in the same streams. Bytes after the last whole element are
    /// left out.
    ///
    /// # Errors
    /// [`Error::BadPointer`] if the address is not aligned for `U`.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let x = stream.upload(&[1i64, -1])?;
    /// assert_eq!(stream.download(x.view().cast::<i32>()?)?, [1, 0, -1, -1]);
    /// # Ok(()) }
    /// ```
    pub fn cast<U: DeviceData>(self) -> Result<View<'a, U>> {
        Ok(View {
            binding: self.binding,
            address: self.address,
            len: cast_len::<T, U>(self.address, self.len)?,
            elements: PhantomData,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: DeviceData> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: DeviceData> Copy for View<'_, T> {}

impl<T: DeviceData> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "View", *self)
    }
}

/// Consecutive elements on a device, for writing: an exclusive slice of a [`Buffer`] or of memory
/// with another owner.
pub struct ViewMut<'a, T: DeviceData> {
    binding: Binding<'a>,
    address: u64,
    len: usize,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T: DeviceData> ViewMut<'a, T> {
    /// Borrows `len` elements at `address` for writing; see [`View::from_raw`].
    ///
    /// # Errors
    /// [`Error::BadPointer`] if the address is null or not aligned for `T`.
    ///
    /// # Safety
    /// For `'a`, and until the work that was enqueued with the view is done, the elements are initialised memory
    /// of `device`, and every other access to them is ordered with that work.
    pub unsafe fn from_raw(device: &'a Device, address: u64, len: usize) -> Result<Self> {
        usable::<T>(address, len)?;
        is_borrowed::<T>(device, address, len);
        // SAFETY: the caller's promise, and the address is aligned.
        Ok(unsafe { Self::of_allocation(device, address, len) })
    }

    /// The elements at an address that an allocation returned.
    ///
    /// # Safety
    /// As [`from_raw`](Self::from_raw), and the address is aligned for `T`.
    pub(crate) const unsafe fn of_allocation(device: &'a Device, address: u64, len: usize) -> Self {
        const { elements_fit::<T>() }
        ViewMut {
            binding: Binding::Device {
                device,
                memory: None,
                uses: Tracked::NONE,
            },
            address,
            len,
            elements: PhantomData,
        }
    }

    /// The same elements, which may be used as `binding` says.
    pub(crate) fn bound_to(self, binding: Binding<'a>) -> Self {
        ViewMut { binding, ..self }
    }

    /// The device that the memory is on.
    pub fn device(&self) -> &'a Device {
        self.binding.device()
    }

    /// Returns an error unless work in `stream` may use the elements, which `what` names in the error.
    ///
    /// Copies, fills and launches check it themselves. It is for code that passes on the
    /// [`address`](Self::address). When that code enqueues work, it also calls [`use_in`](Self::use_in).
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if they are on another device, [`Error::WrongStream`] if they are bound to another
    /// stream, as a [`Scratch`](crate::Scratch) is.
    pub fn expect_usable_in(&self, stream: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        self.binding.expect(stream, what)
    }

    /// Says that work of `operation`, which is about to be enqueued in `stream`, writes the elements: see
    /// [`View::use_in`].
    ///
    /// # Errors
    /// [`Error::Unordered`] if another stream reads or writes the elements, and nothing orders this one after it.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn use_in(&self, stream: &Stream, operation: &'static str, operand: &str) -> Result<()> {
        let access = Access::write(self, Caller::call(operation));
        self.binding
            .note(stream, access, || format!("{operation}: {operand}"))
    }

    /// [`expect_usable_in`](Self::expect_usable_in) and [`use_in`](Self::use_in), for a call of this crate.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn note_write(
        &self,
        stream: &Stream,
        by: Caller,
        what: impl Fn() -> String,
    ) -> Result<()> {
        self.binding.expect(stream, &what)?;
        self.binding.note(stream, Access::write(self, by), what)
    }

    /// The same elements, for uses that need no order among each other: see [`View::relaxed`].
    #[must_use]
    pub fn relaxed(self) -> Self {
        ViewMut {
            binding: self.binding.relaxed(),
            ..self
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element on the device. Whoever enqueues work with it says so by [`use_in`](Self::use_in).
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The same elements, for reading.
    pub fn view(&self) -> View<'_, T> {
        View {
            binding: self.binding,
            address: self.address,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// The same elements, for writing, with a shorter lifetime.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut {
            binding: self.binding,
            address: self.address,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// A view of the elements of `range`, for writing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        self.reborrow().into_slice(range)
    }

    /// Splits the view in two: the elements before `middle`, and the others.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are fewer than `middle` elements.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let mut x = stream.zeroed::<u32>(4)?;
    /// let (mut low, mut high) = x.view_mut().split_at(1)?;
    /// stream.copy_from_host(&[7], &mut low)?;
    /// stream.fill_bytes(&mut high, 0xff)?;
    /// assert_eq!(stream.download(&x)?, [7, u32::MAX, u32::MAX, u32::MAX]);
    /// # Ok(()) }
    /// ```
    pub fn split_at(self, middle: usize) -> Result<(ViewMut<'a, T>, ViewMut<'a, T>)> {
        let range = within(middle.., self.len)?;
        let part = |start: usize, len: usize| ViewMut {
            binding: self.binding,
            address: self.address + (start * size_of::<T>()) as u64,
            len,
            elements: PhantomData,
        };
        Ok((part(0, middle), part(middle, range.len())))
    }

    /// The same memory as elements of another type: see [`View::cast`].
    ///
    /// # Errors
    /// [`Error::BadPointer`] if the address is not aligned for `U`.
    pub fn cast<U: DeviceData>(self) -> Result<ViewMut<'a, U>> {
        Ok(ViewMut {
            binding: self.binding,
            address: self.address,
            len: cast_len::<T, U>(self.address, self.len)?,
            elements: PhantomData,
        })
    }

    fn into_slice(self, range: impl RangeBounds<usize>) -> Result<ViewMut<'a, T>> {
        let range = within(range, self.len)?;
        Ok(ViewMut {
            address: self.address + (range.start * size_of::<T>()) as u64,
            len: range.len(),
            ..self
        })
    }
}

impl<T: DeviceData> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "ViewMut", self.view())
    }
}

/// Memory that a device can read: `&Buffer<T>`, a [`View`], or a reference to a view.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a device can read",
    label = "expected `&Buffer<T>` or a `View<T>`"
)]
pub trait IntoView<'a> {
    /// The elements' type.
    type Element: DeviceData;
    /// A view of the elements, for reading.
    fn into_view(self) -> View<'a, Self::Element>;
}

impl<'a, T: DeviceData> IntoView<'a> for &'a Buffer<T> {
    type Element = T;
    fn into_view(self) -> View<'a, T> {
        self.view()
    }
}

impl<'a, T: DeviceData> IntoView<'a> for View<'a, T> {
    type Element = T;
    fn into_view(self) -> View<'a, T> {
        self
    }
}

impl<'a, T: DeviceData> IntoView<'a> for &View<'a, T> {
    type Element = T;
    fn into_view(self) -> View<'a, T> {
        *self
    }
}

impl<'a, T: DeviceData> IntoView<'a> for &'a ViewMut<'_, T> {
    type Element = T;
    fn into_view(self) -> View<'a, T> {
        self.view()
    }
}

/// Memory that a device can write: `&mut Buffer<T>`, a [`ViewMut`], or a `&mut` to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a device can write",
    label = "expected `&mut Buffer<T>` or a `ViewMut<T>`"
)]
pub trait IntoViewMut<'a> {
    /// The elements' type.
    type Element: DeviceData;
    /// A view of the elements, for writing.
    fn into_view_mut(self) -> ViewMut<'a, Self::Element>;
}

impl<'a, T: DeviceData> IntoViewMut<'a> for &'a mut Buffer<T> {
    type Element = T;
    fn into_view_mut(self) -> ViewMut<'a, T> {
        self.view_mut()
    }
}

impl<'a, T: DeviceData> IntoViewMut<'a> for ViewMut<'a, T> {
    type Element = T;
    fn into_view_mut(self) -> ViewMut<'a, T> {
        self
    }
}

impl<'a, T: DeviceData> IntoViewMut<'a> for &'a mut ViewMut<'_, T> {
    type Element = T;
    fn into_view_mut(self) -> ViewMut<'a, T> {
        self.reborrow()
    }
}

/// Stops the build if `T` is not plain data, or needs a larger alignment than buffers have.
pub(crate) const fn elements_fit<T: DeviceData>() {
    let () = T::CHECK;
    assert!(
        align_of::<T>() <= ALIGNMENT,
        "elements of a buffer can have an alignment of at most 256 bytes"
    );
}

fn bytes_of<T>(device: &Device, len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>())
        .ok_or_else(|| too_large(device, usize::MAX))
}

pub(crate) fn too_large(device: &Device, bytes: usize) -> Error {
    let found = match device.memory() {
        Ok(Some((free, total))) => format!("{free} of {total} bytes are free"),
        _ => "there is less memory".to_string(),
    };
    Error::OutOfMemory {
        bytes,
        device: device.name().to_string(),
        found,
    }
}

fn usable<T: DeviceData>(address: u64, len: usize) -> Result<()> {
    const { elements_fit::<T>() }
    let alignment = align_of::<T>();
    let bytes = len.saturating_mul(size_of::<T>());
    let found = if address == 0 && bytes != 0 {
        "it is null"
    } else if address.checked_add(bytes as u64).is_none() || bytes == usize::MAX {
        "the elements reach past the end of the address space"
    } else if !address.is_multiple_of(alignment as u64) {
        "it is not aligned"
    } else {
        return Ok(());
    };
    Err(Error::BadPointer {
        address,
        alignment,
        found,
    })
}

/// The whole elements of `U` in `len` elements of `T`, whose bytes are any type's: device data has no padding, and every
/// bit pattern is a value.
fn cast_len<T: DeviceData, U: DeviceData>(address: u64, len: usize) -> Result<usize> {
    const {
        assert!(
            size_of::<U>() > 0,
            "memory is cast to elements that have bytes"
        )
    }
    let len = len * size_of::<T>() / size_of::<U>();
    usable::<U>(address, len)?;
    Ok(len)
}

/// Lets kernels on the CPU use memory of another owner. On a GPU, the owner may be a library that orders work, too.
fn is_borrowed<T>(device: &Device, address: u64, len: usize) {
    match device.place() {
        Place::Cpu => LiveMemory::borrow(address as usize, len * size_of::<T>()),
        Place::Gpu(_) => device.order().share(),
    }
}

fn within(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start > end || end > len {
        return Err(Error::OutOfRange { start, end, len });
    }
    Ok(start..end)
}

fn describe<T: DeviceData>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    view: View<'_, T>,
) -> fmt::Result {
    let element = std::any::type_name::<T>();
    write!(
        f,
        "{what}<{element}>({} on {})",
        view.len,
        view.device().name()
    )
}
