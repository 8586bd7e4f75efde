//! `st.async`: a thread's store to a block's shared memory whose bytes count at an mbarrier there.

use super::in_flight::Copy;
use super::mbarrier::mbarrier_complete_tx;

/// Copies `bytes` bytes, 4, 8 or 16, from host memory to the shared address `to`, and counts them at the mbarrier at
/// `barrier`.
///
/// # Panics
/// If `to` is not a multiple of `bytes` or not in shared memory, if what is there may be in use, if the barrier
/// complains, or outside of a kernel.
///
/// # Safety
/// The bytes must be there.
#[track_caller]
pub unsafe fn store_async(from: *const u8, bytes: u32, to: u32, barrier: u32) {
    let to = Copy::begin(barrier).to(to, bytes, bytes);
    // SAFETY: the caller promises the source; `Copy::to` checked the other range.
    unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
    mbarrier_complete_tx(barrier, bytes);
}
