//! Runs GPU kernel bodies on the CPU, every GPU thread a coroutine.
//!
//! [`launch`] takes a grid, a block and a closure, and calls the closure once per GPU thread. In the closure, this
//! crate's functions say which thread is running ([`thread_idx`], [`block_idx`], …) and model what the threads of a GPU
//! do together: block barriers ([`sync_threads`], [`barrier_sync`]), warp shuffles and votes ([`warp_exchange`]), and
//! shared memory ([`shared_bytes`]).
//!
//! - A **thread** is a stackful coroutine. It runs until it must wait. Then the next thread of its cluster runs.
//! - A **cluster** is what the scheduler hands out; it is one block unless the launch asks for more. All threads of a
//!   cluster run on one OS thread, so that nothing they share needs a lock.
//! - The clusters of a grid are spread over the cores.
//!
//! Every way of waiting is built on one primitive, [`yield_until`]. If all threads of a cluster wait and no other
//! cluster can help, the launch ends with an error that says which threads wait for what. A panic
//! in a kernel and a wrong access to memory end the launch with an error, too ([`SimtError`]).
//!
//! A launch never hangs. After 60 seconds without progress it ends with an error, which names the threads that run, and
//! the threads that wait by what they wait for. If they cannot be ended, the process ends with that message, which then
//! also has the lines at which the threads run (on Linux, in programs with line tables). Progress is that a thread
//! begins to run, waits or ends. The environment variable `CUTLET_SIMT_WATCHDOG_SECONDS` sets another number of
//! seconds, and 0 is no limit.
//!
//! Each thread has 512 KiB of stack, or as many KiB as the environment variable `CUTLET_SIMT_STACK_KIB` says. A stack
//! overflow ends the process with a message that names kernel, block and thread.
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

// Layers, from the bottom. A file imports only from its own layer and from those before it.

// Errors, and what the operating system gives.
mod error;
mod interrupt;
mod panic;
mod pool;
mod stack;

// State of threads, warps and blocks. It does not know which thread is running.
mod barrier;
mod buffers;
mod in_flight;
mod known;
mod launch_shadow;
mod live_memory;
mod model_state;
mod relaxed;
mod report;
mod shadow;
mod shared_address;
mod shared_memory;
mod shown_wait;
mod site;
mod vector_clock;
mod wait;
mod warp;
mod written;

// The running thread, and what it can do with others.
mod access;
mod context;
mod flags;
mod global;
mod outputs;
mod races;
mod shared;
mod suspend;
mod sync;
mod timelines;
mod traffic;
mod unwritten;

// Models of the hardware, and accesses that they check. A model does as late as it may what code must wait for, so that
// code that does not wait gets wrong results here, too: matrix products are computed, and stores read their source,
// when they are waited for. Copies write to shared memory at once. A thread that uses their bytes without having waited
// for them gets an error, and so does a copy to where products may still read.
mod async_copy;
mod cp_async;
mod dependent_launch;
mod ldmatrix;
mod mbarrier;
mod shared_access;
mod sm80;
mod sm90;
mod stmatrix;
mod store_async;
mod tma;

// The executor.
mod cluster;
mod grid;
mod launch;
mod launch_spec;
mod overflow;
mod watchdog;
mod worker;

pub use access::shared_bytes;
pub use buffers::{Buffers, untagged};
pub use context::{
    attribute_to, block_dim, block_idx, cluster_rank, cluster_size, grid_dim, in_kernel, lane,
    linear_thread_idx, thread_idx, warp,
};
pub use cp_async::{cp_async, cp_async_commit, cp_async_wait};
pub use dependent_launch::{check_dependency, grid_dependency_wait};
pub use error::{Running, SimtError, Stopped, Waiting};
pub use flags::{AtomicOrder, after_atomic, before_atomic, fence};
pub use global::{global_bytes, store_global};
pub use launch::{launch, launch_with};
pub use launch_spec::LaunchSpec;
pub use ldmatrix::ldmatrix;
pub use live_memory::{Contents, LiveMemory};
pub use mbarrier::{
    mbarrier_arrive, mbarrier_expect_tx, mbarrier_init, mbarrier_invalidate, mbarrier_try_wait,
    mbarrier_wait,
};
pub use races::{check_races, checks_races};
pub use relaxed::{load_relaxed, store_relaxed};
pub use report::{LaunchReport, Memory, SiteReport, UnwrittenReport, collect_reports};
pub use shadow::MemoryAccess;
pub use shared::{map_shared_rank, reserve_shared, shared_base, shared_size};
pub use shared_access::{access_shared, store_shared};
pub use sm80::{MmaOperand, MmaShape, MmaSums, mma_sync};
pub use sm90::{
    WgmmaA, WgmmaArithmetic, WgmmaOperand, WgmmaRegisters, WgmmaShape, WgmmaSums, wgmma,
    wgmma_commit, wgmma_fence, wgmma_wait,
};
pub use stmatrix::stmatrix;
pub use store_async::store_async;
pub use suspend::{polled, yield_until};
pub use sync::{
    barrier_arrive, barrier_sync, cluster_arrive, cluster_arrive_relaxed, cluster_wait,
    sync_threads, sync_warp, warp_exchange,
};
pub use tma::{
    TensorMapModel, bulk_store_commit, bulk_store_wait, tma_load, tma_prefetch, tma_store,
};
pub use wait::WaitKind;
pub use warp::{Lanes, WARP_SIZE};
