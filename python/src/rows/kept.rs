//! Operations on rows that a stream keeps: each has memory for the report of a bad index.

use cutlet::{EmbeddingBag, Gather, MoeRows, Pooling, Scatter, ScatterAdd, Stream};

use crate::driver::{Capture, Graph};
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
    pub fn check(&mut self, stream: &Stream) -> cutlet::Result<()> {
        self.gather.each(|it| it.check(stream))?;
        self.scatter.each(|it| it.check(stream))?;
        self.scatter_add.each(|it| it.check(stream))?;
        self.embedding_bag.each(|it| it.check(stream))?;
        self.moe_rows.each(|it| it.check(stream))?;
        Ok(stream.synchronize()?)
    }

    /// Drops all that no graph has.
    pub fn forget(&mut self) {
        self.gather.forget();
        self.scatter.forget();
        self.scatter_add.forget();
        self.embedding_bag.forget();
        self.moe_rows.forget();
    }
}

/// Operations of one kind, by what they were made for. A graph has its own: graphs that were captured in one stream may
/// be replayed in several at the same time, and each replay writes the memory of its operations.
pub struct Operations<K, P>(Vec<Operation<K, P>>);

struct Operation<K, P> {
    of: K,
    operation: P,
    /// The graph that has it.
    graph: Option<Graph>,
}

/// The most operations of a kind that are in no graph. Policies are fewer; the numbers of a mixture's tokens may be more.
const MOST: usize = 16;

impl<K, P> Default for Operations<K, P> {
    fn default() -> Self {
        Operations(Vec::new())
    }
}

impl<K: PartialEq, P> Operations<K, P> {
    /// Works in a stream with the operation of a key. The first use makes it, and the first use in a capture.
    ///
    /// # Errors
    /// Those of making it and of the work.
    pub fn with<R>(
        &mut self,
        stream: &Stream,
        of: K,
        make: impl FnOnce() -> cutlet::Result<P>,
        work: impl FnOnce(&mut P) -> cutlet::Result<R>,
    ) -> cutlet::Result<R> {
        let kept = &mut self.0;
        kept.retain(|it| !it.graph.as_ref().is_some_and(Graph::is_gone));
        let capture = match stream.is_capturing()? {
            true => Capture::of(stream)?,
            false => None,
        };
        let id = capture.as_ref().map(|it| it.id);
        let is_it = |it: &Operation<K, P>| {
            it.of == of && it.graph.as_ref().map(|graph| graph.capture) == id
        };
        let at = match kept.iter().position(is_it) {
            Some(at) => at,
            None => {
                let operation = make()?;
                let graph = capture.map(|it| it.graph()).transpose()?;
                if graph.is_none() {
                    self.make_room();
                }
                self.0.push(Operation {
                    of,
                    operation,
                    graph,
                });
                self.0.len() - 1
            }
        };
        work(&mut self.0[at].operation)
    }

    /// Drops the oldest operation that is in no graph, if there are as many as may be.
    fn make_room(&mut self) {
        let mut free = (self.0.iter().enumerate()).filter(|(_, it)| it.graph.is_none());
        let oldest = free.next().map(|(at, _)| at);
        // One was counted already.
        if let (Some(oldest), true) = (oldest, free.count() + 1 >= MOST) {
            self.0.remove(oldest);
        }
    }

    fn forget(&mut self) {
        self.0.retain(|it| it.graph.is_some());
    }

    fn each(&mut self, check: impl FnMut(&mut P) -> cutlet::Result<()>) -> cutlet::Result<()> {
        self.0
            .iter_mut()
            .map(|it| &mut it.operation)
            .try_for_each(check)
    }
}
