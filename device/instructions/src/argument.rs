//! Arguments where the launch put them.

use cutlet_device::{GlobalMut, kernel};

/// One that is read there, and a plain one before it.
///
/// # Safety
/// There are as many places at `sums` as terms.
#[kernel(threads = 32)]
pub unsafe fn argument_in_place(sums: GlobalMut<u64>, #[grid_constant] terms: &[u64; 4]) {
    for (nth, term) in terms.iter().enumerate() {
        // SAFETY: the caller promises that there is a place.
        unsafe { sums.store(nth as i64, sums.load(nth as i64) + term) };
    }
}
