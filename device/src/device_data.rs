//! Plain data with the same bytes on host and device, which a launch passes by value.

use core::marker::PhantomData;

/// Plain data that a kernel takes by value, or of which a device buffer consists.
///
/// Primitive numbers, the `half` types, arrays, [`PhantomData`] and the device pointers of this crate are device data.
/// For a struct of your own, derive it:
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
/// The type has the same size, alignment and field offsets on the host and on `nvptx64`. It has no padding and no
/// reference to host memory. Every bit pattern of its size is a value, because a device buffer holds whatever a kernel
/// wrote.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain device data, so a kernel cannot take it",
    label = "a kernel argument must be plain data with the same bytes on host and device",
    note = "numbers, `half` types, arrays of these, `Global<T>` and `GlobalMut<T>` are plain device data",
    note = "a `bool` can be a kernel's argument, but memory may hold any byte: in a struct or a buffer, use `u8` or `u32`",
    note = "for your own `#[repr(C)]` struct: `#[derive(Clone, Copy, cutlet_device::DeviceData)]`"
)]
pub unsafe trait DeviceData: Copy + Send + Sync + 'static {
    /// The alignment of the PTX parameter in bytes, if it is more than Rust's alignment: 64 for a tensor map and for
    /// structs that contain one.
    const PARAM_ALIGN: usize = align_of::<Self>();

    /// Whether a kernel takes it only in place, by `#[grid_constant]`: a tensor map and structs that contain one,
    /// because TMA cannot read a copy.
    const IN_PLACE: bool = false;

    /// Evaluated for every type of kernel arguments, device pointers and buffers, on the host too. It stops the build
    /// if the type's layout is not plain data.
    const CHECK: () = ();

    /// What the build writes of a parameter of this type into the PTX, for hosts that have nothing else of a kernel:
    /// Python. 0 is data without a name there. A number is 1000 · class + bits, of the classes 1 unsigned, 2 signed,
    /// 3 IEEE floating point, 4 bf16 and 5 bool. A pointer to elements to read adds 10,000 to their code, and one to
    /// elements to write 20,000.
    #[doc(hidden)]
    const TYPE_CODE: u32 = 0;
}

macro_rules! plain_numbers {
    ($($number:ty = $code:literal),*) => {$(
        // SAFETY: a primitive number, or a transparent wrapper of one, without padding. Size and alignment are the same
        // on 64-bit hosts and on nvptx64, and every bit pattern is a value.
        #[diagnostic::do_not_recommend]
        unsafe impl DeviceData for $number {
            const TYPE_CODE: u32 = $code;
        }
    )*};
}

plain_numbers!(
    u8 = 1008,
    u16 = 1016,
    u32 = 1032,
    u64 = 1064,
    usize = 1064,
    i8 = 2008,
    i16 = 2016,
    i32 = 2032,
    i64 = 2064,
    isize = 2064,
    f32 = 3032,
    f64 = 3064,
    half::f16 = 3016,
    half::bf16 = 4016
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
            "the elements of an array of this type would not be aligned in a kernel parameter"
        );
    };
}

// SAFETY: no bytes at all.
#[diagnostic::do_not_recommend]
unsafe impl<T: Copy + Send + Sync + 'static> DeviceData for PhantomData<T> {}
