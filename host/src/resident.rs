//! Resident memory: what stays with a stream, or with a graph. Launches leave something in words of it for later
//! ones, and what one has no more use for is there for the next.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::{Buffer, Device, Result};

/// What a stream keeps, and what the CUDA graph keeps into which it is being captured.
#[derive(Default)]
pub(crate) struct StreamMemory {
    own: ResidentMemory,
    of_graph: Mutex<Option<Arc<ResidentMemory>>>,
}

impl StreamMemory {
    /// What the stream keeps.
    pub(crate) fn own(&self) -> &ResidentMemory {
        &self.own
    }

    /// What the graph keeps into which the stream is being captured.
    pub(crate) fn of_graph(&self) -> Option<Arc<ResidentMemory>> {
        lock(&self.of_graph).clone()
    }

    /// From now on, what is kept is a graph's.
    pub(crate) fn begin_graph(&self) {
        *lock(&self.of_graph) = Some(Arc::default());
    }

    /// What the graph keeps; from now on it is the stream that does.
    pub(crate) fn end_graph(&self) -> Option<Arc<ResidentMemory>> {
        lock(&self.of_graph).take()
    }
}

/// Memory that a stream or a graph keeps.
#[derive(Default)]
pub(crate) struct ResidentMemory {
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

impl ResidentMemory {
    /// The words of this key, which `make` makes at first.
    pub(crate) fn words<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Buffer<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        let mut words = lock(&self.words);
        let kept = words.by();
        if let Some(words) = kept.get(&key) {
            return Ok(Some(words.clone()));
        }
        let Some(words) = make()?.map(Arc::new) else {
            return Ok(None);
        };
        kept.insert(key, words.clone());
        Ok(Some(words))
    }

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
