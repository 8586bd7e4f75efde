//! Models of what Hopper GPUs do asynchronously: mbarriers, TMA, `wgmma`, clusters, launches that overlap.
//!
//! The models do late what may be done late, so that code that does not wait gets wrong results
//! here too: matrix products are computed, and stores read their source, when they are waited for.
//! What copies bring to shared memory is there at once, but whoever uses it without having waited for it
//! ends in an error, and so does a copy to where products may still be reading.

mod cluster_barrier;
mod dependent_launch;
mod in_flight;
mod mbarrier;
mod stmatrix;
mod store_async;
mod tensor_map;
mod tma;
mod wgmma;

pub use cluster_barrier::{cluster_arrive, cluster_wait};
pub use dependent_launch::{check_dependency, grid_dependency_wait};
pub(crate) use in_flight::check_arrived;
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

use std::cell::Cell;

use crate::context::{Block, Thread, current};
use crate::knowledge::Series;

/// What the models keep for a block.
#[derive(Default)]
pub(crate) struct BlockState {
    mbarriers: mbarrier::Barriers,
    in_flight: in_flight::InFlight,
    /// Of the whole cluster; the one of the block with rank 0 is used.
    cluster_barrier: cluster_barrier::ClusterBarrier,
    warpgroups: wgmma::Warpgroups,
    ended_threads: Cell<u32>,
    /// How many series have been numbered; of the whole cluster, as the barrier.
    series: Cell<u32>,
}

/// A new series of a cluster.
fn new_series(block: &Block) -> Series {
    let count = &block.first_of_cluster().hopper.series;
    count.set(count.get() + 1);
    Series(count.get() - 1)
}

/// What the models keep for a thread.
#[derive(Default)]
pub(crate) struct ThreadState {
    stores: tma::Stores,
    cluster_arrival: Cell<Option<u32>>,
    /// Whether it has called `grid_dependency_wait`.
    waited_for_previous: Cell<bool>,
}

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread leaves something behind that it should have waited for.
pub(crate) fn thread_ends(thread: &Thread) {
    let state = &thread.block().hopper;
    state.ended_threads.set(state.ended_threads.get() + 1);
    cluster_barrier::thread_ends(thread);
    tma::thread_ends(thread);
    wgmma::thread_ends(thread);
}

/// What is wrong with a block's barriers when all threads of its cluster have ended, and the thread
/// that initialised the barrier.
pub(crate) fn leftover(block: &Block) -> Option<(u32, String)> {
    mbarrier::leftover(block)
}

/// The block of the running cluster with the given rank, which must still have threads running:
/// others may not touch the shared memory of one that has ended.
#[track_caller]
fn running_block<'a>(rank: u32) -> &'a Block {
    let cluster = current().block().all_of_cluster();
    let Some(block) = cluster.get(rank as usize) else {
        panic!(
            "there is no block {rank} in a cluster of {} blocks",
            cluster.len()
        )
    };
    assert!(
        block.hopper.ended_threads.get() < block.threads,
        "block {rank} of the cluster has ended, and with it its shared memory: let all blocks of a \
         cluster meet at a cluster barrier (or drain their pipelines) before one ends"
    );
    block
}
