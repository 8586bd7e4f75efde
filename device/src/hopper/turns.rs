//! Turns: two warpgroups that do the same thing alternately.

use crate::{barrier_arrive, barrier_sync};

use super::{WARPGROUP_SIZE, WarpgroupIdx};

/// The barrier of the first one's turn; the second one's follows. They are the last that a block
/// has.
const FIRST_BARRIER: u32 = 14;

/// The state of one of two warpgroups that take turns. The first begins.
///
/// Turns are only about when: what the other one did before it passed the turn on need not be
/// visible.
#[derive(Debug)]
pub struct Turns {
    me: u32,
    mine: bool,
}

impl Turns {
    /// For warpgroup `me` of the two, 0 or 1.
    #[inline(always)]
    pub fn new(me: WarpgroupIdx) -> Self {
        Self {
            me: me.get(),
            mine: !me.is_first(),
        }
    }

    /// Gives the first one its turn. All threads of both call it, once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn begin(&self) {
        if self.me != 0 {
            self.pass();
        }
    }

    /// Whether the next piece of work is this one's: every other one is.
    #[inline(always)]
    pub fn mine(&mut self) -> bool {
        self.mine = !self.mine;
        self.mine
    }

    /// Waits for this one's turn.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&self) {
        barrier_sync(FIRST_BARRIER + self.me, 2 * WARPGROUP_SIZE);
    }

    /// Passes the turn on.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn pass(&self) {
        barrier_arrive(FIRST_BARRIER + (1 - self.me), 2 * WARPGROUP_SIZE);
    }
}
