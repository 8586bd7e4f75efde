//! The memory of a stream: words that it keeps from launch to launch, and scratch memory that is not in use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::idle_blocks::{Block, IdleBlocks};
use crate::lock::lock;
use crate::stream_state::StreamState;
use crate::{Buffer, Result};

/// The memory of a stream. That of a capture's stream lives as long as the graph.
///
/// Several streams may have one handle, as streams of cudarc do that are borrowed twice. Each has its own memory, which
/// its own launches use, and the handle's work runs in the order of its calls.
#[derive(Default)]
pub(crate) struct StreamMemory {
    words: ResidentWords,
    /// Scratch memory of a GPU's pool.
    idle: Mutex<IdleBlocks>,
    /// Scratch memory of a capture.
    of_capture: Mutex<CaptureMemory>,
}

impl StreamMemory {
    /// The stream's words.
    pub(crate) fn words(&self) -> &ResidentWords {
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

    /// Scratch memory of captures.
    pub(crate) fn of_capture(&self) -> &Mutex<CaptureMemory> {
        &self.of_capture
    }
}

/// Scratch memory of the stream's last capture that is not in use. The stream's later work in the capture may use it.
#[derive(Default)]
pub(crate) struct CaptureMemory {
    capture: CaptureId,
    free: Vec<Arc<Buffer<u8>>>,
}

/// The driver's number of a capture.
pub(crate) type CaptureId = u64;

impl CaptureMemory {
    /// A capture of this crate, which is the only one of its stream.
    pub(crate) const OWN: CaptureId = 0;

    /// Takes the smallest memory of at least `bytes` bytes that earlier work of this capture has used.
    pub(crate) fn take(&mut self, capture: CaptureId, bytes: usize) -> Option<Arc<Buffer<u8>>> {
        if self.capture != capture {
            *self = CaptureMemory {
                capture,
                free: Vec::new(),
            };
        }
        let fits = |&at: &usize| self.free[at].len() >= bytes;
        let fitting = (0..self.free.len()).filter(fits);
        let smallest = fitting.min_by_key(|&at| self.free[at].len())?;
        Some(self.free.swap_remove(smallest))
    }

    /// Keeps memory that work of this capture has used.
    pub(crate) fn give(&mut self, capture: CaptureId, memory: Arc<Buffer<u8>>) {
        if self.capture == capture {
            self.free.push(memory);
        }
    }
}

/// Words that a stream keeps, by their keys: a map for each type of key.
#[derive(Default)]
pub(crate) struct ResidentWords(StreamState);

/// Words by keys of a type.
type WordsBy<Key> = Mutex<HashMap<Key, Arc<Buffer<u32>>>>;

impl ResidentWords {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn the_smallest_memory_of_the_same_capture_is_taken() {
        let mut memory = CaptureMemory::default();
        let made = |bytes| Arc::new(Buffer::<u8>::allocate_apart(&Device::cpu(), bytes).unwrap());
        let (small, large) = (made(100), made(200));
        let at_small = small.view().address();
        memory.give(0, large);
        memory.give(0, small);
        let take = |memory: &mut CaptureMemory, capture, bytes| {
            memory.take(capture, bytes).map(|it| it.view().address())
        };
        assert_eq!(take(&mut memory, 0, 201), None);
        assert_eq!(take(&mut memory, 0, 50), Some(at_small));
        assert_eq!(take(&mut memory, 7, 50), None, "another capture");
        assert_eq!(
            take(&mut memory, 0, 50),
            None,
            "its memory is the graph's alone by now"
        );
    }
}
