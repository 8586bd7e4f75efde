//! Operations on rows that a stream keeps: each has memory for the report of a bad index.

use std::sync::{Mutex, PoisonError};

use cutlet::{EmbeddingBag, Gather, MoeRows, Pooling, Scatter, ScatterAdd, Stream};

use crate::options::Policy;

/// The operations of a stream.
#[derive(Default)]
pub struct Kept {
    pub gather: Operations<Policy, Gather>,
    pub scatter: Operations<Policy, Scatter>,
    pub scatter_add: Operations<(Policy, bool), ScatterAdd>,
    pub embedding_bag: Operations<(Policy, Pooling), EmbeddingBag>,
    /// Those of mixtures of experts, by tokens, choices and experts.
    pub moe_rows: Operations<[usize; 3], MoeRows>,
}

impl Kept {
    /// Waits for the stream, and reports an index that was no row of its table.
    ///
    /// # Errors
    /// If there was one.
    pub fn check(&self, stream: &Stream) -> cutlet::Result<()> {
        self.gather.each(|it| it.check(stream))?;
        self.scatter.each(|it| it.check(stream))?;
        self.scatter_add.each(|it| it.check(stream))?;
        self.embedding_bag.each(|it| it.check(stream))?;
        self.moe_rows.each(|it| it.check(stream))?;
        Ok(stream.synchronize()?)
    }
}

/// Operations of one kind, by what they were made for.
pub struct Operations<K, P>(Mutex<Vec<(K, P)>>);

/// The most operations of a kind. Tables and policies are few; the numbers of a mixture's tokens may be many.
const MOST: usize = 16;

impl<K, P> Default for Operations<K, P> {
    fn default() -> Self {
        Operations(Mutex::default())
    }
}

impl<K: PartialEq, P> Operations<K, P> {
    /// Works with the operation of a key. The first use makes it.
    ///
    /// # Errors
    /// Those of making it and of the work.
    pub fn with<R>(
        &self,
        key: K,
        make: impl FnOnce() -> cutlet::Result<P>,
        work: impl FnOnce(&mut P) -> cutlet::Result<R>,
    ) -> cutlet::Result<R> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match kept.iter().position(|(of, _)| *of == key) {
            Some(at) => at,
            None => {
                let made = make()?;
                if kept.len() == MOST {
                    kept.remove(0);
                }
                kept.push((key, made));
                kept.len() - 1
            }
        };
        work(&mut kept[at].1)
    }

    fn each(&self, check: impl FnMut(&mut P) -> cutlet::Result<()>) -> cutlet::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter_mut().map(|(_, it)| it).try_for_each(check)
    }
}
