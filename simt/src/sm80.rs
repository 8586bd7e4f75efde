//! Models of what sm_80 and newer GPUs do: `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! A copy by `cp.async` writes to shared memory at once. A thread that uses its bytes without knowing that they have
//! arrived gets an error.

mod cp_async;
mod ldmatrix;
mod mma_sync;

pub use cp_async::{cp_async, cp_async_commit, cp_async_wait};
pub use ldmatrix::ldmatrix;
pub use mma_sync::{MmaOperand, MmaShape, MmaSums, mma_sync};

use crate::context::Thread;

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has not waited for its copies.
pub(crate) fn thread_ends(thread: &Thread) {
    cp_async::thread_ends(thread);
}
