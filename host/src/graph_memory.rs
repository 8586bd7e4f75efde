//! The memory of a graph: words and scratch memory that its recorded work uses.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lock::lock;
use crate::resident::ResidentMemory;
use crate::{Buffer, Device, Result};

/// The memory of a graph, from the beginning of its capture. It lives as long as the graph.
#[derive(Default)]
pub(crate) struct GraphMemory {
    words: ResidentMemory,
    /// Scratch memory that is not in use, each with the stream that used it. Only this stream's later work is certain
    /// to run after the work that used the memory.
    free: Mutex<Vec<(StreamId, Buffer<u8>)>>,
    has_ended: AtomicBool,
}

/// A stream's number. No two streams have the same, also if one is dropped before the other is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamId(u64);

impl StreamId {
    pub(crate) fn new() -> StreamId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        StreamId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl GraphMemory {
    /// The words that the graph's launches keep.
    pub(crate) fn words(&self) -> &ResidentMemory {
        &self.words
    }

    /// The smallest memory of at least `bytes` bytes that earlier work of this stream used, or new memory.
    pub(crate) fn take(
        &self,
        device: &Device,
        stream: StreamId,
        bytes: usize,
    ) -> Result<Buffer<u8>> {
        let mut free = lock(&self.free);
        let fits =
            |(user, memory): &(StreamId, Buffer<u8>)| *user == stream && memory.len() >= bytes;
        let fitting = free.iter().enumerate().filter(|(_, it)| fits(it));
        match fitting.min_by_key(|(_, (_, memory))| memory.len()) {
            Some((smallest, _)) => Ok(free.swap_remove(smallest).1),
            None => Buffer::allocate(device, bytes),
        }
    }

    /// Keeps memory that work of this stream used, for the graph and for a later [`take`](Self::take).
    pub(crate) fn give(&self, stream: StreamId, memory: Buffer<u8>) {
        lock(&self.free).push((stream, memory));
    }

    /// The capture has ended: no more work will be recorded.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the capture has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_share_scratch_memory() {
        let (graph, device) = (GraphMemory::default(), Device::cpu());
        let (one, another) = (StreamId::new(), StreamId::new());
        assert_ne!(one, another);
        let take = |stream, bytes| graph.take(&device, stream, bytes).unwrap();
        let address = |memory: &Buffer<u8>| memory.view().address();
        let (small, large) = (take(one, 100), take(one, 200));
        let [at_small, at_large] = [&small, &large].map(address);
        graph.give(one, large);
        graph.give(one, small);
        let others = take(another, 50);
        assert!(address(&others) != at_small && address(&others) != at_large);
        let again = [take(one, 100), take(one, 100)];
        assert_eq!(again.each_ref().map(address), [at_small, at_large]);
    }
}
