//! Stores that add, if that is asked for at run time: a tensor's engine.

use cutlet_layout_core::{Engine, EngineMut};

use crate::GlobalMut;

/// Elements in global memory, of which what is stored takes the place, or to which it is added.
///
/// Nothing is read for the thread: the second-level cache adds, in f32, rounded to nearest. What is below 2⁻¹²⁶ counts
/// as 0 on a GPU, before and after. An element that one thread adds to, once, is the same each time; of several, who
/// comes first decides how it is rounded.
///
/// ```no_run
/// use cutlet_device::GlobalMut;
/// use cutlet_device::hopper::StoreOrAdd;
/// use cutlet_layout_core::EngineMut;
///
/// # let memory = GlobalMut::<f32>::from_ptr(core::ptr::null_mut());
/// let sums = StoreOrAdd::new(memory, true);
/// // SAFETY: there are two elements, and nobody else uses them.
/// unsafe { sums.store_vector(0, [1.0, 2.0]) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StoreOrAdd {
    memory: GlobalMut<f32>,
    adds: bool,
}

impl StoreOrAdd {
    /// The elements of `memory`; what is stored is added to them if `adds` says so.
    #[inline(always)]
    pub fn new(memory: GlobalMut<f32>, adds: bool) -> Self {
        Self { memory, adds }
    }
}

impl Engine for StoreOrAdd {
    type Element = f32;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            memory: self.memory.offset(index),
            ..self
        }
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> f32 {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.load(index) }
    }

    #[inline(always)]
    unsafe fn load_vector<const N: usize>(self, index: i64) -> [f32; N] {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.load_vec(index) }
    }
}

impl EngineMut for StoreOrAdd {
    #[inline(always)]
    unsafe fn store(self, index: i64, value: f32) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_vector(index, [value]) };
    }

    #[inline(always)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [f32; N]) {
        // SAFETY: as promised by the caller.
        unsafe { imp::store_or_add(self.memory.offset(index), values, self.adds) };
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::GlobalMut;

    macro_rules! store_or_add {
        ($memory:ident, $adds:ident, $vector:literal, $values:literal, $($value:ident),+) => {
            // One question for each access, of which the assembler makes one for all: a branch for each would be a
            // loop's worth of code.
            asm!(
                "{{",
                "// cutlet-isa 8.1",
                ".reg .pred adds;",
                "setp.ne.u32 adds, {adds}, 0;",
                concat!("@adds red.relaxed.gpu.global.add", $vector, ".f32 [{memory}], ", $values, ";"),
                concat!("@!adds st.global", $vector, ".f32 [{memory}], ", $values, ";"),
                "}}",
                memory = in(reg64) $memory.as_ptr(),
                adds = in(reg32) u32::from($adds),
                $($value = in(reg32) $value,)+
                options(nostack)
            )
        };
    }

    #[inline(always)]
    pub unsafe fn store_or_add<const N: usize>(
        memory: GlobalMut<f32>,
        values: [f32; N],
        adds: bool,
    ) {
        // SAFETY: the caller promises that the elements are there, and aligned.
        unsafe {
            match values.as_slice() {
                &[a] => store_or_add!(memory, adds, "", "{a}", a),
                &[a, b] => store_or_add!(memory, adds, ".v2", "{{{a}, {b}}}", a, b),
                _ => {
                    const {
                        assert!(
                            N <= 2,
                            "one or two elements are stored, or added to, at a time"
                        )
                    }
                }
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use crate::{GlobalMut, atomic_add};

    pub unsafe fn store_or_add<const N: usize>(
        memory: GlobalMut<f32>,
        values: [f32; N],
        adds: bool,
    ) {
        // SAFETY: the caller promises that the elements are there.
        unsafe {
            if !adds {
                return memory.store_vec(0, values);
            }
            // For what it checks: the alignment, and that the thread has waited.
            let _ = memory.load_vec::<N>(0);
            for (n, value) in values.into_iter().enumerate() {
                atomic_add(memory, n as i64, value);
            }
        }
    }
}
