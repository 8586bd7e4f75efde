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
pub struct Adding {
    memory: GlobalMut<f32>,
    /// A word, as an instruction takes it: not 0 if it does add.
    adds: u32,
}

impl Adding {
    /// To the elements of `memory`.
    #[inline(always)]
    pub const fn to(memory: GlobalMut<f32>) -> Self {
        Self::to_if(true, memory)
    }

    /// To the elements of `memory`, or in place of them if `adds` is false: for where that is known at run time only, and
    /// code for each would be long.
    #[inline(always)]
    pub const fn to_if(adds: bool, memory: GlobalMut<f32>) -> Self {
        let adds = adds as u32;
        Self { memory, adds }
    }
}

impl Engine for Adding {
    type Element = f32;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        let memory = self.memory.offset(index);
        Self { memory, ..self }
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> f32 {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.load(index) }
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
        unsafe { imp::store(self.memory.offset(index), self.adds, values) };
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::GlobalMut;

    /// Both instructions, one of which does nothing: shorter than a branch for each store.
    #[inline(always)]
    pub unsafe fn store<const N: usize>(memory: GlobalMut<f32>, adds: u32, values: [f32; N]) {
        // SAFETY: the caller promises that the elements are there, and aligned.
        unsafe {
            match values.as_slice() {
                &[a] => asm!(
                    "{{ .reg .pred %adds; setp.ne.u32 %adds, {adds}, 0;",
                    "@%adds red.relaxed.gpu.global.add.f32 [{to}], {a};",
                    "@!%adds st.global.f32 [{to}], {a}; }}",
                    to = in(reg64) memory.as_ptr(), adds = in(reg32) adds, a = in(reg32) a,
                    options(nostack)
                ),
                &[a, b] => asm!(
                    "// cutlet-isa 8.1",
                    "{{ .reg .pred %adds; setp.ne.u32 %adds, {adds}, 0;",
                    "@%adds red.relaxed.gpu.global.add.v2.f32 [{to}], {{{a}, {b}}};",
                    "@!%adds st.global.v2.f32 [{to}], {{{a}, {b}}}; }}",
                    to = in(reg64) memory.as_ptr(), adds = in(reg32) adds, a = in(reg32) a, b = in(reg32) b,
                    options(nostack)
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
    pub unsafe fn store<const N: usize>(memory: GlobalMut<f32>, adds: u32, values: [f32; N]) {
        const { assert!(N <= 2, "one or two elements are added at a time") };
        check_alignment::<f32, N>(memory.as_ptr());
        for (n, value) in values.into_iter().enumerate() {
            // SAFETY: the caller promises that the elements are there.
            unsafe {
                if adds == 0 {
                    memory.store(n as i64, value);
                } else {
                    atomic_add(memory, n as i64, value);
                }
            }
        }
    }
}
