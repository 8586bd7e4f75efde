//! Programmatic dependent launch: a kernel may begin while the previous kernel of its stream still runs.
//!
//! On the CPU the previous kernel has always ended. The model checks that each thread of a launch that may begin early
//! waits before it touches global memory.

use crate::context::{current, current_or_null};

/// Waits for the previous kernels of the stream.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn grid_dependency_wait() {
    current().waited_for_previous.set(true);
}

/// To be called where global memory is read or written.
///
/// # Panics
/// If the launch may have begun before the previous kernel ended, and the thread has not waited for that kernel.
#[inline]
#[track_caller]
pub fn check_dependency() {
    // SAFETY: as in `current`. Outside of a kernel there is nothing to wait for.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return;
    };
    assert!(
        !thread.block().dims.overlaps_previous || thread.waited_for_previous.get(),
        "global memory is used before grid_dependency_wait in a launch that may begin early (overlap_previous): the \
         previous kernel may still write what this thread reads, or read what it writes; call grid_dependency_wait \
         first"
    );
}
