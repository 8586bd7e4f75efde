//! Launching a kernel: what is asked for, whether that can be, and the call that does it.

use std::panic::resume_unwind;
use std::thread;

use crate::context::in_kernel;
use crate::error::SimtError;
use crate::grid::Grid;
use crate::shared::MAX_SHARED_BYTES;
use crate::{overflow, panic, pool};

/// Most threads a block may have.
const MAX_BLOCK_THREADS: u64 = 1024;
/// Largest extents of a block.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Largest extents of a grid.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most blocks a cluster may have.
const MAX_CLUSTER: u32 = 16;

/// What to launch: a kernel's name for messages, and how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSpec<'a> {
    /// Name of the kernel, for error messages.
    pub kernel: &'a str,
    /// Extents of the grid in blocks, `[x, y, z]`.
    pub grid: [u32; 3],
    /// Extents of a block in threads, `[x, y, z]`; at most 1024 threads in all.
    pub block: [u32; 3],
    /// Blocks of a cluster, which lie side by side along x; 0 and 1 both mean no clusters.
    pub cluster: u32,
    /// Bytes of shared memory each block gets.
    pub shared_bytes: u32,
    /// Whether it may begin while the kernel before it ends, so that its threads wait
    /// ([`grid_dependency_wait`](crate::grid_dependency_wait)) before they use global memory.
    pub overlap_previous: bool,
}

impl LaunchSpec<'_> {
    fn check(&self) -> Result<(), String> {
        let Self {
            grid,
            block,
            cluster,
            shared_bytes,
            ..
        } = *self;
        let within = |extents: [u32; 3], limits: [u32; 3]| {
            extents
                .iter()
                .zip(limits)
                .all(|(&extent, limit)| (1..=limit).contains(&extent))
        };
        if in_kernel() {
            return Err("a kernel cannot launch another one".to_owned());
        }
        if !within(block, MAX_BLOCK)
            || block.iter().map(|&n| u64::from(n)).product::<u64>() > MAX_BLOCK_THREADS
        {
            return Err(format!(
                "a block of {block:?} threads: each extent must be at least 1 and at most {MAX_BLOCK:?}, their \
                 product at most {MAX_BLOCK_THREADS}"
            ));
        }
        if !within(grid, MAX_GRID) {
            return Err(format!(
                "a grid of {grid:?} blocks: each extent must be at least 1 and at most {MAX_GRID:?}"
            ));
        }
        if cluster > MAX_CLUSTER {
            return Err(format!(
                "a cluster of {cluster} blocks: at most {MAX_CLUSTER} are possible"
            ));
        }
        if cluster > 1 && grid[0] % cluster != 0 {
            return Err(format!(
                "{} blocks along x do not divide into clusters of {cluster}: round the grid up",
                grid[0]
            ));
        }
        if shared_bytes > MAX_SHARED_BYTES {
            return Err(format!(
                "{shared_bytes} bytes of shared memory: no GPU has more than {MAX_SHARED_BYTES} a block"
            ));
        }
        Ok(())
    }
}

/// Runs `body` once for every thread of the grid, and returns when all of them have ended.
///
/// Clusters run on all cores, the calling thread's included. The order in which threads and blocks
/// run is not defined, as on a GPU.
///
/// # Errors
/// [`SimtError`]; after an error, blocks that were not finished are abandoned (their threads
/// unwind).
pub fn launch(spec: &LaunchSpec<'_>, body: &(dyn Fn() + Sync)) -> Result<(), SimtError> {
    spec.check().map_err(|reason| SimtError::InvalidLaunch {
        kernel: spec.kernel.to_owned(),
        reason,
    })?;
    // Threads see by their OS thread's panic that they unwind: it must not be that of a destructor which launches.
    if thread::panicking() {
        let launched = thread::scope(|scope| scope.spawn(|| launch(spec, body)).join());
        return launched.unwrap_or_else(|payload| resume_unwind(payload));
    }
    panic::install_hook();
    let grid = Grid::new(spec, body);
    pool::run(grid.max_cores(), &|| {
        overflow::watch_this_thread();
        grid.work();
    });
    grid.into_result()
}
