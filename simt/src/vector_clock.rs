//! Vector clocks: the events of a cluster, and the accesses of threads, that each thread has synchronised with.
//!
//! The events are phases of mbarriers that count bytes, `wgmma` groups and `cp.async` groups. A thread that has waited
//! for an event has the event in its clock. So does a thread that synchronises with the first thread afterwards: at a
//! barrier, in a warp collective, or by a flag. On a GPU, only these threads may use what the event completes.
//!
//! The accesses of a thread are numbered by epochs. An epoch ends when the thread releases its clock. Another thread
//! knows the accesses of an epoch once it has acquired a clock that was released at the epoch's end or later.

use std::cell::{Cell, RefCell};

use crate::known::{Entries, Known};

/// A sequence of events that complete in order: the phases of an mbarrier, the `wgmma` groups of a warpgroup, or the
/// `cp.async` groups of a thread.
///
/// Its number is its entry in the clocks of the cluster's threads.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) u32);

/// What a thread knows: events that have completed, and other threads' accesses.
#[derive(Clone, Default)]
pub(crate) struct VectorClock {
    /// The events that the thread acquired: for each timeline, how many. Threads that acquired the same share the
    /// slice.
    acquired: Entries,
    /// The timeline of the thread alone, and how many of its events the thread has waited for. Others acquire them when
    /// the thread releases its clock.
    own: (Timeline, u32),
    /// The epochs of other threads whose accesses the thread knows.
    known: Known,
    /// The thread's number in its cluster, and its epoch. `None` if accesses are not followed.
    epoch: Option<(u32, Cell<u32>)>,
}

impl VectorClock {
    /// The clock of the cluster's thread with this number, whose accesses are followed.
    pub(crate) fn of_thread(number: u32) -> Self {
        Self {
            epoch: Some((number, Cell::new(1))),
            ..Self::default()
        }
    }

    /// How many events of a timeline have completed.
    #[inline]
    pub(crate) fn completed(&self, timeline: Timeline) -> u32 {
        let acquired = self.acquired.get(timeline.0);
        match self.own {
            (own, completed) if own == timeline => acquired.max(completed),
            _ => acquired,
        }
    }

    /// Whether both threads know the same of others, seen without a look at the entries.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.acquired.is(&other.acquired) && self.own == other.own && self.known.is(&other.known)
    }

    /// Notes that so many events of the thread's own timeline have completed. A thread has one such timeline.
    pub(crate) fn complete_own(&mut self, timeline: Timeline, completed: u32) {
        self.own = (timeline, completed.max(self.own.1));
    }

    /// The epochs of other threads whose accesses the thread knows.
    #[inline]
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The thread's number in its cluster, and its epoch; `None` if accesses are not followed.
    #[inline]
    pub(crate) fn epoch(&self) -> Option<(u32, u32)> {
        let (number, epoch) = self.epoch.as_ref()?;
        Some((*number, epoch.get()))
    }

    /// What the thread tells others by a release now: what it knows, and its own accesses so far. Its next accesses are
    /// of the next epoch. `None` if accesses are not followed.
    pub(crate) fn tell(&self) -> Option<Known> {
        let (number, epoch) = self.epoch.as_ref()?;
        let mut known = self.known.clone();
        known.raise(*number, epoch.get());
        epoch.set(epoch.get() + 1);
        Some(known)
    }

    /// Adds epochs that another thread told.
    pub(crate) fn learn(&mut self, known: &Known) {
        self.known.join(known);
    }
}

/// Knowledge that can be joined, and that is cheap to share.
trait Knowledge: Clone + Default {
    /// Whether both share their memory. They are equal then.
    fn is(&self, other: &Self) -> bool;
    fn join(&mut self, other: &Self);
}

impl Knowledge for Entries {
    fn is(&self, other: &Self) -> bool {
        self.is(other)
    }
    fn join(&mut self, other: &Self) {
        self.join(other);
    }
}

impl Knowledge for Known {
    fn is(&self, other: &Self) -> bool {
        self.is(other)
    }
    fn join(&mut self, other: &Self) {
        self.join(other);
    }
}

/// One kind of knowledge at a synchronisation point.
#[derive(Default)]
struct Exchange<K> {
    /// The join of all that was released so far.
    released: K,
    published: K,
    /// What was joined last. It is often the same for the next thread.
    joined: K,
    /// What the last thread had acquired before and after.
    last: Option<[K; 2]>,
}

impl<K: Knowledge> Exchange<K> {
    fn release(&mut self, known: &K) {
        if self.joined.is(known) {
            return;
        }
        self.released.join(known);
        self.joined = known.clone();
    }

    fn publish(&mut self) {
        self.published.join(&self.released);
        self.last = None;
    }

    fn acquire(&mut self, acquired: &mut K) {
        if self.published.is(&K::default()) || self.published.is(acquired) {
            return;
        }
        if let Some([before, after]) = &self.last
            && before.is(acquired)
        {
            *acquired = after.clone();
            return;
        }
        let before = acquired.clone();
        acquired.join(&self.published);
        self.last = Some([before, acquired.clone()]);
    }
}

/// The clock of a synchronisation point. Arriving threads release their clocks to it; threads that leave it acquire
/// what it has published.
#[derive(Default)]
pub(crate) struct SyncClock {
    events: RefCell<Exchange<Entries>>,
    accesses: RefCell<Exchange<Known>>,
}

/// What a thread that arrives at a synchronisation point orders before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orders {
    /// Nothing.
    Nothing,
    /// The events that the thread knows.
    Events,
    /// The thread's accesses to memory, too.
    Memory,
}

impl SyncClock {
    /// Adds what a thread that arrives orders before it.
    pub(crate) fn release_what(&self, orders: Orders, clock: &VectorClock) {
        match orders {
            Orders::Nothing => {}
            Orders::Events => self.release_events(clock),
            Orders::Memory => self.release(clock),
        }
    }

    /// Adds the clock of a thread that arrives.
    pub(crate) fn release(&self, clock: &VectorClock) {
        self.release_events(clock);
        let Some((number, epoch)) = &clock.epoch else {
            return;
        };
        let mut accesses = self.accesses.borrow_mut();
        accesses.release(&clock.known);
        accesses.released.raise(*number, epoch.get());
        epoch.set(epoch.get() + 1);
    }

    /// Adds the events that a thread knows, but not its accesses.
    pub(crate) fn release_events(&self, clock: &VectorClock) {
        let mut events = self.events.borrow_mut();
        events.release(&clock.acquired);
        let (timeline, completed) = clock.own;
        events.released.raise(timeline.0, completed);
    }

    /// Publishes what was released. With `completed`, so many events of a timeline complete by it.
    pub(crate) fn publish(&self, completed: Option<(Timeline, u32)>) {
        let mut events = self.events.borrow_mut();
        events.publish();
        if let Some((timeline, completed)) = completed {
            events.published.raise(timeline.0, completed);
        }
        self.accesses.borrow_mut().publish();
    }

    /// Adds what was published to the clock of a thread that leaves.
    pub(crate) fn acquire(&self, clock: &mut VectorClock) {
        self.events.borrow_mut().acquire(&mut clock.acquired);
        if clock.epoch.is_some() {
            self.accesses.borrow_mut().acquire(&mut clock.known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_own_events_are_known_to_others_once_it_has_released_them() {
        let own = Timeline(1);
        let (mut first, mut second) = (VectorClock::default(), VectorClock::default());
        first.complete_own(own, 2);
        first.complete_own(own, 1);
        assert_eq!((first.completed(own), second.completed(own)), (2, 0));
        let barrier = SyncClock::default();
        barrier.release(&first);
        barrier.release(&second);
        barrier.publish(None);
        first.complete_own(own, 3);
        barrier.acquire(&mut first);
        barrier.acquire(&mut second);
        assert_eq!((first.completed(own), second.completed(own)), (3, 2));
        assert!(!first.is(&second));
    }

    #[test]
    fn a_release_ends_an_epoch_that_others_then_know() {
        let (mut first, mut second) = (VectorClock::of_thread(0), VectorClock::of_thread(1));
        let barrier = SyncClock::default();
        for epoch in 1..4 {
            assert_eq!(first.epoch(), Some((0, epoch)));
            barrier.release(&first);
            barrier.release(&second);
            barrier.publish(None);
            barrier.acquire(&mut first);
            barrier.acquire(&mut second);
            assert!(second.known().has(0, epoch) && !second.known().has(0, epoch + 1));
            // After a barrier all threads know the same.
            assert!(first.is(&second));
        }
    }

    #[test]
    fn an_exchange_of_events_alone_ends_no_epoch() {
        let (first, mut second) = (VectorClock::of_thread(0), VectorClock::of_thread(1));
        let shuffle = SyncClock::default();
        shuffle.release_events(&first);
        shuffle.publish(None);
        shuffle.acquire(&mut second);
        assert_eq!(first.epoch(), Some((0, 1)));
        assert!(!second.known().has(0, 1));
    }
}
