//! What the running thread tells others by atomic operations and fences.
//!
//! Accesses to an address by atomic operations carry knowledge as C++'s memory model says: a release tells what the
//! thread knows, and an acquire that follows it learns it. A relaxed operation tells what was known at the thread's
//! last fence, and what it reads is learnt at the next fence.

use std::cell::{Cell, RefCell};

use crate::context::{Thread, current_or_null};
use crate::known::Known;

/// How an atomic operation orders the accesses around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOrder {
    /// Only together with fences.
    Relaxed,
    /// A load that orders later accesses behind it.
    Acquire,
    /// A store that orders earlier accesses before it.
    Release,
    /// An operation that does both.
    AcquireRelease,
}

/// What a thread's fences have to do with its relaxed operations.
#[derive(Default)]
pub(crate) struct Fences {
    /// What the thread knew at its last fence.
    at_last: RefCell<Option<Known>>,
    /// What the thread's relaxed operations have read since.
    pending: RefCell<Known>,
    /// The address at which the thread last learnt, and the number of changes there.
    learnt: Cell<(usize, u64)>,
}

fn running<'a>() -> Option<&'a Thread> {
    // SAFETY: as in `current`. Outside of a kernel there is no thread to synchronise with.
    unsafe { current_or_null().as_ref() }
}

/// A fence. The events of copies that other threads of the cluster know are known to the thread afterwards.
///
/// All flags of a cluster share one clock of events. A thread may therefore know of more events than its flags say,
/// never of fewer.
pub fn fence() {
    let Some(thread) = running() else { return };
    exchange_events(thread);
    let fences = &thread.fences;
    let pending = fences.pending.take();
    let mut clock = thread.clock.borrow_mut();
    clock.learn(&pending);
    *fences.at_last.borrow_mut() = clock.tell();
}

/// To be called before an atomic operation at a host address.
pub fn before_atomic(address: usize, order: AtomicOrder) {
    let Some(thread) = running() else { return };
    let (launch, cluster) = (thread.block().launch(), thread.block().cluster_number);
    let Some(shadow) = &launch.shadow else {
        if order != AtomicOrder::Relaxed {
            exchange_events(thread);
        }
        return;
    };
    match order {
        AtomicOrder::Release | AtomicOrder::AcquireRelease => {
            exchange_events(thread);
            if let Some(known) = thread.clock.borrow().tell() {
                shadow.tell(address, cluster, &known);
            }
        }
        AtomicOrder::Relaxed => {
            if let Some(known) = &*thread.fences.at_last.borrow() {
                shadow.tell(address, cluster, known);
            }
        }
        AtomicOrder::Acquire => {}
    }
}

/// To be called after an atomic operation at a host address.
pub fn after_atomic(address: usize, order: AtomicOrder) {
    let Some(thread) = running() else { return };
    if matches!(order, AtomicOrder::Acquire | AtomicOrder::AcquireRelease) {
        exchange_events(thread);
    }
    let (launch, cluster) = (thread.block().launch(), thread.block().cluster_number);
    let Some(shadow) = &launch.shadow else { return };
    let learnt = &thread.fences.learnt;
    let changes = match learnt.get() {
        (last, changes) if last == address && order != AtomicOrder::Relaxed => changes,
        _ => 0,
    };
    let Some((known, changes)) = shadow.ask(address, cluster, changes) else {
        return;
    };
    match order {
        AtomicOrder::Acquire | AtomicOrder::AcquireRelease => {
            thread.clock.borrow_mut().learn(&known);
            learnt.set((address, changes));
        }
        AtomicOrder::Relaxed => thread.fences.pending.borrow_mut().join(&known),
        AtomicOrder::Release => {}
    }
}

/// Acquires the events that threads of the cluster knew when they called this before.
fn exchange_events(thread: &Thread) {
    let flags = &thread.block().first_of_cluster().flags;
    flags.release_events(&thread.clock.borrow());
    flags.publish(None);
    thread.acquire(flags);
}
