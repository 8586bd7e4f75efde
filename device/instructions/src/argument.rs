//! Arguments that a kernel reads in place.

use cutlet_device::{GlobalMut, kernel};

/// A pointer by value, and an argument that is read in place.
///
/// # Safety
/// `sums` has as many elements as `terms`.
#[kernel(threads = 32)]
pub unsafe fn argument_in_place(sums: GlobalMut<u64>, #[grid_constant] terms: &[u64; 4]) {
    for (nth, term) in terms.iter().enumerate() {
        // SAFETY: the caller promises that the element exists.
        unsafe { sums.store(nth as i64, sums.load(nth as i64) + term) };
    }
}
