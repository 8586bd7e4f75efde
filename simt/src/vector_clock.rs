//! Vector clocks: the events of a cluster that each thread has synchronised with.
//!
//! The events are phases of mbarriers that count bytes, and `wgmma` groups. A thread that has waited for an event has
//! the event in its clock. So does a thread that synchronises with the first thread afterwards: at a barrier, in a warp
//! collective, or by a flag. On a GPU, only these threads may use what the event completes.

use std::cell::RefCell;
use std::rc::Rc;

/// A sequence of events that complete in order: the phases of an mbarrier, or the `wgmma` groups of a warpgroup.
///
/// Its number is its entry in the clocks of the cluster's threads.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) u32);

/// The number of events of each timeline that a thread knows to have completed: 0 where the slice has no entry.
///
/// The slice never changes, so that threads with equal clocks share it.
#[derive(Clone, Default)]
pub(crate) struct VectorClock(Option<Rc<[u32]>>);

impl VectorClock {
    const ZERO: Self = Self(None);

    /// How many events of a timeline have completed.
    #[inline]
    pub(crate) fn completed(&self, timeline: Timeline) -> u32 {
        let entries = self.0.as_deref().unwrap_or_default();
        entries.get(timeline.0 as usize).copied().unwrap_or(0)
    }

    /// Whether both clocks share one slice. They are equal then, without a look at the entries.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(others)) => Rc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Raises each entry to that of the other clock.
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

    /// Sets the entry of one timeline.
    fn set(&mut self, timeline: Timeline, completed: u32) {
        let mut entries = self.0.as_deref().unwrap_or_default().to_vec();
        let index = timeline.0 as usize;
        entries.resize(entries.len().max(index + 1), 0);
        entries[index] = completed;
        self.0 = Some(entries.into());
    }
}

/// The clock of a synchronisation point. Arriving threads release their clocks to it; threads that leave it acquire
/// what it has published.
#[derive(Default)]
pub(crate) struct SyncClock {
    /// The join of all clocks released so far.
    released: RefCell<VectorClock>,
    published: RefCell<VectorClock>,
    /// The clock of the last thread that acquired, before and after. The next thread's clock is often the same.
    last: RefCell<[VectorClock; 2]>,
}

impl SyncClock {
    /// Adds the clock of a thread that arrives.
    pub(crate) fn release(&self, clock: &VectorClock) {
        self.released.borrow_mut().join(clock);
    }

    /// Publishes what was released. With `completed`, so many events of a timeline complete by it.
    pub(crate) fn publish(&self, completed: Option<(Timeline, u32)>) {
        let mut published = self.published.borrow_mut();
        published.join(&self.released.borrow());
        if let Some((timeline, completed)) = completed {
            published.set(timeline, completed);
        }
        *self.last.borrow_mut() = [VectorClock::ZERO; 2];
    }

    /// Adds what was published to the clock of a thread that leaves.
    pub(crate) fn acquire(&self, clock: &mut VectorClock) {
        let published = self.published.borrow();
        if published.is(&VectorClock::ZERO) || published.is(clock) {
            return;
        }
        let mut last = self.last.borrow_mut();
        let [before, after] = &mut *last;
        // A zero `after` means that no thread has acquired since the publication.
        if before.is(clock) && !after.is(&VectorClock::ZERO) {
            *clock = after.clone();
            return;
        }
        *before = clock.clone();
        clock.join(&published);
        *after = clock.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_join_and_share_their_slice_where_they_can() {
        let (a, b) = (Timeline(0), Timeline(3));
        let clock = |timeline, completed| {
            let mut clock = VectorClock::ZERO;
            clock.set(timeline, completed);
            clock
        };
        let mut both = clock(a, 2);
        both.join(&clock(b, 1));
        assert_eq!((both.completed(a), both.completed(b)), (2, 1));
        assert_eq!(
            (both.completed(Timeline(1)), both.completed(Timeline(9))),
            (0, 0)
        );
        let more = both.clone();
        both.join(&clock(a, 1));
        assert!(both.is(&more));
        let mut less = clock(b, 1);
        less.join(&more);
        assert!(less.is(&more));
        less.join(&VectorClock::ZERO);
        assert!(less.is(&more));
    }
}
