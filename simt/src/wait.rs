//! Waiting: the one primitive on which barriers, warp collectives and models of asynchronous
//! hardware are built.

use std::fmt;

use crate::context::current;

/// What kind of event a thread waits for; decides how the scheduler reads a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// All threads of the block at `sync_threads`.
    BlockBarrier,
    /// Something that only threads of this cluster can bring about.
    Cluster,
    /// Something that other blocks of the grid can bring about, such as a flag in global memory.
    /// While a cluster waits for it, blocks that have not started yet get their turn.
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
    /// # Safety
    /// The thread must still be suspended in the `yield_until` that made this.
    #[inline]
    pub(crate) unsafe fn is_ready(&self) -> bool {
        // SAFETY: the closure lives on the stack of the thread, which the caller says is suspended.
        unsafe { (*self.ready)() }
    }

    /// # Safety
    /// As for [`Wait::is_ready`].
    pub(crate) unsafe fn what(&self) -> String {
        // SAFETY: as in `is_ready`.
        unsafe { fmt::format(*self.what) }
    }
}

/// Suspends the running GPU thread until `ready` returns true, and lets other threads run
/// meanwhile.
///
/// `ready` is called by the scheduler, between other threads of the same cluster, any number of
/// times; it should be cheap, must not wait itself, and sees the same memory as those threads.
/// `what` completes the sentence "the thread …" (such as `waits at mbarrier 3`) and is only
/// formatted when a deadlock is reported.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn yield_until(kind: WaitKind, what: fmt::Arguments<'_>, ready: impl Fn() -> bool) {
    if ready() {
        // What it has polled for that does not make it a thread that spins.
        let poll = &current().poll;
        poll.set(Poll {
            times: 0,
            ..poll.get()
        });
        return;
    }
    suspend_until(kind, &what, &ready);
}

#[track_caller]
fn suspend_until(kind: WaitKind, what: &fmt::Arguments<'_>, ready: &dyn Fn() -> bool) {
    let thread = current();
    // A destructor that waits while its thread unwinds: the launch is ending, nobody will come.
    if std::thread::panicking() {
        return;
    }
    // While a thread is suspended, its condition runs on the scheduler's stack.
    assert!(
        thread.wait.get().is_none(),
        "the condition that a thread waits for must not wait itself"
    );
    let what: *const fmt::Arguments<'_> = what;
    // SAFETY: only lifetimes change. The scheduler uses both pointers while this thread is
    // suspended below, when what they point to is alive, and forgets them once it has resumed the
    // thread.
    let wait = unsafe {
        Wait {
            kind,
            what: what.cast(),
            ready: std::mem::transmute::<&dyn Fn() -> bool, *const (dyn Fn() -> bool + 'static)>(
                ready,
            ),
        }
    };
    thread.wait.set(Some(wait));
    // SAFETY: a thread's yielder is set when its coroutine starts, and this is that coroutine.
    unsafe { (*thread.yielder.get()).suspend(()) };
}

/// How often a thread may poll before others get a turn.
const POLLS_IN_A_TURN: u32 = 1000;
/// How often it may find the same value at the same place before it counts as one that will do so for ever.
const POLLS: u32 = 100_000;

/// The last thing a thread polled.
#[derive(Clone, Copy, Default)]
pub(crate) struct Poll {
    address: usize,
    value: u64,
    /// How often it found the same there, …
    times: u32,
    /// … and how often it polled anything since others had a turn.
    in_turn: u32,
}

/// To be called when the running GPU thread has read `value` at `address` and may be doing so in a
/// loop until another thread changes it. After every 1000th call of a thread, others get a turn. When
/// it has found the same value at the same place 100,000 times in a row, it is suspended until
/// `changed` returns true; if nobody is left to change the value, the launch ends with an error.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn polled(address: usize, value: u64, changed: impl Fn() -> bool) {
    let thread = current();
    // The condition of a wait: the scheduler calls it as often as it likes.
    if thread.wait.get().is_some() {
        return;
    }
    let last = thread.poll.get();
    let times = match (last.address, last.value) == (address, value) {
        true => last.times + 1,
        false => 1,
    };
    let in_turn = last.in_turn + 1;
    let ends_turn = in_turn == POLLS_IN_A_TURN;
    thread.poll.set(Poll {
        address,
        value,
        times,
        in_turn: if ends_turn { 0 } else { in_turn },
    });
    if times == POLLS {
        thread.poll.set(Poll::default());
        yield_until(
            WaitKind::Grid,
            format_args!("spins on the value at {address:#x}, which nobody changes"),
            changed,
        );
    } else if ends_turn {
        suspend_until(WaitKind::Grid, &format_args!("polls"), &|| true);
    }
}
