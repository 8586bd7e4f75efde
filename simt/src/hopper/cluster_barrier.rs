//! The barrier of a cluster.

use std::cell::Cell;
use std::fmt::{self, Display};

use crate::context::{Thread, current};
use crate::knowledge::Meeting;
use crate::wait::{WaitKind, yield_until};

/// How many of a cluster's threads are at its barrier.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    arrived: Cell<u32>,
    ended: Cell<u32>,
    phase: Cell<u32>,
    meeting: Meeting,
}

impl ClusterBarrier {
    /// Lets everybody go on if all threads that have not ended are there.
    fn check(&self, threads: u32) {
        let arrived = self.arrived.get();
        if arrived > 0 && arrived + self.ended.get() == threads {
            self.meeting.end(None);
            self.arrived.set(0);
            self.phase.set(self.phase.get().wrapping_add(1));
        }
    }
}

fn of(thread: &Thread) -> (&ClusterBarrier, u32) {
    let block = thread.block();
    let barrier = &block.first_of_cluster().hopper.cluster_barrier;
    (barrier, block.threads * block.dims.cluster)
}

/// Counts the thread in at the barrier of its cluster, without waiting.
///
/// # Panics
/// If the thread has not waited since it last arrived, or outside of a kernel.
#[track_caller]
pub fn cluster_arrive() {
    let thread = current();
    let (barrier, threads) = of(thread);
    let phase = barrier.phase.get();
    assert!(
        thread.hopper.cluster_arrival.replace(Some(phase)).is_none(),
        "a thread calls cluster_arrive twice without cluster_wait in between"
    );
    barrier.meeting.arrive(thread);
    barrier.arrived.set(barrier.arrived.get() + 1);
    barrier.check(threads);
}

/// Waits until all threads of the cluster that have not ended have arrived.
///
/// # Panics
/// If the thread has not arrived, or outside of a kernel.
#[track_caller]
pub fn cluster_wait() {
    let thread = current();
    let (barrier, threads) = of(thread);
    let Some(phase) = thread.hopper.cluster_arrival.take() else {
        panic!("a thread calls cluster_wait without cluster_arrive before it");
    };
    yield_until(
        WaitKind::Cluster,
        format_args!(
            "waits at the cluster's barrier for {threads} threads, of which {} are there",
            // As it is when the message is written, not when the wait began.
            fmt::from_fn(|f| barrier.arrived.get().fmt(f))
        ),
        || barrier.phase.get() != phase,
    );
    barrier.meeting.leave(thread);
}

/// Nobody waits any longer for a thread that has ended.
pub(super) fn thread_ends(thread: &Thread) {
    assert!(
        thread.hopper.cluster_arrival.get().is_none(),
        "a thread ended between cluster_arrive and cluster_wait"
    );
    let (barrier, threads) = of(thread);
    barrier.ended.set(barrier.ended.get() + 1);
    barrier.check(threads);
}
