//! Block barriers: `sync_threads` and the numbered barriers of which it is number 0.

use std::cell::Cell;
use std::fmt::{self, Display};

use crate::context::{BARRIERS, Thread, current};
use crate::knowledge::Meeting;
use crate::wait::{WaitKind, yield_until};

/// One numbered barrier of a block.
#[derive(Default)]
pub(crate) struct Barrier {
    arrived: Cell<u32>,
    expected: Cell<u32>,
    phase: Cell<u32>,
    meeting: Meeting,
}

impl Barrier {
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived.get()
    }

    /// Counts a thread in and returns the phase it arrived in.
    #[track_caller]
    fn arrive(&self, thread: &Thread, id: u32, threads: u32) -> u32 {
        let phase = self.phase.get();
        let arrived = self.arrived.get() + 1;
        if arrived == 1 {
            self.expected.set(threads);
        } else if self.expected.get() != threads {
            panic!(
                "barrier {id} is used for {threads} threads here, but for {} threads by the {} already there",
                self.expected.get(),
                arrived - 1
            );
        }
        self.meeting.arrive(thread);
        if arrived == threads {
            self.meeting.end(None);
            self.arrived.set(0);
            self.phase.set(phase.wrapping_add(1));
        } else {
            self.arrived.set(arrived);
        }
        phase
    }
}

/// Waits until all threads of the block have called it.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn sync_threads() {
    let thread = current();
    let block = thread.block();
    let barrier = &block.barriers[0];
    let phase = barrier.arrive(thread, 0, block.threads);
    yield_until(
        WaitKind::BlockBarrier,
        format_args!("waits at sync_threads"),
        || barrier.phase.get() != phase,
    );
    barrier.meeting.leave(thread);
}

/// Waits at barrier `id` until `threads` threads of the block, this one included, have reached it,
/// be it by [`barrier_sync`] or by [`barrier_arrive`].
///
/// # Panics
/// If `id` is not below 16, if `threads` is zero, not a multiple of the warp size or more than the
/// block has, or if a thread already there gave another number.
#[track_caller]
pub fn barrier_sync(id: u32, threads: u32) {
    let thread = current();
    let barrier = named(thread, id, threads);
    let phase = barrier.arrive(thread, id, threads);
    yield_until(
        WaitKind::Cluster,
        format_args!(
            "waits at barrier {id} for {threads} threads, of which {} are there",
            // As it is when the message is written, not when the wait began.
            fmt::from_fn(|f| barrier.arrived().fmt(f))
        ),
        || barrier.phase.get() != phase,
    );
    barrier.meeting.leave(thread);
}

/// Counts the thread in at barrier `id` without waiting. Arguments and panics as for
/// [`barrier_sync`].
#[track_caller]
pub fn barrier_arrive(id: u32, threads: u32) {
    let thread = current();
    named(thread, id, threads).arrive(thread, id, threads);
}

#[track_caller]
fn named(thread: &Thread, id: u32, threads: u32) -> &Barrier {
    let block = thread.block();
    assert!(
        (id as usize) < BARRIERS,
        "barrier {id} does not exist: a block has barriers 0 to 15"
    );
    let whole_warps = block.threads.next_multiple_of(32);
    assert!(
        threads > 0 && threads.is_multiple_of(32) && threads <= whole_warps,
        "barrier {id} for {threads} threads: the number must be a multiple of 32 and at most the {} of the block",
        block.threads
    );
    &block.barriers[id as usize]
}
