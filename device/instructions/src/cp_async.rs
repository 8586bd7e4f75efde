//! `cp.async`.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait, cp_async_zfill};
use cutlet_device::{Global, SharedArray, kernel};

/// Copies of 4, 8 and 16 bytes, which are waited for.
///
/// # Safety
/// `from` has `count` elements, and at most 4.
#[kernel(threads = 32)]
pub unsafe fn copies(from: Global<u32>, count: u32, #[shared] to: SharedArray<u32, 4>) {
    let to = *to;
    // SAFETY: as promised by the caller.
    unsafe {
        cp_async::<_, 1>(to, from, count.min(1));
        cp_async_commit();
        cp_async_wait::<0>();
        cp_async::<_, 2>(to, from, count.min(2));
        cp_async_commit();
        cp_async_wait::<0>();
        cp_async::<_, 4>(to, from, count.min(4));
        cp_async_commit();
        cp_async_wait::<0>();
    }
}

/// Copies of 4, 8 and 16 bytes, each under a condition.
///
/// # Safety
/// `from` has `count` elements, and at most 4.
#[kernel(threads = 32)]
pub unsafe fn conditional_copies(from: Global<u32>, count: u32, #[shared] to: SharedArray<u32, 4>) {
    let to = *to;
    // SAFETY: as promised by the caller.
    unsafe {
        cp_async_zfill::<_, 1>(to, from, count >= 1);
        cp_async_commit();
        cp_async_wait::<0>();
        cp_async_zfill::<_, 2>(to, from, count >= 2);
        cp_async_commit();
        cp_async_wait::<0>();
        cp_async_zfill::<_, 4>(to, from, count >= 4);
        cp_async_commit();
        cp_async_wait::<0>();
    }
}
