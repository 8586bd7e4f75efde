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

    /// Counts a thread in, as so many, and returns the phase it arrived in.
    #[track_caller]
    fn arrive(&self, thread: &Thread, counts: u32, id: u32, threads: u32) -> u32 {
        let phase = self.phase.get();
        let there = self.arrived.get();
        if there == 0 {
            self.expected.set(threads);
        } else if self.expected.get() != threads {
            panic!(
                "barrier {id} is used for {threads} threads here, but for {} threads by the {there} already there",
                self.expected.get(),
            );
        }
        let arrived = there + counts;
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
    let phase = barrier.arrive(thread, 1, 0, block.threads);
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
/// Whole warps are counted, the block's last one, too, if it has fewer threads.
///
/// # Panics
/// If `id` is not below 16, if `threads` is zero, not a multiple of the warp size or more than the
/// block's warps have, or if a thread already there gave another number.
#[track_caller]
pub fn barrier_sync(id: u32, threads: u32) {
    let thread = current();
    let (barrier, counts) = named(thread, id, threads);
    let phase = barrier.arrive(thread, counts, id, threads);
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
    let (barrier, counts) = named(thread, id, threads);
    barrier.arrive(thread, counts, id, threads);
}

/// The barrier, and how many threads this one counts as: the block's last one stands for those that its warp lacks.
#[track_caller]
fn named(thread: &Thread, id: u32, threads: u32) -> (&Barrier, u32) {
    let block = thread.block();
    assert!(
        (id as usize) < BARRIERS,
        "barrier {id} does not exist: a block has barriers 0 to 15"
    );
    let whole_warps = block.threads.next_multiple_of(32);
    assert!(
        threads > 0 && threads.is_multiple_of(32) && threads <= whole_warps,
        "barrier {id} for {threads} threads: the number must be a multiple of 32 and at most the {whole_warps} of the \
         block's warps"
    );
    let counts = match thread.linear + 1 == block.threads {
        true => 1 + whole_warps - block.threads,
        false => 1,
    };
    (&block.barriers[id as usize], counts)
}
