//! Arguments of one byte between larger ones.

use cutlet_device::{GlobalMut, kernel, thread_idx};

/// Writes the arguments.
///
/// # Safety
/// `to` has four elements.
#[kernel(threads = 32)]
pub unsafe fn flags(
    first: bool,
    number: u32,
    second: bool,
    to: GlobalMut<u32>,
    #[grid_constant] third: &bool,
) {
    if thread_idx().is_first() {
        let found = [
            u32::from(first),
            number,
            u32::from(second),
            u32::from(*third),
        ];
        // SAFETY: as promised by the caller.
        unsafe { to.store_vec(0, found) };
    }
}
