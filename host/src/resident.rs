//! Resident memory: words in device memory that a stream or a graph keeps from launch to launch, and the blocks of
//! scratch memory that a stream keeps.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::kept::Kept;
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

/// Words that a stream or a graph keeps, by their keys: a map for each type of key.
#[derive(Default)]
pub(crate) struct ResidentMemory(Kept);

/// Words by keys of a type.
type WordsBy<Key> = Mutex<HashMap<Key, Arc<Buffer<u32>>>>;

impl ResidentMemory {
    /// The words with this key. The first call for a key makes them with `make`. So do calls that begin before that one
    /// ends, but all of them return the same words.
    pub(crate) fn words<Key: Eq + Hash + Send + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Buffer<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        let words = self.0.value::<WordsBy<Key>>();
        if let Some(words) = lock(&words).get(&key) {
            return Ok(Some(words.clone()));
        }
        // `make` is the caller's, and may ask for words itself, so the lock is not held.
        let Some(made) = make()?.map(Arc::new) else {
            return Ok(None);
        };
        // If another call for this key has finished meanwhile, its words stay.
        Ok(Some(lock(&words).entry(key).or_insert(made).clone()))
    }
}
