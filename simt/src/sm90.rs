//! Models of what sm_90 does asynchronously: mbarriers, TMA, `wgmma`, and launches that overlap.
//!
//! A model does as late as it may what code must wait for, so that code that does not wait gets wrong results here,
//! too: matrix products are computed, and stores read their source, when they are waited for. Copies write to shared
//! memory at once. A thread that uses their bytes without having waited for them gets an error, and so does a copy to
//! where products may still read.

mod async_copy;
mod dependent_launch;
mod mbarrier;
mod stmatrix;
mod store_async;
mod tensor_map;
mod tma;
mod wgmma;

pub use dependent_launch::{check_dependency, grid_dependency_wait};
pub use mbarrier::{
    mbarrier_arrive, mbarrier_expect_tx, mbarrier_init, mbarrier_invalidate, mbarrier_try_wait,
    mbarrier_wait,
};
pub use stmatrix::stmatrix;
pub use store_async::store_async;
pub use tensor_map::TensorMapModel;
pub use tma::{bulk_store_commit, bulk_store_wait, tma_load, tma_store};
pub use wgmma::{
    WgmmaOperand, WgmmaShape, WgmmaSums, wgmma, wgmma_commit, wgmma_fence, wgmma_wait,
};

pub(crate) use wgmma::check_not_read;

use crate::context::{Block, Thread};

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has not waited for its stores or products.
pub(crate) fn thread_ends(thread: &Thread) {
    tma::thread_ends(thread);
    wgmma::thread_ends(thread);
}

/// To be called when all threads of a block's cluster have ended. Describes an mbarrier whose byte counts do not add
/// up, and says which thread initialised it.
pub(crate) fn unbalanced_mbarrier(block: &Block) -> Option<(u32, String)> {
    mbarrier::unbalanced(block)
}
