//! What a thread knows of others: numbers that only grow, in slices that threads share.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A number for each timeline or thread of a cluster: 0 where the slice has no entry.
///
/// A slice that is shared never changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Option<Arc<[u32]>>);

impl Entries {
    /// The entry at an index.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> u32 {
        let entries = self.0.as_deref().unwrap_or_default();
        entries.get(index as usize).copied().unwrap_or(0)
    }

    /// Whether both share one slice. They are equal then, without a look at the entries.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Raises each entry to that of the others.
    pub(crate) fn join(&mut self, other: &Self) {
        let covers = |all: &[u32], some: &[u32]| {
            all.len() >= some.len() && all.iter().zip(some).all(|(all, some)| all >= some)
        };
        let Some(others) = &other.0 else { return };
        match &self.0 {
            Some(own) if Arc::ptr_eq(own, others) || covers(own, others) => {}
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

    /// Raises one entry. A slice that nothing else shares is changed in place.
    pub(crate) fn raise(&mut self, index: u32, to: u32) {
        if self.get(index) >= to {
            return;
        }
        let index = index as usize;
        let unshared = self.0.as_mut().and_then(Arc::get_mut);
        if let Some(entry) = unshared.and_then(|entries| entries.get_mut(index)) {
            *entry = to;
            return;
        }
        let mut entries = self.0.as_deref().unwrap_or_default().to_vec();
        entries.resize(entries.len().max(index + 1), 0);
        entries[index] = to;
        self.0 = Some(entries.into());
    }
}

/// The epochs of threads whose accesses a thread knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Of the thread's cluster, by the thread's number in it.
    own: Entries,
    /// Of other clusters.
    others: Option<Arc<BTreeMap<u64, Entries>>>,
}

impl Known {
    /// Whether the accesses of a thread of the own cluster are known up to an epoch.
    #[inline]
    pub(crate) fn has(&self, thread: u32, epoch: u32) -> bool {
        self.own.get(thread) >= epoch
    }

    /// Whether the accesses of a thread of another cluster are known up to an epoch.
    pub(crate) fn has_other(&self, cluster: u64, thread: u32, epoch: u32) -> bool {
        let others = self.others.as_ref();
        others
            .and_then(|others| others.get(&cluster))
            .is_some_and(|entries| entries.get(thread) >= epoch)
    }

    /// Whether both share their memory. They are equal then.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_others = match (&self.others, &other.others) {
            (None, None) => true,
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            _ => false,
        };
        same_others && self.own.is(&other.own)
    }

    /// Adds what a thread of the same cluster knows.
    pub(crate) fn join(&mut self, other: &Self) {
        self.own.join(&other.own);
        let Some(theirs) = &other.others else { return };
        match &mut self.others {
            None => self.others = Some(theirs.clone()),
            Some(own) if Arc::ptr_eq(own, theirs) => {}
            Some(own) => {
                let own = Arc::make_mut(own);
                for (&cluster, entries) in theirs.iter() {
                    own.entry(cluster).or_default().join(entries);
                }
            }
        }
    }

    /// Adds the accesses of a thread of the own cluster up to an epoch.
    pub(crate) fn raise(&mut self, thread: u32, epoch: u32) {
        self.own.raise(thread, epoch);
    }
}

/// What threads of any cluster have told: epochs by cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(BTreeMap<u64, Entries>);

impl Told {
    /// Adds what a thread of a cluster knows.
    pub(crate) fn join(&mut self, cluster: u64, known: &Known) {
        self.0.entry(cluster).or_default().join(&known.own);
        for (&cluster, entries) in known.others.iter().flat_map(|others| others.iter()) {
            self.0.entry(cluster).or_default().join(entries);
        }
    }

    /// The same, as a thread of a cluster knows it.
    pub(crate) fn to_known(&self, cluster: u64) -> Known {
        let mut others = self.0.clone();
        let own = others.remove(&cluster).unwrap_or_default();
        Known {
            own,
            others: (!others.is_empty()).then(|| Arc::new(others)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(index: u32, value: u32) -> Entries {
        let mut entries = Entries::default();
        entries.raise(index, value);
        entries
    }

    #[test]
    fn entries_join_and_share_their_slice_where_they_can() {
        let mut both = entries(0, 2);
        both.join(&entries(3, 1));
        assert_eq!((both.get(0), both.get(3)), (2, 1));
        assert_eq!((both.get(1), both.get(9)), (0, 0));
        let more = both.clone();
        both.join(&entries(0, 1));
        assert!(both.is(&more));
        let mut less = entries(3, 1);
        less.join(&more);
        assert!(less.is(&more));
        less.join(&Entries::default());
        assert!(less.is(&more));
    }

    #[test]
    fn entries_are_raised_in_place_unless_they_are_shared() {
        let mut raised = entries(0, 1);
        let slice = |entries: &Entries| entries.0.as_ref().map(|slice| slice.as_ptr());
        let before = slice(&raised);
        raised.raise(0, 2);
        assert_eq!((raised.get(0), slice(&raised)), (2, before));
        let shared = raised.clone();
        raised.raise(0, 1);
        assert!(raised.is(&shared));
        raised.raise(0, 3);
        assert_eq!((raised.get(0), shared.get(0)), (3, 2));
    }

    #[test]
    fn clusters_learn_of_each_other_by_what_was_told() {
        let mut first = Known::default();
        first.raise(5, 2);
        let mut told = Told::default();
        told.join(7, &first);
        let mut second = told.to_known(8);
        assert!(second.has_other(7, 5, 2) && !second.has_other(7, 5, 3) && !second.has(5, 1));
        second.raise(0, 1);
        told.join(8, &second);
        let again = told.to_known(7);
        assert!(again.has(5, 2) && again.has_other(8, 0, 1));
    }
}
