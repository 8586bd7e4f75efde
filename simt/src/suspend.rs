//! Suspending the running thread: the primitive on which barriers, warp collectives and the models of asynchronous
//! hardware are built.

use std::fmt;

use crate::context::current;
use crate::shown_wait::Awaited;
use crate::wait::{AfterPoll, Wait, WaitKind};

/// Suspends the running GPU thread until `ready` returns true. Other threads run meanwhile.
///
/// The scheduler calls `ready` between other threads of the same cluster, any number of times. It should be cheap,
/// must not wait itself, and sees the same memory as those threads.
///
/// `what` completes the sentence "the thread …" (such as `waits at mbarrier 3`). It is formatted only when a deadlock
/// is reported.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn yield_until(kind: WaitKind, what: fmt::Arguments<'_>, ready: impl Fn() -> bool) {
    wait_for(kind, kind.into(), what, ready);
}

/// [`yield_until`] that tells the watchdog what is awaited.
#[inline]
#[track_caller]
pub(crate) fn wait_for(
    kind: WaitKind,
    awaited: Awaited,
    what: fmt::Arguments<'_>,
    ready: impl Fn() -> bool,
) {
    if ready() {
        // A thread whose waits succeed does not spin.
        let poll = &current().poll;
        poll.set(poll.get().without_repeats());
        return;
    }
    suspend_until(kind, awaited, &what, &ready);
}

#[track_caller]
fn suspend_until(
    kind: WaitKind,
    awaited: Awaited,
    what: &fmt::Arguments<'_>,
    ready: &dyn Fn() -> bool,
) {
    let thread = current();
    // A destructor waits while its thread unwinds. The launch is ending, and nothing it waits for will come.
    if std::thread::panicking() {
        return;
    }
    // While a thread is suspended, its condition runs on the scheduler's stack.
    assert!(
        thread.wait.get().is_none(),
        "the condition of a wait must not wait itself: let it only read memory"
    );
    // `what` and `ready` live until the scheduler resumes the thread below. It forgets the wait before.
    thread.wait.set(Some(Wait::new(kind, what, ready)));
    thread.shown().set(awaited, thread.line());
    // SAFETY: a thread's yielder is set when its coroutine starts, and this is that coroutine.
    unsafe { (*thread.yielder.get()).suspend(()) };
}

/// To be called when the running GPU thread has read `value` at `address`, and may repeat that in a loop until
/// another thread changes the value.
///
/// After every 1000th call of a thread, other threads get a turn. After 100,000 calls in a row with the same value and
/// address, the thread is suspended until `changed` returns true. If no thread is left to change the value, the launch
/// ends with an error.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn polled(address: usize, value: u64, changed: impl Fn() -> bool) {
    let thread = current();
    // In the condition of a wait, which the scheduler calls as often as it likes.
    if thread.wait.get().is_some() {
        return;
    }
    thread.end_if_cancelled();
    let (poll, after) = thread.poll.get().next(address, value);
    thread.poll.set(poll);
    match after {
        AfterPoll::GoOn => {}
        AfterPoll::EndTurn => suspend_until(
            WaitKind::Grid,
            Awaited::Value,
            &format_args!("polls"),
            &|| true,
        ),
        AfterPoll::Suspend => wait_for(
            WaitKind::Grid,
            Awaited::Value,
            format_args!("spins on the value at {address:#x}, which no thread changes"),
            changed,
        ),
    }
}
