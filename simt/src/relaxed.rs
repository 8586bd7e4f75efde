//! Accesses to global memory as atomic operations without an order, element by element.
//!
//! A GPU's threads may race: one of the values is read, or stays. Blocks run on several OS threads here, where a race of
//! plain accesses would be undefined behaviour. Races are looked for only if a program asks for it, so no access is plain.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};

/// Reads an element of 1, 2, 4, 8 or 16 bytes of global memory. One of 16 bytes is two halves, which may be of different
/// stores.
///
/// # Safety
/// The element exists, and its address is a multiple of its size. Threads that access it at the same time do so by
/// functions of this crate or by atomic operations. Its type has no padding.
#[inline(always)]
pub unsafe fn load_relaxed<T: Copy>(from: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr();
    // SAFETY: as promised by the caller.
    unsafe {
        load_elements(from.cast(), to.cast(), size_of::<T>(), size_of::<T>());
        value.assume_init()
    }
}

/// Writes an element of 1, 2, 4, 8 or 16 bytes of global memory. One of 16 bytes is two halves, which other threads may
/// overwrite apart.
///
/// # Safety
/// As [`load_relaxed`].
#[inline(always)]
pub unsafe fn store_relaxed<T: Copy>(to: *mut T, value: T) {
    // SAFETY: as promised by the caller.
    unsafe {
        store_elements(
            (&raw const value).cast(),
            to.cast(),
            size_of::<T>(),
            size_of::<T>(),
        )
    };
}

/// An operation for each element of memory: `$operation` is called with the type of the atomic, that of its value, and
/// the offset. The atomic of 8 bytes is a pointer's, so that pointers among the elements stay pointers.
macro_rules! for_each_element {
    ($bytes:expr, $element_bytes:expr, $operation:ident) => {{
        const { assert!(size_of::<*mut ()>() == 8, "device pointers have 64 bits") };
        let (bytes, element_bytes) = ($bytes, $element_bytes);
        match element_bytes {
            1 => (0..bytes).for_each(|at| $operation!(AtomicU8, u8, at)),
            2 => (0..bytes)
                .step_by(2)
                .for_each(|at| $operation!(AtomicU16, u16, at)),
            4 => (0..bytes)
                .step_by(4)
                .for_each(|at| $operation!(AtomicU32, u32, at)),
            _ => (0..bytes)
                .step_by(8)
                .for_each(|at| $operation!(AtomicPtr<()>, *mut (), at)),
        }
    }};
}

/// Copies elements of global memory to memory that the thread alone uses.
///
/// # Safety
/// As [`load_relaxed`] for each element at `from`. `bytes` is a multiple of `element_bytes`. `to` has room for them.
#[inline(always)]
pub(crate) unsafe fn load_elements(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    element_bytes: usize,
) {
    macro_rules! load {
        ($atomic:ty, $value:ty, $at:expr) => {{
            // SAFETY: as promised by the caller.
            unsafe {
                let value = <$atomic>::from_ptr(from.add($at).cast_mut().cast()).load(Relaxed);
                to.add($at).cast::<$value>().write_unaligned(value);
            }
        }};
    }
    for_each_element!(bytes, element_bytes, load);
}

/// Copies elements from memory that the thread alone uses to global memory.
///
/// # Safety
/// As [`load_relaxed`] for each element at `to`. `bytes` is a multiple of `element_bytes`, and `from` has so many.
#[inline(always)]
pub(crate) unsafe fn store_elements(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    element_bytes: usize,
) {
    macro_rules! store {
        ($atomic:ty, $value:ty, $at:expr) => {{
            // SAFETY: as promised by the caller.
            unsafe {
                let value = from.add($at).cast::<$value>().read_unaligned();
                <$atomic>::from_ptr(to.add($at).cast()).store(value, Relaxed);
            }
        }};
    }
    for_each_element!(bytes, element_bytes, store);
}

/// Whether elements of global memory have the values of memory that the thread alone uses.
///
/// # Safety
/// As [`store_elements`].
#[inline]
pub(crate) unsafe fn has_elements(memory: *const u8, values: &[u8], element_bytes: usize) -> bool {
    let mut found = [0u8; 16];
    let bytes = values.len().min(found.len());
    // SAFETY: as promised by the caller.
    unsafe {
        load_elements(
            memory,
            ptr::from_mut(&mut found).cast(),
            bytes,
            element_bytes,
        )
    };
    found[..bytes] == *values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_size_are_copied() {
        let values: [u8; 16] = std::array::from_fn(|i| i as u8 + 1);
        for element_bytes in [1, 2, 4, 8, 16] {
            let mut memory = [0u128; 2];
            let to: *mut u8 = memory.as_mut_ptr().cast();
            // SAFETY: both have 16 bytes.
            unsafe {
                store_elements(values.as_ptr(), to, 16, element_bytes);
                assert!(has_elements(to, &values, element_bytes));
                assert_eq!(load_relaxed(to.cast::<u128>()), memory[0]);
                store_relaxed(to.add(16).cast::<u32>(), 5);
            }
            assert_eq!(memory, [u128::from_le_bytes(values), 5]);
        }
    }

    /// Miri would find a pointer that lost its provenance.
    #[test]
    fn a_pointer_stays_a_pointer() {
        let number = 7;
        let (from, mut memory) = (&raw const number, ptr::null::<i32>());
        // SAFETY: both are pointers, and the number lives.
        unsafe {
            store_elements((&raw const from).cast(), (&raw mut memory).cast(), 8, 8);
            assert_eq!(*load_relaxed(&raw const memory), 7);
        }
    }
}
