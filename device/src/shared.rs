//! Shared memory: pointers to it, and allocations by hand of the block's dynamic shared memory.

use core::fmt;
use core::marker::PhantomData;

use crate::shared_storage::bytes_of;
use crate::{DeviceData, SharedStorage};

/// Allocates the block's shared memory by hand, one array after the other.
///
/// A kernel whose [`SharedStorage`] is a parameter needs none. This is for counts that no type has. The kernel makes
/// one at its start, and its attribute `shared = BYTES` is the size. The addresses are constants if the counts are.
///
/// On the CPU backend, taking more than the kernel has is an error at the line that takes it.
///
/// ```no_run
/// use cutlet_device::{Shared, SharedMemory};
///
/// let mut shared = SharedMemory::new();
/// let tile: Shared<f32> = shared.take(128 * 16);
/// let row: Shared<u32> = shared.take(128);
/// ```
#[derive(Debug)]
pub struct SharedMemory {
    used: u32,
}

impl SharedMemory {
    /// All of the block's dynamic shared memory. The kernel's `shared` attribute is its size.
    #[inline(always)]
    #[allow(
        clippy::new_without_default,
        reason = "a block has only one shared memory, which is no default"
    )]
    pub const fn new() -> Self {
        Self { used: 0 }
    }

    /// Takes the next `count` elements, aligned to 16 bytes.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take<T: DeviceData>(&mut self, count: usize) -> Shared<T> {
        self.take_aligned::<T, 16>(count)
    }

    /// Takes the next `count` elements, aligned to `ALIGN` bytes: a power of two from 16 to 1024.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take_aligned<T: DeviceData, const ALIGN: u32>(&mut self, count: usize) -> Shared<T> {
        const {
            assert!(
                ALIGN.is_power_of_two() && ALIGN >= 16 && ALIGN <= 1024,
                "shared memory can be aligned to 16, 32, 64, 128, 256, 512 or 1024 bytes"
            );
        }
        Shared::from_address(self.take_bytes(bytes_of::<T>(count), ALIGN))
    }

    /// Takes the next bytes for `S`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take_storage<S: SharedStorage>(&mut self) -> S {
        S::at(self.take_bytes(S::BYTES, S::ALIGN))
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn take_bytes(&mut self, bytes: u32, align: u32) -> u32 {
        // Sums that do not fit 32 bits are more than any block has: they must not wrap around to what it has.
        let start = self.used.saturating_add(align - 1) & !(align - 1);
        self.used = start.saturating_add(bytes);
        imp::reserve(start, bytes);
        imp::base() + start
    }

    /// Bytes taken so far.
    #[inline(always)]
    pub const fn used(&self) -> u32 {
        self.used
    }
}

/// A pointer to elements in shared memory: a 32-bit address.
///
/// The CPU backend checks that every access is aligned and within the block's shared memory.
#[repr(transparent)]
pub struct Shared<T>(u32, PhantomData<*mut T>);

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({:#x})", self.0)
    }
}

impl<T: DeviceData> Shared<T> {
    /// The pointer to the element at an address in shared memory.
    #[inline(always)]
    pub const fn from_address(address: u32) -> Self {
        const { T::CHECK }
        Self(address, PhantomData)
    }

    /// The address, in bytes.
    #[inline(always)]
    pub const fn address(self) -> u32 {
        self.0
    }

    /// The same address, for elements of another type.
    #[inline(always)]
    pub const fn cast<U: DeviceData>(self) -> Shared<U> {
        Shared::from_address(self.0)
    }

    /// The pointer to element `index`.
    #[inline(always)]
    pub const fn offset(self, index: i64) -> Self {
        Self(self.0.wrapping_add(imp::bytes::<T>(index)), PhantomData)
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// The element must be within shared memory, and written before. No other thread may write it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, index: i64) -> T {
        // SAFETY: as promised by the caller.
        let [value] = unsafe { self.load_vec(index) };
        value
    }

    /// [`load`](Self::load) of an element that nothing may have written. The caller does not use the value in that case,
    /// so that it need not branch before the load.
    ///
    /// # Safety
    /// As [`load`](Self::load), but the element need not be written before.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_unwritten(self, index: i64) -> T {
        // SAFETY: as promised by the caller.
        let [value] = unsafe { imp::load_unwritten::<T, 1, 0>(self.offset(index).0) };
        value
    }

    /// Reads elements `index .. index + N` in one access of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Safety
    /// As [`load`](Self::load) for each element. The first element's address must be a multiple of the bytes read.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec<const N: usize>(self, index: i64) -> [T; N] {
        // SAFETY: as promised by the caller.
        unsafe { imp::load::<T, N, 0>(self.offset(index).0) }
    }

    /// [`load_vec`](Self::load_vec) of the elements `OFFSET` bytes after the pointer. The offset is part of the
    /// instruction.
    ///
    /// # Safety
    /// As [`load_vec`](Self::load_vec).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec_at<const N: usize, const OFFSET: u32>(self) -> [T; N] {
        // SAFETY: as promised by the caller.
        unsafe { imp::load::<T, N, OFFSET>(self.0) }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// The element must be within shared memory, and no other thread may access it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, index: i64, value: T) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_vec(index, [value]) };
    }

    /// Writes elements `index .. index + N` in one access of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Safety
    /// As [`store`](Self::store) for each element. The first element's address must be a multiple of the bytes written.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec<const N: usize>(self, index: i64, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { imp::store::<T, N, 0>(self.offset(index).0, values) };
    }

    /// [`store_vec`](Self::store_vec) to the elements `OFFSET` bytes after the pointer. The offset is part of the
    /// instruction.
    ///
    /// # Safety
    /// As [`store_vec`](Self::store_vec).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec_at<const N: usize, const OFFSET: u32>(self, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { imp::store::<T, N, OFFSET>(self.0, values) };
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::vector::{load_instruction, store_instruction};

    /// The start of the memory that `#[kernel]` declares.
    #[inline(always)]
    pub fn base() -> u32 {
        let address;
        // SAFETY: reads the address of a symbol.
        unsafe {
            asm!("mov.u32 {}, cutlet_shared;", out(reg32) address, options(pure, nomem, nostack))
        };
        address
    }

    /// The distance of an element from the first one. Shared memory is much smaller than 2^31 bytes, so the index fits.
    /// Wrapping is right for a negative one.
    #[inline(always)]
    pub const fn bytes<T>(index: i64) -> u32 {
        (index as u32).wrapping_mul(size_of::<T>() as u32)
    }

    /// A GPU does not know what a kernel declares.
    #[inline(always)]
    pub fn reserve(_: u32, _: u32) {}

    load_instruction!(load, "ld.shared", reg32: u32);
    pub use load as load_unwritten;
    store_instruction!(store, "st.shared", reg32: u32);
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::MemoryAccess;

    use crate::vector::vector_bytes;

    pub use cutlet_simt::{reserve_shared as reserve, shared_base as base};

    /// The distance of an element from the first one, which wraps for a negative index. Of an index that no shared memory
    /// has, the distance leads to an address that none has either, so that an access ends the kernel.
    #[inline(always)]
    pub const fn bytes<T>(index: i64) -> u32 {
        const NOWHERE: u32 = 0xFF80_0000;
        let bytes = index.saturating_mul(size_of::<T>() as i64);
        // Addresses have 24 bits for the offset.
        if bytes >= 1 << 24 || bytes <= -(1 << 24) {
            return NOWHERE;
        }
        bytes as u32
    }

    #[inline(always)]
    #[track_caller]
    fn at<T, const N: usize>(address: u32, kind: MemoryAccess) -> *mut [T; N] {
        let bytes = const { vector_bytes::<T, N>() as u32 };
        cutlet_simt::access_shared(address, bytes, bytes, kind).cast()
    }

    #[inline(always)]
    #[track_caller]
    pub unsafe fn load<T: Copy, const N: usize, const OFFSET: u32>(address: u32) -> [T; N] {
        // SAFETY: the range was just checked. Shared memory is initialised before a block starts, and every bit pattern
        // is a value of device data.
        unsafe { at::<T, N>(address.wrapping_add(OFFSET), MemoryAccess::Load).read() }
    }

    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_unwritten<T: Copy, const N: usize, const OFFSET: u32>(
        address: u32,
    ) -> [T; N] {
        // SAFETY: as in `load`.
        unsafe { at::<T, N>(address.wrapping_add(OFFSET), MemoryAccess::Unordered).read() }
    }

    #[inline(always)]
    #[track_caller]
    pub unsafe fn store<T: Copy, const N: usize, const OFFSET: u32>(address: u32, values: [T; N]) {
        let bytes = const { vector_bytes::<T, N>() };
        // SAFETY: elements of shared memory have no padding.
        let values = unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), bytes) };
        cutlet_simt::store_shared(address.wrapping_add(OFFSET), bytes as u32, values);
    }
}
