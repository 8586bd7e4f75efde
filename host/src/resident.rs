//! Resident memory: device memory that a stream or a graph keeps from launch to launch.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::scratch_pool::{Block, IdleBlocks};
use crate::{Buffer, Device, Result};

/// The memory of a stream and, during a capture, of the CUDA graph that is being recorded.
#[derive(Default)]
pub(crate) struct StreamMemory {
    own: ResidentMemory,
    /// Scratch memory of a GPU's stream that is not in use.
    idle: Mutex<IdleBlocks>,
    of_graph: Mutex<Option<Arc<ResidentMemory>>>,
}

impl StreamMemory {
    /// The stream's memory.
    pub(crate) fn own(&self) -> &ResidentMemory {
        &self.own
    }

    /// A block of at least `bytes` bytes that the stream's earlier work has used.
    pub(crate) fn take_idle(&self, bytes: usize) -> Option<Block> {
        lock(&self.idle).take(bytes)
    }

    /// Keeps a block for the stream's later work. Returns a block to free, if there are too many.
    #[must_use]
    pub(crate) fn give_idle(&self, block: Block) -> Option<Block> {
        lock(&self.idle).give(block)
    }

    /// Takes all blocks that the stream keeps, to free them.
    pub(crate) fn take_all_idle(&self) -> Vec<Block> {
        lock(&self.idle).take_all()
    }

    /// The memory of the graph that is being recorded; `None` outside a capture.
    pub(crate) fn of_graph(&self) -> Option<Arc<ResidentMemory>> {
        lock(&self.of_graph).clone()
    }

    /// Begins the memory of a graph.
    pub(crate) fn begin_graph(&self) {
        *lock(&self.of_graph) = Some(Arc::default());
    }

    /// Ends the memory of the graph, and returns it.
    pub(crate) fn end_graph(&self) -> Option<Arc<ResidentMemory>> {
        lock(&self.of_graph).take()
    }
}

/// The memory that a stream or a graph keeps: words with keys, and scratch memory for reuse.
#[derive(Default)]
pub(crate) struct ResidentMemory {
    words: Mutex<Words>,
    /// Scratch memory that is not in use.
    free: Mutex<Vec<Buffer<u8>>>,
}

/// Words by key: a map for each type of key.
#[derive(Default)]
struct Words(HashMap<TypeId, Box<dyn Any + Send>>);

impl Words {
    fn by<Key: Send + 'static>(&mut self) -> &mut HashMap<Key, Arc<Buffer<u32>>> {
        let map = self.0.entry(TypeId::of::<Key>());
        map.or_insert_with(|| Box::new(HashMap::<Key, Arc<Buffer<u32>>>::new()))
            .downcast_mut()
            .expect("the map under a type has keys of that type")
    }
}

impl ResidentMemory {
    /// The words with this key. The first call for a key makes them with `make`. So do calls that begin before that one ends,
    /// but all of them return the same words.
    pub(crate) fn words<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Buffer<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        if let Some(words) = lock(&self.words).by::<Key>().get(&key) {
            return Ok(Some(words.clone()));
        }
        // `make` is the caller's, and may ask for words itself, so the lock is not held.
        let Some(made) = make()?.map(Arc::new) else {
            return Ok(None);
        };
        // If another call for this key has finished meanwhile, its words stay.
        let mut words = lock(&self.words);
        Ok(Some(words.by().entry(key).or_insert(made).clone()))
    }

    /// The smallest free memory of at least `bytes` bytes, or new memory.
    pub(crate) fn take(&self, device: &Device, bytes: usize) -> Result<Buffer<u8>> {
        let mut free = lock(&self.free);
        let large_enough = free.iter().enumerate().filter(|(_, it)| it.len() >= bytes);
        match large_enough.min_by_key(|(_, it)| it.len()) {
            Some((smallest, _)) => Ok(free.swap_remove(smallest)),
            None => Buffer::allocate(device, bytes),
        }
    }

    /// Keeps the memory for a later [`take`](Self::take).
    pub(crate) fn give(&self, memory: Buffer<u8>) {
        lock(&self.free).push(memory);
    }
}
