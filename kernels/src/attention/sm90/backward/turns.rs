//! Turns: the tiles of keys add to a block's dQ in their order, if the result must not vary.

use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread, warpgroup_sync};
use cutlet_device::{DeviceData, GlobalMut, atomic_load, atomic_store, sync_warp, wait_until};

use super::args::KeyTile;
use crate::attention::mask::KeyBlocks;
use crate::attention::sm90::config::CONSUMERS;

/// Whose turn it is at each block of queries.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct TurnsArgs {
    /// For each block of queries, and for each consumer, which has a part of dQ of its own: the tile of keys whose turn
    /// is next. Zeros at first. Not read unless `are_taken`.
    pub next: GlobalMut<u32>,
    /// Not 0 if tiles wait for their turns.
    pub are_taken: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// The turns of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    args: TurnsArgs,
    /// The tile.
    tile: u32,
    /// The blocks of queries that see the tile before, if there is one.
    before: KeyBlocks,
}

impl Turns {
    /// Of a tile, where `blocks` are those of the tile before, or any if there is none.
    #[inline(always)]
    pub fn of(args: TurnsArgs, tile: &KeyTile, before: KeyBlocks) -> Self {
        Self {
            args,
            tile: tile.of_keys,
            before,
        }
    }

    /// The tile's turn at a block, which is the `nth` of all.
    #[inline(always)]
    pub fn at(&self, block: u32, nth: u32) -> Turn {
        Turn {
            next: self.args.next.offset(i64::from(nth) * CONSUMERS as i64),
            tile: self.tile,
            // Tiles that a block sees are neighbours. The first of them waits for none.
            begins_after: match self.before.contains(block) {
                true => self.tile,
                false => 0,
            },
            is_taken: self.args.are_taken != 0,
        }
    }
}

/// A tile's turn at a block of queries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    next: GlobalMut<u32>,
    tile: u32,
    begins_after: u32,
    is_taken: bool,
}

impl Turn {
    /// One thread of the consumer waits for the turn. The consumer's threads meet before they add to dQ.
    ///
    /// # Safety
    /// There must be counters for each block of queries. No tile may run long before those that it waits for.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn wait(&self, consumer: WarpgroupIdx, thread: WarpgroupThread) {
        if self.is_taken {
            if thread.is_first() {
                let own = i64::from(consumer.own(1, 0));
                // SAFETY: as promised by the caller.
                wait_until(|| unsafe { atomic_load(self.next, own) } == self.begins_after);
            }
            sync_warp();
        }
    }

    /// Lets the next tile take its turn, after all threads of the consumer have added to dQ.
    ///
    /// # Safety
    /// As [`wait`](Self::wait).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn pass(&self, consumer: WarpgroupIdx, thread: WarpgroupThread) {
        if self.is_taken {
            warpgroup_sync(consumer);
            if thread.is_first() {
                let own = i64::from(consumer.own(1, 0));
                // SAFETY: as promised by the caller.
                unsafe { atomic_store(self.next, own, self.tile + 1) };
            }
        }
    }
}
