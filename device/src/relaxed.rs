//! Relaxed stores: an engine of tensors in global memory whose elements several threads may store at the same time.

use cutlet_layout_core::{Engine, EngineMut};

use crate::{DeviceData, GlobalMut};

/// Elements in global memory that several threads may store at the same time (`st.relaxed`).
///
/// One of the values stays, and which one is unspecified. Of a vector, each element may come from another thread.
///
/// ```no_run
/// use cutlet_device::{GlobalMut, Relaxed};
/// use cutlet_layout_core::EngineMut;
///
/// # let memory = GlobalMut::<u32>::from_ptr(core::ptr::null_mut());
/// let elements = Relaxed::of(memory);
/// // SAFETY: there are two elements, and no other thread reads them.
/// unsafe { elements.store_vector(0, [1, 2]) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Relaxed<T> {
    memory: GlobalMut<T>,
}

impl<T: DeviceData> Relaxed<T> {
    /// The elements of `memory`.
    #[inline(always)]
    pub const fn of(memory: GlobalMut<T>) -> Self {
        Self { memory }
    }
}

impl<T: DeviceData> Engine for Relaxed<T> {
    type Element = T;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self::of(self.memory.offset(index))
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn attribute_to(self, line: cutlet_layout_core::Line) -> cutlet_layout_core::Line {
        cutlet_simt::attribute_to(line)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(self, index: i64) -> T {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.load(index) }
    }
}

impl<T: DeviceData> EngineMut for Relaxed<T> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(self, index: i64, value: T) {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.store_vec_relaxed(index, [value]) };
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.store_vec_relaxed(index, values) };
    }
}
