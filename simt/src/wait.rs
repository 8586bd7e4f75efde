//! What threads wait for, and what they poll, as the scheduler sees it.

use std::fmt;

/// What kind of event a thread waits for. It tells the scheduler whether a cluster is deadlocked when all its threads
/// wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// All threads of the block arrive at `sync_threads`.
    BlockBarrier,
    /// An event that only threads of this cluster can cause.
    Cluster,
    /// An event that other blocks of the grid can cause, such as a flag in global memory. While a cluster waits for
    /// it, blocks that have not started get their turn.
    Grid,
}

/// What a suspended thread waits for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) kind: WaitKind,
    what: *const fmt::Arguments<'static>,
    ready: *const dyn Fn() -> bool,
}

impl Wait {
    /// A wait that ends when `ready` returns true. `what` describes it in messages.
    pub(crate) fn new(kind: WaitKind, what: &fmt::Arguments<'_>, ready: &dyn Fn() -> bool) -> Self {
        let what: *const fmt::Arguments<'_> = what;
        // SAFETY: only the lifetime changes. The callers of `is_ready` and `what` promise that the closure still
        // lives.
        let ready = unsafe {
            std::mem::transmute::<&dyn Fn() -> bool, *const (dyn Fn() -> bool + 'static)>(ready)
        };
        Self {
            kind,
            what: what.cast(),
            ready,
        }
    }

    /// # Safety
    /// What `new` borrowed must still live, as it does while the thread is suspended in this wait.
    #[inline]
    pub(crate) unsafe fn is_ready(&self) -> bool {
        // SAFETY: as promised by the caller.
        unsafe { (*self.ready)() }
    }

    /// # Safety
    /// As for [`Wait::is_ready`].
    pub(crate) unsafe fn what(&self) -> String {
        // SAFETY: as promised by the caller.
        unsafe { fmt::format(*self.what) }
    }
}

/// How often a thread may poll before other threads get a turn.
const POLLS_PER_TURN: u32 = 1000;
/// How often a thread may read the same value at the same address before it counts as spinning for ever.
const MAX_REPEATS: u32 = 100_000;

/// The last poll of a thread.
#[derive(Clone, Copy, Default)]
pub(crate) struct Poll {
    address: usize,
    value: u64,
    /// How many polls in a row read this value at this address.
    repeats: u32,
    /// How many polls of any address the thread made since other threads had a turn.
    in_turn: u32,
}

/// What a thread does after a poll.
pub(crate) enum AfterPoll {
    GoOn,
    /// Other threads get a turn.
    EndTurn,
    /// The thread is suspended until the value changes.
    Suspend,
}

impl Poll {
    /// The poll after this one.
    pub(crate) fn next(self, address: usize, value: u64) -> (Self, AfterPoll) {
        let repeats = match (self.address, self.value) == (address, value) {
            true => self.repeats + 1,
            false => 1,
        };
        if repeats == MAX_REPEATS {
            return (Self::default(), AfterPoll::Suspend);
        }
        let in_turn = self.in_turn + 1;
        let ends_turn = in_turn == POLLS_PER_TURN;
        let poll = Self {
            address,
            value,
            repeats,
            in_turn: if ends_turn { 0 } else { in_turn },
        };
        match ends_turn {
            true => (poll, AfterPoll::EndTurn),
            false => (poll, AfterPoll::GoOn),
        }
    }

    /// The same poll with its repetitions forgotten.
    #[inline]
    pub(crate) fn without_repeats(self) -> Self {
        Self { repeats: 0, ..self }
    }
}
