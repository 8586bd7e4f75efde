//! The loads of keys and values, by all threads of a block.

use cutlet_device::collective::{CpAsyncPipeline, StageIdx, Stages};
use cutlet_device::tiled::{CpAsync, copy_if};
use cutlet_device::{Global, ThreadGroup, ThreadIdx};
use cutlet_layout_core::{Bound, L, RowMajor, Tensor, TiledCopy};

use super::storage::{Ring, TileOfKeys};
use crate::attention::element::Element;
use crate::attention::mask::KeyBlocks;

/// The threads' copies of 64 keys or values: eight features each.
type Copies = TiledCopy<CpAsync<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
/// Rows of features: the queries, the keys or the values of a head.
pub(super) type Matrix<T> = Tensor<Global<T>, RowMajor>;

/// The loader of the blocks of keys and values that a tile sees: keys of the first one, its values, keys of the second
/// one, and so on.
pub(super) struct Loader<T: Element, G, const BLOCKS: usize, const STAGES: usize> {
    pub thread: ThreadIdx<G>,
    pub keys: Matrix<T>,
    pub values: Matrix<T>,
    pub blocks: KeyBlocks,
    pub stages: [Ring<T, STAGES>; BLOCKS],
    pub pipeline: CpAsyncPipeline<Stages<STAGES>>,
}

impl<T: Element, G: ThreadGroup, const BLOCKS: usize, const STAGES: usize>
    Loader<T, G, BLOCKS, STAGES>
{
    /// Whether the keys and the values of a block are loaded ahead, and not the keys alone.
    const TWO_AHEAD: bool = {
        assert!(
            STAGES == 2 || STAGES == 3,
            "there are two or three stages: keys or values are multiplied while one or two tiles arrive"
        );
        STAGES == 3
    };

    /// Begins the first loads. The thread's copies before belong to them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn begin(&mut self) {
        self.load(self.keys, 0);
        if Self::TWO_AHEAD {
            self.load(self.values, 0);
        }
    }

    /// Waits for the keys of block `nth`. All threads of the block call it, and have multiplied the values before.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait_for_keys(&mut self, nth: u32) -> StageIdx {
        let stage = self.pipeline.wait();
        match Self::TWO_AHEAD {
            true => self.load(self.keys, nth + 1),
            false => self.load(self.values, nth),
        }
        stage
    }

    /// Waits for the values of block `nth`. All threads of the block call it, and have multiplied its keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait_for_values(&mut self, nth: u32) -> StageIdx {
        let stage = self.pipeline.wait();
        match Self::TWO_AHEAD {
            true => self.load(self.values, nth + 1),
            false => self.load(self.keys, nth + 1),
        }
        stage
    }

    /// Loads a block of keys or values, if there are so many. Rows and features that there are not become zeros.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load(&mut self, from: Matrix<T>, nth: u32) {
        let stage = self.pipeline.acquire();
        if nth < self.blocks.count() {
            let copies = Copies::thread_slice(self.thread);
            let row = self.blocks.block(nth);
            for (block, ring) in self.stages.iter().enumerate() {
                let from = copies.partition(from.local_tile::<TileOfKeys>((row, block as u32)));
                // SAFETY: the stage is free until it is committed.
                let to = unsafe { ring.stage(stage).tensor() };
                copy_if(&from, &copies.partition(to), |v| from.bound().holds(v));
            }
        }
        self.pipeline.commit();
    }
}
