//! Barriers of a block and of a cluster: who has arrived, and in which phase. The functions that kernels call are in
//! `sync`.

use std::cell::Cell;

use crate::vector_clock::{Orders, SyncClock, VectorClock};

/// One numbered barrier of a block.
#[derive(Default)]
pub(crate) struct Barrier {
    arrived: Cell<u32>,
    expected: Cell<u32>,
    phase: Cell<u32>,
    pub(crate) clock: SyncClock,
}

impl Barrier {
    /// How many threads have arrived in the current phase.
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived.get()
    }

    /// How many phases have ended.
    pub(crate) fn passed(&self) -> u32 {
        self.phase.get()
    }

    /// Whether a phase has ended.
    #[inline]
    pub(crate) fn has_ended(&self, phase: u32) -> bool {
        self.phase.get() != phase
    }

    /// Counts one thread as `counts` of the `threads` that barrier `id` is for. Returns the phase.
    #[track_caller]
    pub(crate) fn arrive(&self, clock: &VectorClock, counts: u32, id: u32, threads: u32) -> u32 {
        let phase = self.phase.get();
        let before = self.arrived.get();
        if before == 0 {
            self.expected.set(threads);
        } else if self.expected.get() != threads {
            panic!(
                "barrier {id} is called for {threads} threads, but the {before} threads that have arrived called it \
                 for {}: all must give the same number",
                self.expected.get(),
            );
        }
        let arrived = before + counts;
        self.clock.release(clock);
        if arrived == threads {
            self.clock.publish(None);
            self.arrived.set(0);
            self.phase.set(phase.wrapping_add(1));
        } else {
            self.arrived.set(arrived);
        }
        phase
    }
}

/// The barrier of a cluster. Threads that have ended count as arrived.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    arrived: Cell<u32>,
    ended: Cell<u32>,
    phase: Cell<u32>,
    pub(crate) clock: SyncClock,
}

impl ClusterBarrier {
    /// How many threads have arrived in the current phase, without those that have ended.
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived.get()
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase.get()
    }

    /// Counts a thread of a cluster that has `threads` threads.
    pub(crate) fn arrive(&self, clock: &VectorClock, orders: Orders, threads: u32) {
        self.clock.release_what(orders, clock);
        self.arrived.set(self.arrived.get() + 1);
        self.end_phase_if_complete(threads);
    }

    /// No phase waits any longer for a thread that has ended.
    pub(crate) fn thread_ends(&self, threads: u32) {
        self.ended.set(self.ended.get() + 1);
        self.end_phase_if_complete(threads);
    }

    fn end_phase_if_complete(&self, threads: u32) {
        let arrived = self.arrived.get();
        if arrived > 0 && arrived + self.ended.get() == threads {
            self.clock.publish(None);
            self.arrived.set(0);
            self.phase.set(self.phase.get().wrapping_add(1));
        }
    }
}
