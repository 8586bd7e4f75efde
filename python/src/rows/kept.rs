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
pub struct Operations<K, P>(Mutex<Vec<Operation<K, P>>>);

struct Operation<K, P> {
    of: K,
    operation: P,
    /// Whether a graph has it. A graph writes its memory at each replay, and nothing tells when the graph ends.
    is_in_graph: bool,
}

/// The most operations of a kind that are in no graph. Policies are fewer; the numbers of a mixture's tokens may be more.
const MOST: usize = 16;

impl<K, P> Default for Operations<K, P> {
    fn default() -> Self {
        Operations(Mutex::default())
    }
}

impl<K: PartialEq, P> Operations<K, P> {
    /// Works in a stream with the operation of a key. The first use makes it.
    ///
    /// # Errors
    /// Those of making it and of the work.
    pub fn with<R>(
        &self,
        stream: &Stream,
        of: K,
        make: impl FnOnce() -> cutlet::Result<P>,
        work: impl FnOnce(&mut P) -> cutlet::Result<R>,
    ) -> cutlet::Result<R> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match kept.iter().position(|it| it.of == of) {
            Some(at) => at,
            None => {
                let operation = make()?;
                let mut free = kept.iter().enumerate().filter(|(_, it)| !it.is_in_graph);
                let oldest = free.next().map(|(at, _)| at);
                // One was counted already.
                if let (Some(oldest), true) = (oldest, free.count() + 1 >= MOST) {
                    kept.remove(oldest);
                }
                kept.push(Operation {
                    of,
                    operation,
                    is_in_graph: false,
                });
                kept.len() - 1
            }
        };
        kept[at].is_in_graph |= stream.is_capturing()?;
        work(&mut kept[at].operation)
    }

    fn each(&self, check: impl FnMut(&mut P) -> cutlet::Result<()>) -> cutlet::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter_mut()
            .map(|it| &mut it.operation)
            .try_for_each(check)
    }
}
