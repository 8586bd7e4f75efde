//! The ordered barrier: two ping-pong warpgroups take turns to enter a section.

use crate::warpgroup::{WARPGROUP_SIZE, WarpgroupIdx};
use crate::{barrier_arrive, barrier_sync};

/// The named barrier of the first warpgroup. The second warpgroup has the next one. They are the last two of a block.
const FIRST_BARRIER: u32 = 14;

/// The ordered barrier of one of two ping-pong warpgroups. The first warpgroup enters first.
///
/// It orders the warpgroups in time. It does not make the writes of one visible to the other.
#[derive(Debug)]
pub struct OrderedBarrier {
    me: u32,
    is_mine: bool,
}

impl OrderedBarrier {
    /// The barrier of warpgroup `me`, which is 0 or 1.
    #[inline(always)]
    pub fn new(me: WarpgroupIdx) -> Self {
        Self {
            me: me.get(),
            is_mine: !me.is_first(),
        }
    }

    /// Lets the first warpgroup in. All threads of both warpgroups call it, once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn begin(&self) {
        if self.me != 0 {
            self.pass();
        }
    }

    /// Whether the next work tile is this warpgroup's. The warpgroups take turns.
    #[inline(always)]
    pub fn next_is_mine(&mut self) -> bool {
        self.is_mine = !self.is_mine;
        self.is_mine
    }

    /// Waits until this warpgroup may enter.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&self) {
        barrier_sync(FIRST_BARRIER + self.me, 2 * WARPGROUP_SIZE);
    }

    /// Lets the other warpgroup in.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn pass(&self) {
        barrier_arrive(FIRST_BARRIER + (1 - self.me), 2 * WARPGROUP_SIZE);
    }
}
