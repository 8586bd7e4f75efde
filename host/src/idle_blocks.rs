//! Blocks of scratch memory of a GPU's pool, which streams keep.

use cudarc::driver::sys::{self, CUstream};

use crate::driver::RelaxedCaptureMode;

/// A block of scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl Block {
    /// Frees the block after the stream's earlier work.
    ///
    /// # Safety
    /// Nothing uses the block later. The stream is alive, and its context is current.
    pub(crate) unsafe fn free(self, stream: CUstream) {
        let _relaxed = RelaxedCaptureMode::enter();
        // SAFETY: allocated by `MemoryPool::allocate`; the rest is the caller's promise. An error here is an earlier
        // kernel's, and the next call returns it.
        let _ = unsafe { sys::cuMemFreeAsync(self.address, stream) };
    }
}

/// Blocks that a stream keeps, so that its next scratch memory takes no driver call.
#[derive(Default)]
pub(crate) struct IdleBlocks(Vec<Block>);

impl IdleBlocks {
    /// An operation has up to three blocks at a time: two repacked operands and partial sums.
    const MOST: usize = 3;
    /// Larger blocks are not kept: next to the work that fills them, an allocation costs nothing.
    const LARGEST: usize = 32 << 20;

    /// Takes the smallest block of at least `bytes` bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Block> {
        let large_enough = |&at: &usize| self.0[at].bytes >= bytes;
        let fitting = (0..self.0.len()).filter(large_enough);
        let smallest = fitting.min_by_key(|&at| self.0[at].bytes)?;
        Some(self.0.swap_remove(smallest))
    }

    /// Keeps the block. Returns a block to free: this one if it is too large, or the smallest if there are too many.
    #[must_use]
    pub(crate) fn give(&mut self, block: Block) -> Option<Block> {
        if block.bytes > Self::LARGEST {
            return Some(block);
        }
        self.0.push(block);
        if self.0.len() <= Self::MOST {
            return None;
        }
        self.take(0)
    }

    /// Takes all blocks.
    pub(crate) fn take_all(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, IdleBlocks};

    fn block(bytes: usize) -> Block {
        Block {
            address: bytes as u64,
            bytes,
        }
    }

    #[test]
    fn the_smallest_block_that_fits_is_taken() {
        let mut idle = IdleBlocks::default();
        assert_eq!(idle.take(1), None);
        for bytes in [300, 100, 200] {
            assert_eq!(idle.give(block(bytes)), None);
        }
        assert_eq!(idle.take(301), None);
        assert_eq!(idle.take(101), Some(block(200)));
        assert_eq!(idle.take(101), Some(block(300)));
        assert_eq!(idle.take(100), Some(block(100)));
        assert_eq!(idle.take(0), None);
    }

    #[test]
    fn too_many_and_too_large_blocks_are_freed() {
        let mut idle = IdleBlocks::default();
        for bytes in [300, 100, 200] {
            assert_eq!(idle.give(block(bytes)), None);
        }
        assert_eq!(idle.give(block(50)), Some(block(50)));
        assert_eq!(idle.give(block(400)), Some(block(100)));
        let too_large = block(IdleBlocks::LARGEST + 1);
        assert_eq!(idle.give(too_large), Some(too_large));
        let mut left = idle.take_all();
        left.sort_by_key(|block| block.bytes);
        assert_eq!(left, [200, 300, 400].map(block));
        assert_eq!(idle.take(0), None);
    }
}
