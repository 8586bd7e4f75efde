//! Programmatic dependent launch: a kernel that may begin while the one before it in the stream ends.
//!
//! Here the one before has ended. What is modelled is the promise: where a launch may begin early, each thread
//! waits before it touches global memory.

use crate::context::{current, current_or_null};

/// Waits for the kernels before this one.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn grid_dependency_wait() {
    current().hopper.waited_for_previous.set(true);
}

/// To be called where global memory is read or written.
///
/// # Panics
/// If the launch may have begun while the kernel before it was still running, and the thread has not waited
/// for that one.
#[inline]
#[track_caller]
pub fn check_dependency() {
    // SAFETY: as in `current`; outside of a kernel there is nothing to wait for.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return;
    };
    assert!(
        !thread.block().dims.overlaps_previous || thread.hopper.waited_for_previous.get(),
        "global memory is used before grid_dependency_wait in a launch that may begin early (overlap_previous): \
         the kernel before may still be writing what this thread reads, or reading what it writes"
    );
}
