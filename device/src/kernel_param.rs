//! Types of kernel parameters: plain device data, and `bool`.

use crate::DeviceData;

/// A type that a kernel takes by value or in place: any [`DeviceData`], and `bool`.
///
/// A launch passes a value of exactly this type, so a `bool` is `true` or `false`. It cannot be an element of a buffer
/// or a field of device data, because memory may hold any byte.
///
/// ```
/// use cutlet_device::{GlobalMut, kernel, thread_idx};
///
/// /// # Safety
/// /// `x` has 32 elements.
/// #[kernel(threads = 32)]
/// unsafe fn negate(x: GlobalMut<f32>, doubles: bool) {
///     let at = i64::from(thread_idx().get());
///     let factor = if doubles { -2.0 } else { -1.0 };
///     // SAFETY: as promised by the caller.
///     unsafe { x.store(at, factor * x.load(at)) };
/// }
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "negate", grid: [1; 3], block: [32, 1, 1], cluster: 1, shared_bytes: 0,
/// #     overlap_previous: false,
/// # };
/// # let mut values = [3.0f32; 32];
/// # let x = GlobalMut::from_ptr(values.as_mut_ptr());
/// # cutlet_simt::launch(&spec, &|| unsafe { negate.body().unwrap()((x, true)) }).unwrap();
/// # assert_eq!(values, [-6.0; 32]);
/// ```
///
/// # Safety
/// The type has the same size, alignment and field offsets on the host and on `nvptx64`. It has no padding and no
/// reference to host memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain device data, so a kernel cannot take it",
    label = "a kernel argument must be plain data with the same bytes on host and device",
    note = "numbers, `half` types, arrays of these, `bool`, `Global<T>` and `GlobalMut<T>` can be arguments",
    note = "for your own `#[repr(C)]` struct: `#[derive(Clone, Copy, cutlet_device::DeviceData)]`"
)]
pub unsafe trait KernelParam: Copy + Send + Sync + 'static {
    /// The alignment of the PTX parameter in bytes.
    #[doc(hidden)]
    const ENTRY_ALIGN: usize;

    /// Whether a kernel may take a copy of it. Evaluating it stops the build if the type's layout is not plain data.
    #[doc(hidden)]
    const MAY_BE_COPIED: bool;

    /// As [`DeviceData::TYPE_CODE`]. 30,000 is data that a kernel takes in place alone: a tensor map.
    #[doc(hidden)]
    const ENTRY_TYPE_CODE: u32;
}

// SAFETY: device data promises the same.
#[diagnostic::do_not_recommend]
unsafe impl<T: DeviceData> KernelParam for T {
    const ENTRY_ALIGN: usize = T::PARAM_ALIGN;
    const MAY_BE_COPIED: bool = {
        let () = T::CHECK;
        !T::IN_PLACE
    };
    const ENTRY_TYPE_CODE: u32 = if T::IN_PLACE { 30_000 } else { T::TYPE_CODE };
}

// SAFETY: one byte, which is 0 or 1 on both sides.
#[diagnostic::do_not_recommend]
unsafe impl KernelParam for bool {
    const ENTRY_ALIGN: usize = align_of::<bool>();
    const MAY_BE_COPIED: bool = true;
    const ENTRY_TYPE_CODE: u32 = 5008;
}

/// For the macros: stops the build if an argument's type is not plain data. Returns whether a kernel may take a copy of
/// it.
#[doc(hidden)]
pub const fn __check_argument<T: KernelParam>() -> bool {
    T::MAY_BE_COPIED
}
