//! What threads know to have ended: phases of barriers that count bytes, and products of warpgroups.
//!
//! A thread that waits for such an end knows of it afterwards, and so does one that meets it later: at a
//! barrier of any kind, in a collective of a warp, or by a flag. On a GPU, only they may use what has ended.

use std::cell::RefCell;
use std::rc::Rc;

use crate::context::{Thread, current_or_null};

/// Things of which one ends after the other: the phases of a barrier, or the batches of products of a
/// warpgroup. They are numbered in a cluster.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Series(pub(crate) u32);

/// How many of each series have ended, as far as somebody knows; of those that are not listed, none.
///
/// It is never changed once it is made, so that threads that have learnt the same share it.
#[derive(Clone, Default)]
pub(crate) struct Knowledge(Option<Rc<[u32]>>);

impl Knowledge {
    const NOTHING: Self = Self(None);

    /// How many of a series have ended.
    #[inline]
    pub(crate) fn ended(&self, series: Series) -> u32 {
        let all = self.0.as_deref().unwrap_or_default();
        all.get(series.0 as usize).copied().unwrap_or(0)
    }

    /// Whether two are shared: the same without a look at them.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(others)) => Rc::ptr_eq(own, others),
            _ => false,
        }
    }

    fn add(&mut self, other: &Self) {
        let covers = |all: &[u32], some: &[u32]| {
            all.len() >= some.len() && all.iter().zip(some).all(|(all, some)| all >= some)
        };
        let Some(others) = &other.0 else { return };
        match &self.0 {
            Some(own) if Rc::ptr_eq(own, others) || covers(own, others) => {}
            Some(own) if !covers(others, own) => {
                let of = |all: &[u32], i: usize| all.get(i).copied().unwrap_or(0);
                let both = 0..own.len().max(others.len());
                self.0 = Some(both.map(|i| of(own, i).max(of(others, i))).collect());
            }
            _ => self.0 = Some(others.clone()),
        }
    }

    fn add_end(&mut self, series: Series, ended: u32) {
        let mut all = self.0.as_deref().unwrap_or_default().to_vec();
        let index = series.0 as usize;
        all.resize(all.len().max(index + 1), 0);
        all[index] = ended;
        self.0 = Some(all.into());
    }
}

/// Where threads meet: who leaves knows what those know that have come.
#[derive(Default)]
pub(crate) struct Meeting {
    /// What those know that have come, …
    brought: RefCell<Knowledge>,
    /// … and what those have learnt that may leave.
    taken: RefCell<Knowledge>,
    /// What the last one to leave knew before and after: often the next one knows the same.
    last: RefCell<[Knowledge; 2]>,
}

impl Meeting {
    /// A thread is there.
    pub(crate) fn arrive(&self, thread: &Thread) {
        self.brought.borrow_mut().add(&thread.knows.borrow());
    }

    /// All are there, and so many of a series have ended by that.
    pub(crate) fn end(&self, ended: Option<(Series, u32)>) {
        let mut taken = self.taken.borrow_mut();
        taken.add(&self.brought.borrow());
        if let Some((series, ended)) = ended {
            taken.add_end(series, ended);
        }
        *self.last.borrow_mut() = [Knowledge::NOTHING; 2];
    }

    /// A thread goes on.
    pub(crate) fn leave(&self, thread: &Thread) {
        let taken = self.taken.borrow();
        let mut knows = thread.knows.borrow_mut();
        if taken.is(&Knowledge::NOTHING) || taken.is(&knows) {
            return;
        }
        let mut last = self.last.borrow_mut();
        let [before, after] = &mut *last;
        // Who knows nothing is like the one before only if there was one.
        if before.is(&knows) && !after.is(&Knowledge::NOTHING) {
            *knows = after.clone();
            return;
        }
        *before = knows.clone();
        knows.add(&taken);
        *after = knows.clone();
    }
}

/// To be called where the running thread hands data to others by a flag, or takes it: what any thread of its
/// cluster knew where it called this before, it knows now.
///
/// A flag says to one thread what another one did. That here all flags of a cluster are one lets threads know
/// more than they should, never less.
pub fn fence() {
    // SAFETY: as in `current`; outside of a kernel there is nobody to hand anything to.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return;
    };
    let flags = &thread.block().first_of_cluster().flags;
    flags.arrive(thread);
    flags.end(None);
    flags.leave(thread);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_adds_up_and_is_shared_where_it_can_be() {
        let (a, b) = (Series(0), Series(3));
        let knows = |series, ended| {
            let mut knowledge = Knowledge::NOTHING;
            knowledge.add_end(series, ended);
            knowledge
        };
        let mut both = knows(a, 2);
        both.add(&knows(b, 1));
        assert_eq!((both.ended(a), both.ended(b)), (2, 1));
        assert_eq!((both.ended(Series(1)), both.ended(Series(9))), (0, 0));
        let more = both.clone();
        both.add(&knows(a, 1));
        assert!(both.is(&more));
        let mut less = knows(b, 1);
        less.add(&more);
        assert!(less.is(&more));
        less.add(&Knowledge::NOTHING);
        assert!(less.is(&more));
    }
}
