//! Reductions in global memory: an engine of tensors to which a store adds, for values that several threads add to one
//! element.

use cutlet_layout_core::{Engine, EngineMut};
use half::{bf16, f16};

use crate::{DeviceData, GlobalMut};

/// Elements in global memory that a store adds to, atomically (`red.add`).
///
/// The thread reads nothing: the L2 cache adds, and rounds to the nearest value of the type after each addition. The
/// order of the additions is unspecified, so sums of several values may differ from run to run in their last bits.
///
/// On Hopper, a vector of up to 16 bytes is one instruction. Older GPUs add words one by one. They have no addition of
/// `bf16`, which is replaced there by a loop of compare-and-swap.
///
/// ```no_run
/// use cutlet_device::{GlobalMut, RedAdd};
/// use cutlet_layout_core::EngineMut;
///
/// # let memory = GlobalMut::<f32>::from_ptr(core::ptr::null_mut());
/// let sums = RedAdd::to(memory);
/// // SAFETY: there are four elements, and other threads use them only by atomic operations.
/// unsafe { sums.store_vector(0, [1.0, 2.0, 3.0, 4.0]) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RedAdd<T> {
    memory: GlobalMut<T>,
}

/// A type that [`RedAdd`] adds: `f32`, `f16`, `bf16`, and pairs of the 16-bit types, of which a vector is a single
/// instruction.
pub trait RedAddElement: DeviceData {
    /// Adds to the elements at an address that is aligned for all of them.
    #[doc(hidden)]
    #[allow(clippy::missing_safety_doc)]
    unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]);
}

impl<T: RedAddElement> RedAdd<T> {
    /// Adds to the elements of `memory`.
    #[inline(always)]
    pub const fn to(memory: GlobalMut<T>) -> Self {
        Self { memory }
    }
}

impl<T: RedAddElement> Engine for RedAdd<T> {
    type Element = T;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self::to(self.memory.offset(index))
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

impl<T: RedAddElement> EngineMut for RedAdd<T> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(self, index: i64, value: T) {
        // SAFETY: as promised by the caller.
        unsafe { T::red_add(self.memory.offset(index), [value]) };
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { T::red_add(self.memory.offset(index), values) };
    }
}

#[cfg(target_arch = "nvptx64")]
mod ptx {
    use core::arch::asm;

    use super::*;

    impl RedAddElement for f32 {
        #[inline(always)]
        unsafe fn red_add<const N: usize>(to: GlobalMut<f32>, values: [f32; N]) {
            // SAFETY: as promised by the caller.
            unsafe {
                match values.as_slice() {
                    #[cfg(target_feature = "sm_90")]
                    &[a, b] => asm!("// cutlet-isa 8.1",
                        "red.relaxed.gpu.global.add.v2.f32 [{}], {{{}, {}}};", in(reg64) to.as_ptr(),
                        in(reg32) a, in(reg32) b, options(nostack)),
                    #[cfg(target_feature = "sm_90")]
                    &[a, b, c, d] => asm!("// cutlet-isa 8.1",
                        "red.relaxed.gpu.global.add.v4.f32 [{}], {{{}, {}, {}, {}}};",
                        in(reg64) to.as_ptr(), in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                        options(nostack)),
                    each => {
                        let mut n = 0;
                        while n < N {
                            asm!("red.relaxed.gpu.global.add.f32 [{}], {};",
                                in(reg64) to.offset(n as i64).as_ptr(),
                                in(reg32) *each.get_unchecked(n), options(nostack));
                            n += 1;
                        }
                    }
                }
            }
        }
    }

    /// The words of pairs.
    #[inline(always)]
    fn words<T: Copy, const N: usize>(pairs: [[T; 2]; N]) -> [u32; N] {
        const { assert!(size_of::<T>() == 2) };
        // SAFETY: a pair of 16-bit numbers has the size of a word, and every word is a value.
        unsafe { core::mem::transmute_copy(&pairs) }
    }

    macro_rules! reductions {
        ($type:ty, $one:literal, $pair:literal, $two:literal, $four:literal) => {
            impl RedAddElement for [$type; 2] {
                #[inline(always)]
                unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]) {
                    // SAFETY: as promised by the caller.
                    unsafe {
                        match words(values).as_slice() {
                            #[cfg(target_feature = "sm_90")]
                            &[a, b] => asm!("// cutlet-isa 8.1", $two, in(reg64) to.as_ptr(),
                                in(reg32) a, in(reg32) b, options(nostack)),
                            #[cfg(target_feature = "sm_90")]
                            &[a, b, c, d] => asm!("// cutlet-isa 8.1", $four, in(reg64) to.as_ptr(),
                                in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d, options(nostack)),
                            each => {
                                let mut n = 0;
                                while n < N {
                                    asm!($pair, in(reg64) to.offset(n as i64).as_ptr(),
                                        in(reg32) *each.get_unchecked(n), options(nostack));
                                    n += 1;
                                }
                            }
                        }
                    }
                }
            }

            impl RedAddElement for $type {
                #[inline(always)]
                unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]) {
                    let mut n = 0;
                    while n < N {
                        // SAFETY: as promised by the caller.
                        unsafe {
                            asm!($one, in(reg64) to.offset(n as i64).as_ptr(),
                                in(reg16) values.as_slice().get_unchecked(n).to_bits(), options(nostack));
                        }
                        n += 1;
                    }
                }
            }
        };
    }
    reductions!(
        f16,
        "red.relaxed.gpu.global.add.noftz.f16 [{}], {};",
        "red.relaxed.gpu.global.add.noftz.f16x2 [{}], {};",
        "red.relaxed.gpu.global.add.noftz.v2.f16x2 [{}], {{{}, {}}};",
        "red.relaxed.gpu.global.add.noftz.v4.f16x2 [{}], {{{}, {}, {}, {}}};"
    );
    #[cfg(target_feature = "sm_90")]
    reductions!(
        bf16,
        "red.relaxed.gpu.global.add.noftz.bf16 [{}], {};",
        "red.relaxed.gpu.global.add.noftz.bf16x2 [{}], {};",
        "red.relaxed.gpu.global.add.noftz.v2.bf16x2 [{}], {{{}, {}}};",
        "red.relaxed.gpu.global.add.noftz.v4.bf16x2 [{}], {{{}, {}, {}, {}}};"
    );

    /// Older GPUs exchange a word or a half of one until no other thread changed it meanwhile. The loop is assembly, so
    /// that the compiler leaves it as short as it is.
    #[cfg(not(target_feature = "sm_90"))]
    mod exchanged {
        use super::*;

        impl RedAddElement for [bf16; 2] {
            #[inline(always)]
            #[allow(named_asm_labels, reason = "a label in braces is local to them in PTX")]
            unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]) {
                let words = words(values);
                let mut n = 0;
                while n < N {
                    // SAFETY: as promised by the caller. The words of a bf16 are those of an f32 without its lower
                    // half.
                    unsafe {
                        let at = to.offset(n as i64);
                        let word = *words.as_slice().get_unchecked(n);
                        asm!(
                            "{{ .reg .pred %changed; .reg .b32 %found, %old, %new; .reg .f32 %a, %b;",
                            "ld.relaxed.gpu.global.b32 %found, [{to}];",
                            "AGAIN:",
                            "mov.b32 %old, %found;",
                            "shl.b32 %new, %old, 16; mov.b32 %a, %new; add.rn.f32 %a, %a, {low};",
                            "and.b32 %new, %old, 0xffff0000; mov.b32 %b, %new; add.rn.f32 %b, %b, {high};",
                            "cvt.rn.bf16x2.f32 %new, %b, %a;",
                            "atom.relaxed.gpu.global.cas.b32 %found, [{to}], %old, %new;",
                            "setp.ne.b32 %changed, %found, %old;",
                            "@%changed bra AGAIN; }}",
                            to = in(reg64) at.as_ptr(), low = in(reg32) word << 16,
                            high = in(reg32) word & 0xffff_0000, options(nostack)
                        );
                    }
                    n += 1;
                }
            }
        }

        impl RedAddElement for bf16 {
            #[inline(always)]
            #[allow(named_asm_labels, reason = "a label in braces is local to them in PTX")]
            unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]) {
                let mut n = 0;
                while n < N {
                    // SAFETY: as promised by the caller.
                    unsafe {
                        let at = to.offset(n as i64);
                        let value = u32::from(values.as_slice().get_unchecked(n).to_bits()) << 16;
                        asm!(
                            "{{ .reg .pred %changed; .reg .b16 %found, %old, %new, %none; .reg .f32 %a;",
                            "ld.relaxed.gpu.global.b16 %found, [{to}];",
                            "mov.b16 %none, 0;",
                            "AGAIN:",
                            "mov.b16 %old, %found;",
                            "mov.b32 %a, {{%none, %old}}; add.rn.f32 %a, %a, {value};",
                            "cvt.rn.bf16.f32 %new, %a;",
                            "atom.relaxed.gpu.global.cas.b16 %found, [{to}], %old, %new;",
                            "setp.ne.b16 %changed, %found, %old;",
                            "@%changed bra AGAIN; }}",
                            to = in(reg64) at.as_ptr(), value = in(reg32) value, options(nostack)
                        );
                    }
                    n += 1;
                }
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod cpu {
    use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

    use cutlet_simt::MemoryAccess;

    use super::*;
    use crate::vector::checked;

    /// Adds to a number in host memory, atomically.
    trait AtomicNumber: Copy {
        /// # Safety
        /// The number exists.
        unsafe fn add_to(self, number: *mut Self);
    }

    macro_rules! atomic_number {
        ($($type:ty: $atomic:ty, $sum:expr;)+) => {$(
            impl AtomicNumber for $type {
                unsafe fn add_to(self, number: *mut Self) {
                    let sum: fn($type, $type) -> $type = $sum;
                    let add = |old| Some(sum(<$type>::from_bits(old), self).to_bits());
                    // SAFETY: the caller promises that the number exists. It has the size of the atomic.
                    let atomic = unsafe { &*number.cast::<$atomic>() };
                    let _ = atomic.try_update(Ordering::Relaxed, Ordering::Relaxed, add);
                }
            }
        )+};
    }
    atomic_number! {
        f32: AtomicU32, |a, b| a + b;
        f16: AtomicU16, |a, b| f16::from_f32(a.to_f32() + b.to_f32());
        bf16: AtomicU16, |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
    }

    macro_rules! reductions {
        ($($type:ty: $number:ty;)+) => {$(
            impl RedAddElement for $type {
                #[track_caller]
                unsafe fn red_add<const N: usize>(to: GlobalMut<Self>, values: [Self; N]) {
                    cutlet_simt::check_dependency();
                    let memory = checked::<Self, N>(to.checked_ptr(), MemoryAccess::Atomic);
                    let values = values.as_ptr().cast::<$number>();
                    for nth in 0..N * size_of::<Self>() / size_of::<$number>() {
                        // SAFETY: the elements were checked to exist, and consist of numbers.
                        unsafe { values.add(nth).read().add_to(memory.cast::<$number>().add(nth)) };
                    }
                }
            }
        )+};
    }
    reductions! { f32: f32; f16: f16; bf16: bf16; [f16; 2]: f16; [bf16; 2]: bf16; }
}
