//! Reduce-add: an engine of tensors in global memory, to which a store adds in the L2 cache.

use cutlet_layout_core::{Engine, EngineMut};

use crate::{GlobalMut, PartialSum};

/// Elements in global memory that a store adds to.
///
/// The thread reads nothing: the L2 cache adds. `f32` is rounded to nearest, and a GPU flushes subnormal operands and
/// results to 0. The result is deterministic if one thread adds to an element. If several do, their order decides the
/// rounding. `i32` wraps around.
///
/// ```no_run
/// use cutlet_device::{GlobalMut, ReduceAdd};
/// use cutlet_layout_core::EngineMut;
///
/// # let memory = GlobalMut::<f32>::from_ptr(core::ptr::null_mut());
/// let elements = ReduceAdd::to(memory);
/// // SAFETY: there are two elements, and no other thread uses them.
/// unsafe { elements.store_vector(0, [1.0, 2.0]) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReduceAdd<T = f32> {
    memory: GlobalMut<T>,
    /// Not 0 if it adds. It is a word because the assembly takes a register.
    adds: u32,
}

impl<T: ReduceAddElement> ReduceAdd<T> {
    /// Adds to the elements of `memory`.
    #[inline(always)]
    pub const fn to(memory: GlobalMut<T>) -> Self {
        Self::to_if(true, memory)
    }

    /// Adds to the elements of `memory`, or replaces them if `adds` is false. It is for kernels that decide at run
    /// time, without separate code for each case.
    #[inline(always)]
    pub const fn to_if(adds: bool, memory: GlobalMut<T>) -> Self {
        let adds = adds as u32;
        Self { memory, adds }
    }
}

impl<T: ReduceAddElement> Engine for ReduceAdd<T> {
    type Element = T;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        let memory = self.memory.offset(index);
        Self { memory, ..self }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn attribute_to(self, line: cutlet_layout_core::Line) -> cutlet_layout_core::Line {
        cutlet_simt::attribute_to(line)
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> T {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.load(index) }
    }
}

impl<T: ReduceAddElement> EngineMut for ReduceAdd<T> {
    #[inline(always)]
    unsafe fn store(self, index: i64, value: T) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_vector(index, [value]) };
    }

    /// Stores one or two elements.
    #[inline(always)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { T::store(self.memory.offset(index), self.adds, values) };
    }
}

/// An element that [`ReduceAdd`] adds to: `f32` or `i32`.
pub trait ReduceAddElement: PartialSum + imp::Element {}
impl ReduceAddElement for f32 {}
impl ReduceAddElement for i32 {}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::GlobalMut;

    /// The instructions for an element type.
    pub trait Element: Sized {
        /// Issues both instructions, one of which is predicated off. This is shorter than a branch for each store.
        ///
        /// # Safety
        /// The elements must be there, and aligned to the size of all.
        unsafe fn store<const N: usize>(memory: GlobalMut<Self>, adds: u32, values: [Self; N]);
    }

    macro_rules! element {
        ($element:ty, $type:literal, $isa:literal, pair: $($adds_pair:literal),+) => {
            impl Element for $element {
                #[inline(always)]
                unsafe fn store<const N: usize>(memory: GlobalMut<Self>, adds: u32, values: [Self; N]) {
                    // SAFETY: the caller promises that the elements are there, and aligned.
                    unsafe {
                        match values.as_slice() {
                            &[a] => asm!(
                                "{{ .reg .pred %adds; setp.ne.u32 %adds, {adds}, 0;",
                                concat!("@%adds red.relaxed.gpu.global.add.", $type, " [{to}], {a};"),
                                concat!("@!%adds st.global.", $type, " [{to}], {a}; }}"),
                                to = in(reg64) memory.as_ptr(), adds = in(reg32) adds, a = in(reg32) a,
                                options(nostack)
                            ),
                            &[a, b] => asm!(
                                $isa,
                                "{{ .reg .pred %adds; setp.ne.u32 %adds, {adds}, 0;",
                                $($adds_pair,)+
                                concat!("@!%adds st.global.v2.", $type, " [{to}], {{{a}, {b}}}; }}"),
                                to = in(reg64) memory.as_ptr(), adds = in(reg32) adds, a = in(reg32) a, b = in(reg32) b,
                                options(nostack)
                            ),
                            _ => const { assert!(N <= 2, "a reduce-add store takes one or two elements") },
                        }
                    }
                }
            }
        };
    }
    element!(f32, "f32", "// cutlet-isa 8.1",
        pair: "@%adds red.relaxed.gpu.global.add.v2.f32 [{to}], {{{a}, {b}}};");
    // No vector form adds integers.
    element!(i32, "s32", "",
        pair: "@%adds red.relaxed.gpu.global.add.s32 [{to}], {a};",
            "@%adds red.relaxed.gpu.global.add.s32 [{to} + 4], {b};");
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::MemoryAccess;

    use crate::vector::checked;
    use crate::{AtomicAdd, GlobalMut, PartialSum, atomic_add};

    /// The model for an element type.
    pub trait Element: PartialSum + AtomicAdd {
        /// Adds the elements one after the other, with the alignment of the vector that a GPU needs.
        ///
        /// # Safety
        /// The elements must be there.
        #[track_caller]
        unsafe fn store<const N: usize>(memory: GlobalMut<Self>, adds: u32, values: [Self; N]) {
            const { assert!(N <= 2, "a reduce-add store takes one or two elements") };
            if adds == 0 {
                // SAFETY: the caller promises that the elements are there.
                return unsafe { memory.store_vec(0, values) };
            }
            checked::<Self, N>(memory.checked_ptr(), MemoryAccess::Atomic);
            for (n, value) in values.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { atomic_add(memory, n as i64, value) };
            }
        }
    }

    impl Element for f32 {}
    impl Element for i32 {}
}
