//! Memory to which what is stored in it is added: a tensor's engine.

use cutlet_layout_core::{Engine, EngineMut};

use crate::GlobalMut;

/// Elements in global memory to which what is stored is added.
///
/// Nothing is read for the thread: the second-level cache adds, in f32, rounded to nearest. What is below 2⁻¹²⁶ counts
/// as 0 on a GPU, before and after. An element that one thread adds to, once, is the same each time; of several, who
/// comes first decides how it is rounded.
///
/// ```no_run
/// use cutlet_device::GlobalMut;
/// use cutlet_device::hopper::Adding;
/// use cutlet_layout_core::EngineMut;
///
/// # let memory = GlobalMut::<f32>::from_ptr(core::ptr::null_mut());
/// let sums = Adding::to(memory);
/// // SAFETY: there are two elements, and nobody else uses them.
/// unsafe { sums.store_vector(0, [1.0, 2.0]) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Adding(GlobalMut<f32>);

impl Adding {
    /// To the elements of `memory`.
    #[inline(always)]
    pub const fn to(memory: GlobalMut<f32>) -> Self {
        Self(memory)
    }
}

impl Engine for Adding {
    type Element = f32;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self(self.0.offset(index))
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> f32 {
        // SAFETY: as promised by the caller.
        unsafe { self.0.load(index) }
    }
}

impl EngineMut for Adding {
    #[inline(always)]
    unsafe fn store(self, index: i64, value: f32) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_vector(index, [value]) };
    }

    /// One or two elements.
    #[inline(always)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [f32; N]) {
        // SAFETY: as promised by the caller.
        unsafe { imp::add(self.0.offset(index), values) };
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::GlobalMut;

    #[inline(always)]
    pub unsafe fn add<const N: usize>(memory: GlobalMut<f32>, values: [f32; N]) {
        // SAFETY: the caller promises that the elements are there, and aligned.
        unsafe {
            match values.as_slice() {
                &[a] => asm!(
                    "red.relaxed.gpu.global.add.f32 [{}], {};",
                    in(reg64) memory.as_ptr(), in(reg32) a, options(nostack)
                ),
                &[a, b] => asm!(
                    "// cutlet-isa 8.1",
                    "red.relaxed.gpu.global.add.v2.f32 [{}], {{{}, {}}};",
                    in(reg64) memory.as_ptr(), in(reg32) a, in(reg32) b, options(nostack)
                ),
                _ => const { assert!(N <= 2, "one or two elements are added at a time") },
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use crate::vector::check_alignment;
    use crate::{GlobalMut, atomic_add};

    /// The elements of a vector one after the other, where a GPU needs all of them aligned together.
    pub unsafe fn add<const N: usize>(memory: GlobalMut<f32>, values: [f32; N]) {
        const { assert!(N <= 2, "one or two elements are added at a time") };
        check_alignment::<f32, N>(memory.as_ptr());
        for (n, value) in values.into_iter().enumerate() {
            // SAFETY: the caller promises that the elements are there.
            unsafe { atomic_add(memory, n as i64, value) };
        }
    }
}
