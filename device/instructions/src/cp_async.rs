//! `cp.async`.

use cutlet_device::sm80::{cp_async, cp_async_commit, cp_async_wait, cp_async_zfill};
use cutlet_device::{Global, SharedMemory, kernel};

/// Copies of 4, 8 and 16 bytes, which are waited for.
///
/// # Safety
/// `from` has `count` elements, and at most 4.
#[kernel(threads = 32, shared = 16)]
pub unsafe fn copies(from: Global<u32>, count: u32) {
    let to = SharedMemory::new().take::<u32>(4);
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
#[kernel(threads = 32, shared = 16)]
pub unsafe fn conditional_copies(from: Global<u32>, count: u32) {
    let to = SharedMemory::new().take::<u32>(4);
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
