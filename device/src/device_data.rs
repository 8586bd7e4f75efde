//! What may cross from host to kernel by value: plain data with the same bytes on both sides.

use core::marker::PhantomData;

/// Plain data that a kernel takes by value or that fills a device buffer.
///
/// The primitive numbers, the `half` types, arrays and [`PhantomData`] are device data; the device
/// pointers of this crate are too. For a struct of your own, derive it:
///
/// ```
/// use cutlet_device::DeviceData;
///
/// #[derive(Clone, Copy, DeviceData)]
/// #[repr(C)]
/// struct Problem {
///     rows: u32,
///     columns: u32,
///     scale: f32,
/// }
/// assert_eq!(Problem::PARAM_ALIGN, 4);
/// ```
///
/// # Safety
/// The type has the same size, alignment and field offsets on the host and on `nvptx64`, has no
/// padding, holds no reference to host memory, and every bit pattern of its size is a value of it
/// (a device buffer holds whatever a kernel wrote there).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain device data, so a kernel cannot take it",
    label = "a kernel argument must be plain data with the same bytes on host and device",
    note = "numbers, `half` types, arrays of these, `Global<T>` and `GlobalMut<T>` are plain device data",
    note = "for your own `#[repr(C)]` struct: `#[derive(Clone, Copy, cutlet_device::DeviceData)]`"
)]
pub unsafe trait DeviceData: Copy + Send + Sync + 'static {
    /// Alignment in bytes that the PTX parameter of this type must have, where that is more than
    /// Rust's alignment of it: 64 for a tensor map and for structs that hold one.
    const PARAM_ALIGN: usize = align_of::<Self>();

    /// Whether a kernel takes it only where the launch put it, `#[grid_constant]`: a tensor map and structs that hold
    /// one, as a copy is no place that TMA reads.
    const IN_PLACE: bool = false;

    /// Evaluated for every kernel argument, and for what a device pointer or a buffer is made for, on the host too: a
    /// layout that is not plain data stops the build here.
    const CHECK: () = ();
}

macro_rules! plain_numbers {
    ($($number:ty),*) => {$(
        // SAFETY: a primitive number (or a transparent wrapper of one) of the same size and
        // alignment on 64-bit hosts and on nvptx64, without padding; every bit pattern is a value.
        #[diagnostic::do_not_recommend]
        unsafe impl DeviceData for $number {}
    )*};
}

plain_numbers!(
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    half::f16,
    half::bf16
);

#[cfg(not(target_pointer_width = "64"))]
compile_error!("kernels have 64-bit addresses: cutlet-device needs a 64-bit host");

// SAFETY: an array has its elements' bytes, one after the other, and nothing else.
#[diagnostic::do_not_recommend]
unsafe impl<T: DeviceData, const N: usize> DeviceData for [T; N] {
    const PARAM_ALIGN: usize = T::PARAM_ALIGN;
    const IN_PLACE: bool = T::IN_PLACE;
    const CHECK: () = {
        let () = T::CHECK;
        assert!(
            size_of::<T>().is_multiple_of(T::PARAM_ALIGN),
            "an array of this element type would leave its elements unaligned in a kernel parameter"
        );
    };
}

// SAFETY: no bytes at all.
#[diagnostic::do_not_recommend]
unsafe impl<T: Copy + Send + Sync + 'static> DeviceData for PhantomData<T> {}

/// For the macros: stops the build where an argument's type is not plain data, and says whether a kernel may take a
/// copy of it.
#[doc(hidden)]
pub const fn __check_argument<T: DeviceData>() -> bool {
    let () = T::CHECK;
    !T::IN_PLACE
}
