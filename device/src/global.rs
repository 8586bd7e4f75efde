//! Global memory: typed device pointers, with accesses of one element or of a vector of at most 16 bytes.

use core::fmt;
use core::marker::PhantomData;

use crate::DeviceData;

/// A pointer to elements in global memory that a kernel reads.
///
/// A kernel takes it by value. On the host, a buffer makes it. It has no length: the caller of [`load`](Self::load)
/// must know that the element exists. The CPU backend checks that it does: the upper bits of the address say which
/// buffer of the launch the pointer leads into.
#[repr(transparent)]
pub struct Global<T>(*const T, PhantomData<T>);

/// A pointer to elements in global memory that a kernel reads and writes.
#[repr(transparent)]
pub struct GlobalMut<T>(*mut T, PhantomData<T>);

macro_rules! pointer {
    ($name:ident, $pointer:ty, $code:literal) => {
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    concat!(stringify!($name), "({:p})"),
                    imp::plain(self.0 as *const T)
                )
            }
        }

        // SAFETY: the pointer is only a number until an unsafe function uses it.
        unsafe impl<T: Sync> Send for $name<T> {}
        // SAFETY: as above.
        unsafe impl<T: Sync> Sync for $name<T> {}

        // SAFETY: a 64-bit address on both sides, of which every bit pattern is a value.
        #[diagnostic::do_not_recommend]
        unsafe impl<T: DeviceData> DeviceData for $name<T> {
            const CHECK: () = T::CHECK;
            // Pointers to pointers have no code.
            const TYPE_CODE: u32 = $code + T::TYPE_CODE * (T::TYPE_CODE < 10_000) as u32;
        }

        impl<T: DeviceData> $name<T> {
            /// The pointer to the element at `ptr`, an address in device memory, or in host memory for the CPU backend.
            #[inline(always)]
            pub const fn from_ptr(ptr: $pointer) -> Self {
                const { T::CHECK }
                Self(ptr, PhantomData)
            }

            /// The address. On the CPU it is that of host memory, and accesses through it are not checked.
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            pub const fn as_ptr(self) -> $pointer {
                self.0
            }

            /// The address. On the CPU it is that of host memory, and accesses through it are not checked.
            #[cfg(not(target_arch = "nvptx64"))]
            #[inline(always)]
            pub fn as_ptr(self) -> $pointer {
                self.0.map_addr(cutlet_simt::untagged)
            }

            /// The pointer as the kernel has it: on the CPU, it says which buffer it leads into.
            #[inline(always)]
            pub(crate) const fn checked_ptr(self) -> $pointer {
                self.0
            }

            /// The pointer to element `index`.
            #[inline(always)]
            pub const fn offset(self, index: i64) -> Self {
                Self(self.0.wrapping_offset(index as isize), PhantomData)
            }

            /// Reads element `index`.
            ///
            /// # Safety
            /// The element must exist, and no other thread may write it at the same time.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn load(self, index: i64) -> T {
                // SAFETY: the caller promises that the element can be read.
                let [value] = unsafe { self.load_vec(index) };
                value
            }

            /// Reads elements `index .. index + N` in one access of 1, 2, 4, 8 or 16 bytes.
            ///
            /// # Safety
            /// As [`load`](Self::load) for each element. The first element's address must be a multiple of the bytes
            /// read.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn load_vec<const N: usize>(self, index: i64) -> [T; N] {
                // SAFETY: the caller promises that the elements can be read.
                unsafe { imp::read(imp::element(self.0 as *const T, index)) }
            }
        }
    };
}

pointer!(Global, *const T, 10_000);
pointer!(GlobalMut, *mut T, 20_000);

impl<T: DeviceData> Global<T> {
    /// Reads element `index` if `condition` holds. If not, it reads nothing and returns the default.
    ///
    /// It is no branch, so that several such loads are under way at the same time.
    ///
    /// # Safety
    /// As [`load`](Self::load), if `condition` holds.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_if(self, index: i64, condition: bool) -> T
    where
        T: Default,
    {
        // SAFETY: as promised by the caller.
        unsafe { imp::read_if(self.0.wrapping_offset(index as isize), condition) }
    }

    /// Fetches the line of element `index` into the L2 cache.
    ///
    /// The kernel reads nothing: a later load sees writes to the line after the prefetch. So a kernel may call it
    /// before it waits for the kernels before it.
    ///
    /// # Safety
    /// The element must exist.
    #[inline(always)]
    pub unsafe fn prefetch(self, index: i64) {
        // SAFETY: as promised by the caller.
        unsafe { imp::prefetch(imp::element(self.0, index)) };
    }

    /// [`load_vec`](Self::load_vec) through the read-only cache (`ld.global.nc`), of memory that no thread writes while
    /// the kernel runs.
    ///
    /// # Safety
    /// As [`load_vec`](Self::load_vec). Nothing may write the elements before the kernel ends.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec_read_only<const N: usize>(self, index: i64) -> [T; N] {
        // SAFETY: the caller promises that the elements can be read and do not change.
        unsafe { imp::read_only(imp::element(self.0, index)) }
    }

    /// [`load_vec_read_only`](Self::load_vec_read_only) of memory that is read once. It does not displace other data
    /// from the L1 cache.
    ///
    /// # Safety
    /// As [`load_vec_read_only`](Self::load_vec_read_only).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec_once<const N: usize>(self, index: i64) -> [T; N] {
        // SAFETY: the caller promises that the elements can be read and do not change.
        unsafe { imp::read_once(imp::element(self.0, index)) }
    }
}

impl<T: DeviceData> Global<T> {
    /// [`load_vec`](Self::load_vec) of elements that other threads may write at the same time. The caller does not use
    /// the values in that case. The CPU backend does not call it a race.
    ///
    /// # Safety
    /// As [`load_vec`](Self::load_vec), but other threads may write the elements.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec_unordered<const N: usize>(self, index: i64) -> [T; N] {
        // SAFETY: the caller promises that the elements can be read.
        unsafe { imp::read_unordered(imp::element(self.0, index)) }
    }
}

impl<T: DeviceData> GlobalMut<T> {
    /// The same elements, for reading only.
    #[inline(always)]
    pub const fn as_global(self) -> Global<T> {
        Global::from_ptr(self.0)
    }

    /// [`load`](Self::load) by a thread that may not have waited for the kernels before, of memory that they do not
    /// write.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn load_early(self, index: i64) -> T {
        // SAFETY: the caller promises that the element can be read.
        let [value] = unsafe { imp::read_early(imp::element(self.0 as *const T, index)) };
        value
    }

    /// [`store`](Self::store) by a thread that may not have waited for the kernels before, to memory that they do not
    /// use.
    ///
    /// # Safety
    /// As [`store`](Self::store).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn store_early(self, index: i64, value: T) {
        // SAFETY: the caller promises that the element can be written.
        unsafe { imp::write_early(imp::element(self.0.cast_const(), index).cast_mut(), [value]) };
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// The element must exist, and no other thread may access it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, index: i64, value: T) {
        // SAFETY: the caller promises that the element can be written.
        unsafe { self.store_vec(index, [value]) };
    }

    /// Writes elements `index .. index + N` in one access of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Safety
    /// As [`store`](Self::store) for each element. The first element's address must be a multiple of the bytes written.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: the caller promises that the elements can be written.
        unsafe { imp::write(imp::element(self.0.cast_const(), index).cast_mut(), values) };
    }

    /// [`store_vec`](Self::store_vec) to elements that other threads may store at the same time by this function. One
    /// of the values stays, and which one is unspecified. Of a vector, each element may come from another thread.
    ///
    /// # Safety
    /// As [`store_vec`](Self::store_vec), but other threads may store the elements by this function.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec_relaxed<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: the caller promises that the elements can be written.
        unsafe { imp::write_relaxed(imp::element(self.0.cast_const(), index).cast_mut(), values) };
    }

    /// [`store_vec`](Self::store_vec) of values that are not read soon: the caches evict them first.
    ///
    /// # Safety
    /// As [`store_vec`](Self::store_vec).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec_streaming<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: the caller promises that the elements can be written.
        unsafe {
            imp::write_streaming(imp::element(self.0.cast_const(), index).cast_mut(), values)
        };
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use crate::vector::{load_instruction, store_instruction};

    load_instruction!(ld_global, "ld.global", reg64: *const T);
    load_instruction!(ld_global_nc, "ld.global.nc", reg64: *const T);
    #[cfg(target_feature = "sm_90")]
    load_instruction!(ld_global_once, "ld.global.nc.L1::no_allocate", reg64: *const T);
    // PTX versions for older targets lack the hint.
    #[cfg(not(target_feature = "sm_90"))]
    load_instruction!(ld_global_once, "ld.global.nc", reg64: *const T);
    store_instruction!(st_global, "st.global", reg64: *mut T);
    store_instruction!(st_global_relaxed, "st.relaxed.gpu.global", reg64: *mut T);
    store_instruction!(st_global_streaming, "st.global.cs", reg64: *mut T);

    macro_rules! access {
        ($load:ident, $ld:ident) => {
            #[inline(always)]
            pub unsafe fn $load<T: Copy, const N: usize>(ptr: *const T) -> [T; N] {
                // SAFETY: as promised by the caller.
                unsafe { $ld::<T, N, 0>(ptr) }
            }
        };
        (mut $store:ident, $st:ident) => {
            #[inline(always)]
            pub unsafe fn $store<T: Copy, const N: usize>(ptr: *mut T, values: [T; N]) {
                // SAFETY: as promised by the caller.
                unsafe { $st::<T, N, 0>(ptr, values) };
            }
        };
    }
    access!(read, ld_global);
    access!(read_only, ld_global_nc);
    access!(read_once, ld_global_once);
    access!(mut write, st_global);
    access!(mut write_relaxed, st_global_relaxed);
    access!(mut write_streaming, st_global_streaming);
    pub use {read as read_early, read as read_unordered, write as write_early};

    /// The address.
    pub fn plain<T>(ptr: *const T) -> *const T {
        ptr
    }

    /// The pointer to an element.
    ///
    /// # Safety
    /// The element must exist.
    #[inline(always)]
    pub unsafe fn element<T>(ptr: *const T, index: i64) -> *const T {
        // SAFETY: as promised by the caller.
        unsafe { ptr.offset(index as isize) }
    }

    #[inline(always)]
    pub unsafe fn read_if<T: Copy + Default>(ptr: *const T, condition: bool) -> T {
        use core::arch::asm;

        use crate::vector::{DoubleWords, Words, from_bits, to_bits};

        let Words([mut word, ..]) = to_bits([T::default()]);
        let DoubleWords([mut double_word, _]) = to_bits([T::default()]);
        let condition = condition as u32;
        macro_rules! load {
            ($instruction:literal, $value:ident: $class:ident) => {
                asm!(
                    "{{ .reg .pred holds; setp.ne.u32 holds, {0}, 0;",
                    concat!("@holds ", $instruction, " {1}, [{2}]; }}"),
                    in(reg32) condition, inout($class) $value, in(reg64) ptr,
                    options(pure, readonly, nostack)
                )
            };
        }
        // SAFETY: as promised by the caller.
        unsafe {
            match size_of::<T>() {
                1 => load!("ld.global.u8", word: reg32),
                2 => load!("ld.global.u16", word: reg32),
                4 => load!("ld.global.u32", word: reg32),
                _ => load!("ld.global.u64", double_word: reg64),
            }
        }
        let [value] = match const { crate::vector::in_double_words::<T>() } {
            true => from_bits(DoubleWords([double_word, 0])),
            false => from_bits(Words([word, 0, 0, 0])),
        };
        value
    }

    #[inline(always)]
    pub unsafe fn prefetch<T>(ptr: *const T) {
        // SAFETY: a hint.
        unsafe {
            core::arch::asm!("prefetch.global.L2 [{}];", in(reg64) ptr, options(nostack));
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub(super) use crate::vector::{
        read_vector as read, read_vector as read_once, read_vector as read_only,
        read_vector_early as read_early, read_vector_unordered as read_unordered,
        write_vector as write, write_vector as write_streaming, write_vector_early as write_early,
        write_vector_relaxed as write_relaxed,
    };

    #[track_caller]
    pub unsafe fn read_if<T: Copy + Default>(ptr: *const T, condition: bool) -> T {
        match condition {
            true => {
                // SAFETY: as promised by the caller.
                let [value] = unsafe { read(ptr) };
                value
            }
            false => T::default(),
        }
    }

    /// The host's address, without the buffer that it leads into.
    pub fn plain<T>(ptr: *const T) -> *const T {
        ptr.map_addr(cutlet_simt::untagged)
    }

    /// The pointer to an element. It need not exist: the access is checked.
    #[inline(always)]
    pub unsafe fn element<T>(ptr: *const T, index: i64) -> *const T {
        ptr.wrapping_offset(index as isize)
    }

    /// The CPU backend has no cache.
    pub unsafe fn prefetch<T>(_: *const T) {}
}
