//! Vector clocks: the events of a cluster that each thread has synchronised with.
//!
//! The events are phases of mbarriers that count bytes, `wgmma` groups and `cp.async` groups. A thread that has waited
//! for an event has the event in its clock. So does a thread that synchronises with the first thread afterwards: at a
//! barrier, in a warp collective, or by a flag. On a GPU, only these threads may use what the event completes.

use std::cell::RefCell;
use std::rc::Rc;

/// A sequence of events that complete in order: the phases of an mbarrier, the `wgmma` groups of a warpgroup, or the
/// `cp.async` groups of a thread.
///
/// Its number is its entry in the clocks of the cluster's threads.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) u32);

/// The number of events of each timeline that are known to have completed: 0 where the slice has no entry.
///
/// A slice that is shared never changes.
#[derive(Clone, Default)]
struct Entries(Option<Rc<[u32]>>);

impl Entries {
    const NONE: Self = Self(None);

    /// How many events of a timeline have completed.
    #[inline]
    fn completed(&self, timeline: Timeline) -> u32 {
        let entries = self.0.as_deref().unwrap_or_default();
        entries.get(timeline.0 as usize).copied().unwrap_or(0)
    }

    /// Whether both share one slice. They are equal then, without a look at the entries.
    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(others)) => Rc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Raises each entry to that of the others.
    fn join(&mut self, other: &Self) {
        let covers = |all: &[u32], some: &[u32]| {
            all.len() >= some.len() && all.iter().zip(some).all(|(all, some)| all >= some)
        };
        let Some(others) = &other.0 else { return };
        match &self.0 {
            Some(own) if Rc::ptr_eq(own, others) || covers(own, others) => {}
            Some(own) if !covers(others, own) => {
                let entry = |clock: &[u32], i: usize| clock.get(i).copied().unwrap_or(0);
                let entries = 0..own.len().max(others.len());
                self.0 = Some(
                    entries
                        .map(|i| entry(own, i).max(entry(others, i)))
                        .collect(),
                );
            }
            _ => self.0 = Some(others.clone()),
        }
    }

    /// Raises the entry of one timeline. A slice that nothing else shares is changed in place.
    fn raise(&mut self, timeline: Timeline, completed: u32) {
        if self.completed(timeline) >= completed {
            return;
        }
        let index = timeline.0 as usize;
        let unshared = self.0.as_mut().and_then(Rc::get_mut);
        if let Some(entry) = unshared.and_then(|entries| entries.get_mut(index)) {
            *entry = completed;
            return;
        }
        let mut entries = self.0.as_deref().unwrap_or_default().to_vec();
        entries.resize(entries.len().max(index + 1), 0);
        entries[index] = completed;
        self.0 = Some(entries.into());
    }
}

/// The events that a thread knows to have completed.
#[derive(Clone, Default)]
pub(crate) struct VectorClock {
    /// What the thread acquired. Threads that acquired the same share the slice.
    acquired: Entries,
    /// The timeline of the thread alone, and how many of its events the thread has waited for. Others acquire them when
    /// the thread releases its clock.
    own: (Timeline, u32),
}

impl VectorClock {
    /// How many events of a timeline have completed.
    #[inline]
    pub(crate) fn completed(&self, timeline: Timeline) -> u32 {
        let acquired = self.acquired.completed(timeline);
        match self.own {
            (own, completed) if own == timeline => acquired.max(completed),
            _ => acquired,
        }
    }

    /// Whether both clocks share one slice and the events of one timeline. They are equal then, without a look at the
    /// entries.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.acquired.is(&other.acquired) && self.own == other.own
    }

    /// Notes that so many events of the thread's own timeline have completed. A thread has one such timeline.
    pub(crate) fn complete_own(&mut self, timeline: Timeline, completed: u32) {
        self.own = (timeline, completed.max(self.own.1));
    }
}

/// The clock of a synchronisation point. Arriving threads release their clocks to it; threads that leave it acquire
/// what it has published.
#[derive(Default)]
pub(crate) struct SyncClock {
    /// The join of all clocks released so far.
    released: RefCell<Entries>,
    published: RefCell<Entries>,
    /// What the last thread had acquired before and after. It is often the same for the next thread.
    last: RefCell<[Entries; 2]>,
}

impl SyncClock {
    /// Adds the clock of a thread that arrives.
    pub(crate) fn release(&self, clock: &VectorClock) {
        let mut released = self.released.borrow_mut();
        released.join(&clock.acquired);
        let (timeline, completed) = clock.own;
        released.raise(timeline, completed);
    }

    /// Publishes what was released. With `completed`, so many events of a timeline complete by it.
    pub(crate) fn publish(&self, completed: Option<(Timeline, u32)>) {
        let mut published = self.published.borrow_mut();
        published.join(&self.released.borrow());
        if let Some((timeline, completed)) = completed {
            published.raise(timeline, completed);
        }
        *self.last.borrow_mut() = [Entries::NONE; 2];
    }

    /// Adds what was published to the clock of a thread that leaves.
    pub(crate) fn acquire(&self, clock: &mut VectorClock) {
        let acquired = &mut clock.acquired;
        let published = self.published.borrow();
        if published.is(&Entries::NONE) || published.is(acquired) {
            return;
        }
        let mut last = self.last.borrow_mut();
        let [before, after] = &mut *last;
        // No entries in `after` mean that no thread has acquired since the publication.
        if before.is(acquired) && !after.is(&Entries::NONE) {
            *acquired = after.clone();
            return;
        }
        *before = acquired.clone();
        acquired.join(&published);
        *after = acquired.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(timeline: Timeline, completed: u32) -> Entries {
        let mut entries = Entries::NONE;
        entries.raise(timeline, completed);
        entries
    }

    #[test]
    fn entries_join_and_share_their_slice_where_they_can() {
        let (a, b) = (Timeline(0), Timeline(3));
        let mut both = entries(a, 2);
        both.join(&entries(b, 1));
        assert_eq!((both.completed(a), both.completed(b)), (2, 1));
        assert_eq!(
            (both.completed(Timeline(1)), both.completed(Timeline(9))),
            (0, 0)
        );
        let more = both.clone();
        both.join(&entries(a, 1));
        assert!(both.is(&more));
        let mut less = entries(b, 1);
        less.join(&more);
        assert!(less.is(&more));
        less.join(&Entries::NONE);
        assert!(less.is(&more));
    }

    #[test]
    fn entries_are_raised_in_place_unless_they_are_shared() {
        let a = Timeline(0);
        let mut raised = entries(a, 1);
        let slice = |entries: &Entries| entries.0.as_ref().map(|slice| slice.as_ptr());
        let before = slice(&raised);
        raised.raise(a, 2);
        assert_eq!((raised.completed(a), slice(&raised)), (2, before));
        let shared = raised.clone();
        raised.raise(a, 1);
        assert!(raised.is(&shared));
        raised.raise(a, 3);
        assert_eq!((raised.completed(a), shared.completed(a)), (3, 2));
    }

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
}
