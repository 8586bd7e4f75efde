//! Operand A of `wgmma` in registers.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, ThreadValue, WgmmaA8, WgmmaA16, WgmmaA32};
use half::{bf16, f16};

use crate::DeviceData;
use crate::fp8::{F8E4M3, F8E5M2};

/// The element type of an operand A that `wgmma` reads from registers.
pub trait RegisterElement: DeviceData {
    /// Which thread of a warpgroup holds which elements of A: the coordinates are (m, k).
    type LayoutA: ThreadValue;
}

macro_rules! element {
    ($($type:ty: $layout:ty;)*) => {$(
        impl RegisterElement for $type {
            type LayoutA = $layout;
        }

        // The elements of a thread fill its registers.
        const _: () = assert!(size_of::<FragmentA<$type>>() == size_of::<Words>());
    )*};
}
element! {
    bf16: WgmmaA16;
    f16: WgmmaA16;
    f32: WgmmaA32;
    F8E4M3: WgmmaA8;
    F8E5M2: WgmmaA8;
    i8: WgmmaA8;
}

/// A thread's elements of A of one instruction: 64 × 16 elements of 16 bits, for instance, of which a thread has 8.
pub type FragmentA<T> = Fragment<T, <<T as RegisterElement>::LayoutA as ThreadValue>::Val>;

/// A thread's registers of A.
pub(super) type Words = [u32; 4];

/// A thread's elements of A in the registers that instructions read.
///
/// A `wgmma` reads its registers at any time until the thread has waited for the instruction's group. Meanwhile nothing
/// may write to them, nor read them. This type sees to it:
///
/// - [`new`](Self::new) moves the elements to registers of their own. It comes before
///   [`warpgroup_arrive`](super::warpgroup_arrive), whose fence orders the writes before the instructions.
/// - Nothing gives the elements back, and nothing changes them.
/// - The registers are in use until the value is dropped. It must not be dropped before the group was waited for.
///
/// Several instructions may read the same registers, and the next groups too.
///
/// ```
/// use cutlet_device::SharedArray;
/// use cutlet_device::operand::{MatrixDescriptor, OperandB};
/// use cutlet_device::sm90::{Accumulator, FragmentA, RegisterA, Wgmma, warpgroup_arrive};
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::warpgroup::warpgroup_thread_idx;
/// use cutlet_device::{GlobalMut, fence_async_shared, kernel, sync_threads};
/// use half::bf16;
///
/// type Mma = Wgmma<8, bf16>;
///
/// /// Multiplies ones by ones.
/// ///
/// /// # Safety
/// /// `sums` must have 128 elements.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// pub unsafe fn ones(sums: GlobalMut<f32>, #[shared] tile: KMajorTile<bf16, 8, 16, 32>) {
///     let thread = i64::from(warpgroup_thread_idx().get());
///     // SAFETY: each thread writes an element of the tile of its own, and one of `sums`. A's registers are made
///     // before the group, and dropped at the end.
///     unsafe {
///         tile.start().store(thread, bf16::ONE);
///         fence_async_shared();
///         sync_threads();
///         let a = RegisterA::new(&FragmentA::filled(bf16::ONE));
///         let mut accumulator = Accumulator::<Mma>::new();
///         let group = warpgroup_arrive();
///         group.mma_from_registers(&mut accumulator, &a, tile.operand_b::<Mma>().k_step(0), false);
///         group.commit();
///         sums.store(thread, accumulator.wait().get(0));
///     }
/// }
/// assert_eq!(ones.bounds().threads(), 128);
/// ```
pub struct RegisterA<T: RegisterElement> {
    registers: imp::Registers,
    element: PhantomData<T>,
}

impl<T: RegisterElement> RegisterA<T> {
    /// The registers with these elements. Element `v` of thread `t` of the warpgroup is at `Thr(t) + Val(v)` of the
    /// [`LayoutA`](RegisterElement::LayoutA).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn new(elements: &FragmentA<T>) -> Self {
        // SAFETY: a fragment consists of its elements, which have as many bytes as the registers. All are written, and
        // integers have no invalid bit patterns.
        let words = unsafe {
            core::ptr::from_ref(elements)
                .cast::<Words>()
                .read_unaligned()
        };
        Self::of_words(words)
    }

    /// The registers with these words, each of neighbours along k: what [`ldmatrix`](crate::ldmatrix) reads, for
    /// instance.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn of_words(words: [u32; 4]) -> Self {
        Self {
            registers: imp::Registers::new(words),
            element: PhantomData,
        }
    }

    /// The registers, for an instruction.
    #[inline(always)]
    pub(super) fn registers(&self) -> &imp::Registers {
        &self.registers
    }
}

/// Not of a field: kernels are compiled apart from each other, and rustc gives each its own copy of this code only if
/// the type itself has a `drop` that is to be inlined.
impl<T: RegisterElement> Drop for RegisterA<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.registers.release();
    }
}

impl<T: RegisterElement> fmt::Debug for RegisterA<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegisterA")
    }
}

#[cfg(target_arch = "nvptx64")]
pub(super) mod imp {
    use core::arch::asm;

    use super::Words;

    /// Registers that the compiler does not reuse before they are released.
    pub struct Registers(pub Words);

    impl Registers {
        /// Writes the registers here, not between the instructions of a group.
        #[inline(always)]
        pub fn new([mut a, mut b, mut c, mut d]: Words) -> Self {
            // SAFETY: the text is a comment.
            unsafe {
                asm!(
                    "// A: {} {} {} {}",
                    inout(reg32) a,
                    inout(reg32) b,
                    inout(reg32) c,
                    inout(reg32) d,
                    options(nostack)
                );
            }
            Self([a, b, c, d])
        }

        /// Keeps the compiler from reusing the registers before this point.
        #[inline(always)]
        pub fn release(&self) {
            let [a, b, c, d] = self.0;
            // SAFETY: the text is a comment.
            unsafe {
                asm!(
                    "// A was read: {} {} {} {}",
                    in(reg32) a,
                    in(reg32) b,
                    in(reg32) c,
                    in(reg32) d,
                    options(nostack)
                );
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) mod imp {
    pub use cutlet_simt::WgmmaRegisters as Registers;
}
