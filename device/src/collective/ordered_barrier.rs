//! The ordered barrier: two ping-pong warpgroups enter a section one after the other.

use crate::sm90::{WARPGROUP_SIZE, WarpgroupIdx};
use crate::{barrier_arrive, barrier_sync};

/// The named barrier of the first warpgroup; the second warpgroup's follows. They are the last two that a block has.
const FIRST_BARRIER: u32 = 14;

/// One of two ping-pong warpgroups. The first one begins.
///
/// The barrier orders the two in time. It does not make one warpgroup's writes visible to the other.
#[derive(Debug)]
pub struct OrderedBarrier {
    me: u32,
    is_mine: bool,
}

impl OrderedBarrier {
    /// For warpgroup `me` of the two, 0 or 1.
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

    /// Whether the next work tile is this warpgroup's: every other one is.
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
