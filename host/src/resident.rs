//! Resident memory: what stays with a stream, or with a graph. Launches leave something in words of it for later
//! ones, and what one has no more use for is there for the next.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::stream::Queue;
use crate::{Buffer, Device, Result, Stream};

/// What a stream keeps, and what the CUDA graph keeps into which it is being captured.
#[derive(Default)]
pub(crate) struct Resident {
    of_stream: Arc<Kept>,
    of_graph: Mutex<Option<Arc<Kept>>>,
}

impl Resident {
    /// From now on, what is kept is a graph's.
    pub(crate) fn begin_graph(&self) {
        *lock(&self.of_graph) = Some(Arc::default());
    }

    /// What the graph keeps; from now on it is the stream that does.
    pub(crate) fn end_graph(&self) -> Option<Arc<Kept>> {
        lock(&self.of_graph).take()
    }
}

/// Memory that a stream or a graph keeps.
#[derive(Default)]
pub(crate) struct Kept {
    words: Mutex<Words>,
    /// What is in no use.
    free: Mutex<Vec<Buffer<u8>>>,
}

/// Words by what they are for: for each type of keys, a map from these.
#[derive(Default)]
struct Words(HashMap<TypeId, Box<dyn Any + Send>>);

impl Words {
    fn by<Key: Send + 'static>(&mut self) -> &mut HashMap<Key, Arc<Buffer<u32>>> {
        let map = self.0.entry(TypeId::of::<Key>());
        map.or_insert_with(|| Box::new(HashMap::<Key, Arc<Buffer<u32>>>::new()))
            .downcast_mut()
            .expect("a map stands under the type of its keys")
    }
}

impl Kept {
    /// The smallest of what is free and as large as that, or something new.
    pub(crate) fn take(&self, device: &Device, bytes: usize) -> Result<Buffer<u8>> {
        let mut free = lock(&self.free);
        let large_enough = free.iter().enumerate().filter(|(_, it)| it.len() >= bytes);
        match large_enough.min_by_key(|(_, it)| it.len()) {
            Some((smallest, _)) => Ok(free.swap_remove(smallest)),
            None => Buffer::allocate(device, bytes),
        }
    }

    /// Keeps it for the next [`take`](Self::take).
    pub(crate) fn give(&self, memory: Buffer<u8>) {
        lock(&self.free).push(memory);
    }
}

impl Stream {
    /// Words on the device that stay with the stream and its clones: those that `make` gives at the
    /// first call with this key, and afterwards whatever kernels have made of them. `None` if `make`
    /// gives none.
    ///
    /// Keys of different types are different, so that nobody else has the words of a type that only you
    /// can name.
    ///
    /// Launches of this stream run one after the other, so that each can rely on what the one before
    /// left. During a [`capture`](Self::capture) the words are the graph's, whose replays run one after the
    /// other, too. `None` where that is not sure: for a stream that was made elsewhere, which another one
    /// may be a handle of, and while it is captured by other means.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// #[derive(PartialEq, Eq, Hash)]
    /// struct Counters;
    ///
    /// let words = stream.resident(Counters, || Ok(Some(vec![1, 2, 3])))?.expect("of our own");
    /// assert_eq!(stream.download(&*words)?, [1, 2, 3]);
    /// let same = stream.resident(Counters, || unreachable!())?.expect("of our own");
    /// assert_eq!(same.view().address(), words.view().address());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `make`, [`Error::OutOfMemory`](crate::Error::OutOfMemory),
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn resident<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Vec<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        let keeps = match self.is_capturing()? {
            false => self.kept().map(|it| it.of_stream.clone()),
            true => self.graph_keeps(),
        };
        let Some(keeps) = keeps else {
            return Ok(None);
        };
        let mut words = lock(&keeps.words);
        let kept = words.by();
        if let Some(words) = kept.get(&key) {
            return Ok(Some(words.clone()));
        }
        let Some(words) = make()? else {
            return Ok(None);
        };
        // By a stream of its own, as nothing can wait for one that is being captured.
        let words = Arc::new(self.device().stream()?.upload(&words)?);
        kept.insert(key, words.clone());
        Ok(Some(words))
    }

    /// What the graph keeps into which the stream is being captured; `None` if it is not.
    pub(crate) fn graph_keeps(&self) -> Option<Arc<Kept>> {
        match self.queue() {
            Queue::Cpu(queue) => queue.graph_keeps(),
            Queue::Gpu(_) => lock(&self.kept()?.of_graph).clone(),
        }
    }
}
