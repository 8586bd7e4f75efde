//! `cp.async`: copies from global to shared memory, in groups that the issuing thread waits for.
//!
//! The groups of a thread are the events of its own timeline. They complete for the thread when it waits for them, and
//! for others when they synchronise with the thread afterwards. A copy writes to shared memory at once. A thread that
//! uses its bytes without knowing that they have arrived gets an error.

use std::cell::Cell;

use crate::access::{Access, check_arrived};
use crate::context::{Thread, current};
use crate::dependent_launch::check_dependency;
use crate::global::global_bytes;
use crate::in_flight::Arrival;
use crate::relaxed::load_elements;
use crate::shadow::MemoryAccess;
use crate::shared::{locate, other_rank};
use crate::sm90::check_not_read;
use crate::timelines::{Events, Timelines};
use crate::vector_clock::Timeline;

/// The copies of a thread.
#[derive(Default)]
struct Copies {
    /// The timeline of the thread's groups, made at its first copy.
    timeline: Cell<Option<Timeline>>,
    /// How many groups the thread has committed.
    committed: Cell<u32>,
    /// The latest group that has a copy, counted from 1.
    last: Cell<u32>,
}

/// Copies `filled` bytes from `from` to the shared address `to`, and writes zeros for the rest of `bytes` bytes. The
/// source is read at once.
///
/// # Panics
/// - If `bytes` is not 4, 8 or 16, or `filled` is more than `bytes`.
/// - If an address is not a multiple of `bytes`, or `to` is not in the block's shared memory.
/// - If another copy to these bytes is in flight, or `wgmma` may still read them.
/// - If the thread has not waited for the kernels before.
/// - Outside of a kernel.
///
/// # Safety
/// The first `filled` bytes at `from` can be read.
#[track_caller]
pub unsafe fn cp_async(to: u32, from: *const u8, bytes: u32, filled: u32) {
    assert!(
        matches!(bytes, 4 | 8 | 16),
        "cp.async of {bytes} bytes: it copies 4, 8 or 16"
    );
    assert!(
        filled <= bytes,
        "cp.async reads {filled} bytes to fill {bytes}: give a count of at most the elements of the copy"
    );
    if let Some(rank) = other_rank(to) {
        panic!(
            "cp.async copies to the shared memory of block {rank} of the cluster: it can only copy to that of its own \
             block"
        );
    }
    let (block, offset) = locate(to, bytes, bytes);
    check_arrived("is overwritten too early", block, offset, bytes);
    check_not_read(block, offset, bytes);
    Access::by_running_thread("is overwritten too early").check_overwrites(block, offset, bytes);

    let thread = current();
    let copies = thread.models.get_or_default::<Copies>();
    let timeline = copies.timeline.get().unwrap_or_else(|| {
        let timeline = Timelines::add(
            block,
            Events::CopyGroups {
                rank: block.rank,
                thread: thread.linear,
            },
        );
        copies.timeline.set(Some(timeline));
        timeline
    });
    let group = copies.committed.get() + 1;
    copies.last.set(group);
    let arrival = Arrival {
        timeline,
        event: group,
    };
    let shared = &block.shared;
    shared.set_written(offset, bytes);
    shared.in_flight.set(shared.bytes(), offset, bytes, arrival);

    let target = shared.at(offset);
    if filled > 0 {
        check_dependency();
        let from = global_bytes(from, filled as usize, bytes as usize, MemoryAccess::Load);
        // The largest unit that the elements consist of.
        let unit = 1 << filled.trailing_zeros().min(2);
        // SAFETY: the caller promises the source, and `locate` checked the target.
        unsafe { load_elements(from, target, filled as usize, unit) };
    }
    // SAFETY: `locate` checked the target.
    unsafe {
        target
            .add(filled as usize)
            .write_bytes(0, (bytes - filled) as usize);
    }
}

/// Commits the copies that the thread has issued since its last commit as one group.
///
/// # Panics
/// Outside of a kernel.
pub fn cp_async_commit() {
    let committed = &current().models.get_or_default::<Copies>().committed;
    committed.set(committed.get() + 1);
}

/// Waits until at most `pending` groups of the thread are in flight.
///
/// # Panics
/// Outside of a kernel.
pub fn cp_async_wait(pending: u32) {
    let thread = current();
    let copies = thread.models.get_or_default::<Copies>();
    let completed = copies.committed.get().saturating_sub(pending);
    if let Some(timeline) = copies.timeline.get() {
        thread.clock.borrow_mut().complete_own(timeline, completed);
    }
}

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has not waited for its copies.
pub(crate) fn thread_ends(thread: &Thread) {
    let Some(copies) = thread.models.get::<Copies>() else {
        return;
    };
    let Some(timeline) = copies.timeline.get() else {
        return;
    };
    assert!(
        copies.last.get() <= copies.committed.get(),
        "the thread ends with cp.async copies that it has not committed: commit them and wait for them first"
    );
    assert!(
        copies.last.get() <= thread.clock.borrow().completed(timeline),
        "the thread ends with cp.async copies that it has not waited for: call cp_async_wait first"
    );
}
