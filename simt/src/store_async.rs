//! `st.async`: a thread's store to a block's shared memory whose bytes count at an mbarrier there.

use crate::async_copy::AsyncCopy;
use crate::mbarrier::mbarrier_complete_tx;

/// Copies `bytes` bytes (4, 8 or 16) from host memory to the shared address `to`, and counts them at the mbarrier at
/// `barrier`.
///
/// # Panics
/// If `to` is not a multiple of `bytes` or not in shared memory, if the destination may be in use, if the mbarrier
/// cannot count the bytes, or outside of a kernel.
///
/// # Safety
/// The source must have `bytes` bytes.
#[track_caller]
pub unsafe fn store_async(from: *const u8, bytes: u32, to: u32, barrier: u32) {
    let to = AsyncCopy::begin(barrier).to(to, bytes, bytes);
    // SAFETY: the caller promises the source; `AsyncCopy::to` checked the destination.
    unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
    mbarrier_complete_tx(barrier, bytes);
}
