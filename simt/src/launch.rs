//! Launching a kernel.

use std::panic::resume_unwind;
use std::thread;

use crate::buffers::Buffers;
use crate::context::running_thread;
use crate::error::SimtError;
use crate::grid::Grid;
use crate::launch_spec::LaunchSpec;
use crate::watchdog::Watch;
use crate::{overflow, panic, pool, worker};

/// Runs `body` once for every thread of the grid. Returns when all threads have ended.
///
/// Clusters run on all cores, that of the calling thread included. As on a GPU, the order in which threads and blocks
/// run is not defined.
///
/// The threads may use any global memory. [`launch_with`] checks theirs.
///
/// # Errors
/// [`SimtError`]. After an error, the blocks that have not ended are abandoned, and their threads unwind.
pub fn launch(spec: &LaunchSpec<'_>, body: &(dyn Fn() + Sync)) -> Result<(), SimtError> {
    run(spec, None, body)
}

/// [`launch`] of a kernel that uses no global memory but these buffers and [`LiveMemory`](crate::LiveMemory). Every
/// access is checked against them ([`global_bytes`](crate::global_bytes)).
///
/// # Errors
/// As [`launch`], and if a thread accesses other memory.
pub fn launch_with(
    spec: &LaunchSpec<'_>,
    buffers: &Buffers,
    body: &(dyn Fn() + Sync),
) -> Result<(), SimtError> {
    run(spec, Some(buffers), body)
}

fn run(
    spec: &LaunchSpec<'_>,
    buffers: Option<&Buffers>,
    body: &(dyn Fn() + Sync),
) -> Result<(), SimtError> {
    spec.check().map_err(|reason| SimtError::InvalidLaunch {
        kernel: spec.kernel.to_owned(),
        reason,
    })?;
    // A GPU thread takes a panic of its OS thread for its own. A destructor that launches while it unwinds gets an OS
    // thread of its own.
    if thread::panicking() {
        let launched = thread::scope(|scope| scope.spawn(|| run(spec, buffers, body)).join());
        return launched.unwrap_or_else(|payload| resume_unwind(payload));
    }
    panic::install_hook(running_thread);
    let grid = Grid::new(spec, buffers, body);
    let watch = Watch::new(&grid);
    pool::run(grid.max_cores(), &|| {
        overflow::watch_this_thread();
        worker::work(&grid);
    });
    drop(watch);
    grid.into_result()
}
