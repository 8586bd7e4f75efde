//! Warpgroups: four consecutive warps, which issue `wgmma` and change their numbers of registers together.

mod registers;
mod thread;

use core::ops::Range;

use cutlet_layout_core::{ThreadIndex, TileIndex};

pub use registers::{decrease_registers, increase_registers};
pub use thread::{ThreadAtStep, ThreadOfWarpgroups, WarpgroupsThread};

use crate::index::index;
use crate::{barrier_sync, shfl, thread_idx};

/// Threads of a warpgroup.
pub const WARPGROUP_SIZE: u32 = 128;
/// Warps of a warpgroup.
pub(crate) const WARPGROUP_WARPS: u32 = WARPGROUP_SIZE / crate::WARP_SIZE;

index! {
    /// Index of a warpgroup in its block.
    WarpgroupIdx
}
index! {
    /// Index of a thread in its warpgroup.
    WarpgroupThread
}

impl WarpgroupIdx {
    /// The index of the `nth` of this warpgroup's items, where every warpgroup has `each` items and they are counted
    /// through all warpgroups.
    #[inline(always)]
    pub const fn own(self, each: usize, nth: usize) -> u32 {
        self.0 * each as u32 + nth as u32
    }

    /// This warpgroup's share of `count` items, which `WARPGROUPS` warpgroups divide in order.
    #[inline(always)]
    pub const fn share<const WARPGROUPS: u32>(self, count: u32) -> Range<u32> {
        let each = count.div_ceil(WARPGROUPS);
        let (first, end) = (self.0 * each, (self.0 + 1) * each);
        let end = if end < count { end } else { count };
        first..end
    }

    /// The index counted from warpgroup `first`: the index of a consumer, if the producers come first.
    #[inline(always)]
    pub const fn after(self, first: u32) -> Self {
        Self(self.0 - first)
    }
}

impl WarpgroupThread {
    /// The thread's warp in the warpgroup.
    #[inline(always)]
    pub const fn warp(self) -> u32 {
        self.0 / crate::WARP_SIZE
    }
}

impl ThreadIndex for WarpgroupThread {
    const THREADS: Option<u32> = Some(WARPGROUP_SIZE);

    #[inline(always)]
    fn index(self) -> u32 {
        self.0
    }
}

impl TileIndex for WarpgroupIdx {
    #[inline(always)]
    fn index(self) -> u32 {
        self.0
    }
}

/// The running thread's warpgroup. All lanes of the warp call it. The compiler knows the result to be uniform: branches
/// on it do not diverge, and addresses that depend on it are kept in uniform registers.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warpgroup_idx() -> WarpgroupIdx {
    WarpgroupIdx(shfl(thread_idx().get() / WARPGROUP_SIZE, 0))
}

/// The running thread's index in its warpgroup.
#[inline(always)]
pub fn warpgroup_thread_idx() -> WarpgroupThread {
    WarpgroupThread(thread_idx().get() % WARPGROUP_SIZE)
}

/// The barrier of all threads of warpgroup `group`, which is below 13. Each warpgroup has a named barrier of its own.
/// The last two named barriers are those of [`OrderedBarrier`](crate::collective::OrderedBarrier).
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warpgroup_sync(group: WarpgroupIdx) {
    barrier_sync(1 + group.0, WARPGROUP_SIZE);
}
