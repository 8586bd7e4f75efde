//! Entries of arrays, by indices that are constants once code is generated.
//!
//! Then a check of the index costs nothing at run time. That of `array[v]` costs compile time even so:
//! it would print both numbers, and what prints numbers is compiled into every kernel before it turns
//! out that nothing is ever printed.

/// Entry `v`.
#[inline(always)]
pub(crate) fn entry<T, const N: usize>(array: &[T; N], v: usize) -> &T {
    assert!(v < N);
    // SAFETY: the entry exists.
    unsafe { array.get_unchecked(v) }
}

/// Sets entry `v`.
#[inline(always)]
pub(crate) fn set_entry<T: Copy, const N: usize>(array: &mut [T; N], v: usize, value: T) {
    assert!(v < N);
    // SAFETY: the entry exists.
    unsafe { *array.get_unchecked_mut(v) = value }
}
