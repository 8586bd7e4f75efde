//! Vector accesses: several elements in one load or store of at most 16 bytes.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use cpu::{
    checked, read_vector, read_vector_early, read_vector_unordered, write_vector,
    write_vector_early, write_vector_relaxed,
};
#[cfg(target_arch = "nvptx64")]
pub(crate) use ptx::{DoubleWords, Words, from_bits, load_instruction, store_instruction, to_bits};

/// Bytes of `[T; N]`. Checks that one access can move them.
pub(crate) const fn vector_bytes<T, const N: usize>() -> usize {
    let bytes = size_of::<[T; N]>();
    assert!(
        matches!(bytes, 1 | 2 | 4 | 8 | 16),
        "one access moves 1, 2, 4, 8 or 16 bytes: choose the element type and the number of elements accordingly"
    );
    bytes
}

/// Whether the elements are moved in 64-bit registers. Smaller elements are moved in 32-bit registers.
#[cfg(target_arch = "nvptx64")]
pub(crate) const fn in_double_words<T>() -> bool {
    size_of::<T>() == 8
}

#[cfg(target_arch = "nvptx64")]
mod ptx {
    //! The registers of an access, and the inline assembly that fills or empties them.
    //!
    //! For a plain Rust load, the compiler chooses the instruction. It knows the address space of a pointer that is a
    //! kernel parameter, but not of a pointer in a struct. And it splits vectors that are only copied.

    /// The registers of an access to elements of up to 4 bytes.
    #[derive(Clone, Copy, Default)]
    #[repr(C, align(16))]
    pub(crate) struct Words(pub(crate) [u32; 4]);

    /// The registers of an access to elements of 8 bytes.
    #[derive(Clone, Copy, Default)]
    #[repr(C, align(16))]
    pub(crate) struct DoubleWords(pub(crate) [u64; 2]);

    /// The elements with the bits of the first registers.
    #[inline(always)]
    pub(crate) fn from_bits<R: Copy, T: Copy, const N: usize>(registers: R) -> [T; N] {
        const { assert!(super::vector_bytes::<T, N>() <= size_of::<R>()) };
        // SAFETY: the array is no larger than the registers, whose bits are those of values of this type.
        unsafe { core::mem::transmute_copy(&registers) }
    }

    /// The registers with the bits of the elements, and zeros after them.
    #[inline(always)]
    pub(crate) fn to_bits<R: Copy + Default, T: Copy, const N: usize>(values: [T; N]) -> R {
        const { assert!(super::vector_bytes::<T, N>() <= size_of::<R>()) };
        let mut registers = R::default();
        // SAFETY: the array is no larger than the registers.
        unsafe {
            core::ptr::from_mut(&mut registers)
                .cast::<[T; N]>()
                .write(values)
        };
        registers
    }

    /// Defines a function that loads `[T; N]` from an address plus `OFFSET` bytes by the given `ld` instruction. The
    /// result depends only on the address and on memory, so the compiler merges equal loads without a store or barrier
    /// between them.
    macro_rules! load_instruction {
        ($(#[$docs:meta])* $name:ident, $instruction:literal, $address:ident: $address_type:ty) => {
            $(#[$docs])*
            #[inline(always)]
            pub unsafe fn $name<T: Copy, const N: usize, const OFFSET: u32>(
                address: $address_type,
            ) -> [T; N] {
                use core::arch::asm;
                use $crate::vector::{DoubleWords, Words, from_bits, in_double_words, vector_bytes};

                let mut words = Words::default();
                let mut double_words = DoubleWords::default();
                let [a, b, c, d] = &mut words.0;
                let [x, y] = &mut double_words.0;
                // SAFETY: the caller promises that the memory can be read.
                unsafe {
                    match const { (vector_bytes::<T, N>(), in_double_words::<T>()) } {
                        (1, _) => {
                            let byte: u16;
                            asm!(concat!($instruction, ".b8 {}, [{}+{}];"), out(reg16) byte,
                                in($address) address, const OFFSET, options(pure, readonly, nostack));
                            *a = u32::from(byte);
                        }
                        (2, _) => {
                            let half: u16;
                            asm!(concat!($instruction, ".b16 {}, [{}+{}];"), out(reg16) half,
                                in($address) address, const OFFSET, options(pure, readonly, nostack));
                            *a = u32::from(half);
                        }
                        (4, _) => asm!(concat!($instruction, ".b32 {}, [{}+{}];"), out(reg32) *a,
                            in($address) address, const OFFSET, options(pure, readonly, nostack)),
                        (8, false) => asm!(concat!($instruction, ".v2.b32 {{{}, {}}}, [{}+{}];"),
                            out(reg32) *a, out(reg32) *b, in($address) address, const OFFSET,
                            options(pure, readonly, nostack)),
                        (_, false) => asm!(concat!($instruction, ".v4.b32 {{{}, {}, {}, {}}}, [{}+{}];"),
                            out(reg32) *a, out(reg32) *b, out(reg32) *c, out(reg32) *d,
                            in($address) address, const OFFSET, options(pure, readonly, nostack)),
                        (8, true) => asm!(concat!($instruction, ".b64 {}, [{}+{}];"), out(reg64) *x,
                            in($address) address, const OFFSET, options(pure, readonly, nostack)),
                        (_, true) => asm!(concat!($instruction, ".v2.b64 {{{}, {}}}, [{}+{}];"),
                            out(reg64) *x, out(reg64) *y, in($address) address, const OFFSET,
                            options(pure, readonly, nostack)),
                    }
                }
                if const { in_double_words::<T>() } { from_bits(double_words) } else { from_bits(words) }
            }
        };
    }
    pub(crate) use load_instruction;

    /// Defines a function that stores `[T; N]` to an address plus `OFFSET` bytes by the given `st` instruction.
    macro_rules! store_instruction {
        ($(#[$docs:meta])* $name:ident, $instruction:literal, $address:ident: $address_type:ty) => {
            $(#[$docs])*
            #[inline(always)]
            pub unsafe fn $name<T: Copy, const N: usize, const OFFSET: u32>(
                address: $address_type,
                values: [T; N],
            ) {
                use core::arch::asm;
                use $crate::vector::{DoubleWords, Words, in_double_words, to_bits, vector_bytes};

                // SAFETY: the caller promises that the memory can be written.
                unsafe {
                    if const { in_double_words::<T>() } {
                        let DoubleWords([x, y]) = to_bits(values);
                        match const { vector_bytes::<T, N>() } {
                            8 => asm!(concat!($instruction, ".b64 [{}+{}], {};"), in($address) address,
                                const OFFSET, in(reg64) x, options(nostack)),
                            _ => asm!(concat!($instruction, ".v2.b64 [{}+{}], {{{}, {}}};"),
                                in($address) address, const OFFSET, in(reg64) x, in(reg64) y,
                                options(nostack)),
                        }
                    } else {
                        let Words([a, b, c, d]) = to_bits(values);
                        match const { vector_bytes::<T, N>() } {
                            1 => asm!(concat!($instruction, ".b8 [{}+{}], {};"), in($address) address,
                                const OFFSET, in(reg16) a as u16, options(nostack)),
                            2 => asm!(concat!($instruction, ".b16 [{}+{}], {};"), in($address) address,
                                const OFFSET, in(reg16) a as u16, options(nostack)),
                            4 => asm!(concat!($instruction, ".b32 [{}+{}], {};"), in($address) address,
                                const OFFSET, in(reg32) a, options(nostack)),
                            8 => asm!(concat!($instruction, ".v2.b32 [{}+{}], {{{}, {}}};"),
                                in($address) address, const OFFSET, in(reg32) a, in(reg32) b,
                                options(nostack)),
                            _ => asm!(concat!($instruction, ".v4.b32 [{}+{}], {{{}, {}, {}, {}}};"),
                                in($address) address, const OFFSET, in(reg32) a, in(reg32) b,
                                in(reg32) c, in(reg32) d, options(nostack)),
                        }
                    }
                }
            }
        };
    }
    pub(crate) use store_instruction;
}

#[cfg(not(target_arch = "nvptx64"))]
mod cpu {
    //! Loads and stores of host memory, with the checks of the CPU backend. Blocks run on several OS threads, so that each
    //! element is read and written as an atomic.

    use cutlet_simt::{MemoryAccess, load_relaxed, store_relaxed};

    /// Reads `N` elements in one access. Ends the kernel if the address is not a multiple of their joint size, or if
    /// the thread has not waited for the kernels before.
    ///
    /// # Safety
    /// The elements can be read.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn read_vector<T: Copy, const N: usize>(ptr: *const T) -> [T; N] {
        cutlet_simt::check_dependency();
        // SAFETY: as promised by the caller.
        unsafe { load(ptr, MemoryAccess::Load) }
    }

    /// [`read_vector`] by a thread that may not have waited for the kernels before. Other threads may use the memory at
    /// the same time by atomic operations.
    ///
    /// # Safety
    /// As [`read_vector`].
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn read_vector_early<T: Copy, const N: usize>(ptr: *const T) -> [T; N] {
        // SAFETY: as promised by the caller.
        unsafe { load(ptr, MemoryAccess::AtomicLoad) }
    }

    /// [`read_vector`] of elements that other threads may write meanwhile.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn read_vector_unordered<T: Copy, const N: usize>(ptr: *const T) -> [T; N] {
        cutlet_simt::check_dependency();
        // SAFETY: as promised by the caller.
        unsafe { load(ptr, MemoryAccess::Unordered) }
    }

    /// The elements at a pointer, after the checks of an access of the given kind.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    #[track_caller]
    unsafe fn load<T: Copy, const N: usize>(ptr: *const T, kind: MemoryAccess) -> [T; N] {
        let from = checked::<T, N>(ptr, kind).cast::<T>();
        // SAFETY: the caller promises the elements, which have no padding. The address is a multiple of all their bytes.
        core::array::from_fn(|n| unsafe { load_relaxed(from.add(n)) })
    }

    /// Writes `N` elements in one access. Ends the kernel if the address is not a multiple of their joint size, or if
    /// the thread has not waited for the kernels before.
    ///
    /// # Safety
    /// The elements can be written.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write_vector<T: Copy, const N: usize>(ptr: *mut T, values: [T; N]) {
        cutlet_simt::check_dependency();
        let bytes = const { super::vector_bytes::<T, N>() };
        // SAFETY: elements of global memory have no padding. The caller promises that the memory can be written.
        unsafe {
            let values = core::slice::from_raw_parts(values.as_ptr().cast(), bytes);
            cutlet_simt::store_global(ptr.cast(), size_of::<T>(), values);
        }
    }

    /// [`write_vector`] by a thread that may not have waited for the kernels before. Other threads may use the memory
    /// at the same time by atomic operations.
    ///
    /// # Safety
    /// As [`write_vector`].
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write_vector_early<T: Copy, const N: usize>(ptr: *mut T, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { store(ptr, values, MemoryAccess::Atomic) };
    }

    /// [`write_vector`] to elements that other threads may write meanwhile.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write_vector_relaxed<T: Copy, const N: usize>(
        ptr: *mut T,
        values: [T; N],
    ) {
        cutlet_simt::check_dependency();
        // SAFETY: as promised by the caller.
        unsafe { store(ptr, values, MemoryAccess::AtomicStore) };
    }

    /// Stores the elements at a pointer, after the checks of an access of the given kind.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    #[track_caller]
    unsafe fn store<T: Copy, const N: usize>(ptr: *mut T, values: [T; N], kind: MemoryAccess) {
        let to = checked::<T, N>(ptr, kind).cast::<T>();
        for (n, value) in values.into_iter().enumerate() {
            // SAFETY: as in `load`.
            unsafe { store_relaxed(to.add(n), value) };
        }
    }

    /// Host address of `N` elements of global memory. Ends the kernel if the running thread may not access them, or if
    /// the address is not a multiple of their joint size.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn checked<T, const N: usize>(ptr: *const T, kind: MemoryAccess) -> *mut [T; N] {
        let bytes = const { super::vector_bytes::<T, N>() };
        cutlet_simt::global_bytes(ptr.cast(), bytes, bytes, kind).cast()
    }
}
