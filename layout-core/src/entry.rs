//! Entries of arrays at indices that are constants when code is generated.
//!
//! Checking such an index costs nothing at run time. The check of `array[v]` still costs compile
//! time: its message prints both numbers, and the code that prints is compiled into every kernel
//! before the compiler finds it dead.

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
