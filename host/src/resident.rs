//! Resident memory: words in device memory that a stream or a graph keeps from launch to launch, and the blocks of
//! scratch memory that a stream keeps.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::scratch_pool::{Block, IdleBlocks};
use crate::{Buffer, Result};

/// The memory of a stream.
#[derive(Default)]
pub(crate) struct StreamMemory {
    words: ResidentMemory,
    /// Scratch memory of a GPU's stream that is not in use.
    idle: Mutex<IdleBlocks>,
}

impl StreamMemory {
    /// The stream's words.
    pub(crate) fn words(&self) -> &ResidentMemory {
        &self.words
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
}

/// Words that a stream or a graph keeps, by their keys.
#[derive(Default)]
pub(crate) struct ResidentMemory(Mutex<Words>);

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
    /// The words with this key. The first call for a key makes them with `make`. So do calls that begin before that one
    /// ends, but all of them return the same words.
    pub(crate) fn words<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Buffer<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        if let Some(words) = lock(&self.0).by::<Key>().get(&key) {
            return Ok(Some(words.clone()));
        }
        // `make` is the caller's, and may ask for words itself, so the lock is not held.
        let Some(made) = make()?.map(Arc::new) else {
            return Ok(None);
        };
        // If another call for this key has finished meanwhile, its words stay.
        let mut words = lock(&self.0);
        Ok(Some(words.by().entry(key).or_insert(made).clone()))
    }
}
