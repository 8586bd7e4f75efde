//! Runs GPU kernel bodies on the CPU, every GPU thread a coroutine.
//!
//! [`launch`] takes a grid, a block and a closure, and calls the closure once per GPU thread.
//! Inside it, the functions of this crate say which thread is running ([`thread_idx`],
//! [`block_idx`], …) and model what the threads of a GPU do together: block barriers
//! ([`sync_threads`], [`barrier_sync`]), warp shuffles and votes ([`warp_exchange`]), and a block's
//! shared memory ([`shared_bytes`]).
//!
//! - A **thread** is a stackful coroutine. It runs until it must wait, then the next thread of its
//!   block runs.
//! - A **cluster** (one block, unless the launch asks for more) is what the scheduler hands out:
//!   all threads of all its blocks run on one OS thread, so that whatever they share needs no
//!   locks.
//! - The clusters of a grid are spread over the cores.
//!
//! Every way of waiting is built on one primitive, [`yield_until`]. When no thread of a cluster can
//! go on, the launch ends with an error that says who waits for what; it never hangs. A panic in a
//! kernel, a stack overflow and a wrong shared-memory access end the launch with an error too
//! ([`SimtError`]).
//!
//! Each thread has 512 KiB of stack, or as many KiB as the environment variable
//! `CUTLET_SIMT_STACK_KIB` says.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! let sum = AtomicU32::new(0);
//! let spec = cutlet_simt::LaunchSpec {
//!     kernel: "count",
//!     grid: [3, 1, 1],
//!     block: [64, 1, 1],
//!     cluster: 1,
//!     shared_bytes: 0,
//!     overlap_previous: false,
//! };
//! cutlet_simt::launch(&spec, &|| {
//!     sum.fetch_add(cutlet_simt::thread_idx()[0], Ordering::Relaxed);
//!     cutlet_simt::sync_threads();
//! })?;
//! assert_eq!(sum.into_inner(), 3 * (63 * 64 / 2));
//! # Ok::<(), cutlet_simt::SimtError>(())
//! ```

mod barrier;
mod cluster;
mod context;
mod error;
mod grid;
mod hopper;
mod knowledge;
mod launch;
mod overflow;
mod panic;
mod pool;
mod shared;
mod stack;
mod wait;
mod warp;

pub use barrier::{barrier_arrive, barrier_sync, sync_threads};
pub use context::{
    block_dim, block_idx, cluster_rank, cluster_size, grid_dim, in_kernel, lane, linear_thread_idx,
    thread_idx, warp,
};
pub use error::{SimtError, Waiting};
pub use hopper::{
    TensorMapModel, WgmmaOperand, WgmmaShape, WgmmaSums, bulk_store_commit, bulk_store_wait,
    check_dependency, cluster_arrive, cluster_wait, grid_dependency_wait, mbarrier_arrive,
    mbarrier_expect_tx, mbarrier_init, mbarrier_invalidate, mbarrier_try_wait, mbarrier_wait,
    stmatrix, store_async, tma_load, tma_store, wgmma, wgmma_commit, wgmma_fence, wgmma_wait,
};
pub use knowledge::fence;
pub use launch::{LaunchSpec, launch};
pub use shared::{map_shared_rank, shared_base, shared_bytes, shared_size};
pub use wait::{WaitKind, polled, yield_until};
pub use warp::{Lanes, WARP_SIZE, sync_warp, warp_exchange};
