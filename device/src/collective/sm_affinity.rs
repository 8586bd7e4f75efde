//! SM affinity: a cluster claims a slot in the tile schedule by the multiprocessor that it runs on.
//!
//! Some multiprocessors share their path to the L2 cache. A line that several of them request at the same time is read
//! once, so they should work at tiles that share an operand. A block learns its multiprocessor only when it runs. So
//! one thread of each cluster claims a slot of its group of multiprocessors, or a slot of another group if all of these
//! are taken.

use crate::atomic::atomic_add_early;
use crate::cluster::{map_shared, store_async};
use crate::mbarrier::{Mbarrier, fence_mbarrier_init};
use crate::{
    DeviceData, GlobalMut, SharedArray, SharedMemory, SharedStorage, multiprocessor_idx,
    thread_fence,
};

/// The most groups of multiprocessors.
const MOST_GROUPS: usize = 16;
/// The most multiprocessors, and the most slots.
const MOST: usize = 256;

// Offsets of the words of the table.
/// The number of slots claimed in the running launch.
const CLAIMED: usize = 0;
/// The number of slots.
const COUNT: usize = 1;
/// The number of groups.
const GROUPS: usize = 2;
/// For each group, the number of attempts to claim one of its slots.
const TAKEN: usize = 3;
/// For each group, the index of its first slot. The next group's slots follow.
const FIRST: usize = TAKEN + MOST_GROUPS;
/// The group of each multiprocessor.
const GROUP_OF: usize = FIRST + MOST_GROUPS + 1;
/// The slots, group by group.
const SLOTS: usize = GROUP_OF + MOST;
/// The number of words.
#[cfg(not(target_arch = "nvptx64"))]
const WORDS: usize = SLOTS + MOST;

/// A table in global memory of the slots that clusters claim. Launches that use it run one after the other.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct SmAffinity(GlobalMut<u32>);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for SmAffinity {}

impl SmAffinity {
    /// No table: the slot of each cluster is its index.
    pub const NONE: Self = Self(GlobalMut::from_ptr(core::ptr::null_mut()));

    /// The table at `words`, which [`plan`](Self::plan) made.
    #[inline(always)]
    pub const fn at(words: GlobalMut<u32>) -> Self {
        Self(words)
    }

    /// Whether there is no table.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0.as_ptr().is_null()
    }

    /// The words of a table. `groups` is the group of each multiprocessor, and `slots` is the list of slots of each
    /// group. The launch must have as many clusters as there are slots.
    ///
    /// Returns `None` if there are more than 256 multiprocessors, 256 slots or 16 groups, or if a multiprocessor is in
    /// no group.
    ///
    /// ```
    /// use cutlet_device::collective::SmAffinity;
    ///
    /// // Four multiprocessors in two groups of neighbours, and two clusters of two blocks.
    /// let words = SmAffinity::plan(&[0, 0, 1, 1], &[vec![0], vec![1]]);
    /// assert!(words.is_some());
    /// ```
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn plan(groups: &[u32], slots: &[std::vec::Vec<u32>]) -> Option<std::vec::Vec<u32>> {
        let count: usize = slots.iter().map(|of_group| of_group.len()).sum();
        let exists = |group: &u32| (*group as usize) < slots.len();
        if groups.len() > MOST
            || count > MOST
            || slots.len() > MOST_GROUPS
            || !groups.iter().all(exists)
        {
            return None;
        }
        let mut words = std::vec![0; WORDS];
        words[COUNT] = count as u32;
        words[GROUPS] = slots.len() as u32;
        words[GROUP_OF..][..groups.len()].copy_from_slice(groups);
        let mut end = 0;
        for (group, of_group) in slots.iter().enumerate() {
            words[FIRST + group] = end as u32;
            words[SLOTS + end..][..of_group.len()].copy_from_slice(of_group);
            end += of_group.len();
            words[FIRST + group + 1] = end as u32;
        }
        Some(words)
    }

    /// Claims a slot that no other cluster of the launch has. The cluster that claims the last slot resets the table
    /// for the next launch.
    ///
    /// One thread of each cluster calls it, and broadcasts the slot to the cluster's blocks by an [`AffinitySlot`].
    ///
    /// # Safety
    /// The table must exist, and the launch must have as many clusters as there are slots. No other launch may begin
    /// before all clusters of this one have claimed theirs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn claim(self) -> u32 {
        let Self(words) = self;
        let at = |offset: usize, nth: u32| offset as i64 + i64::from(nth);
        // SAFETY: all offsets are within the table. Plain stores are those of the last cluster to claim, after all
        // others have claimed.
        unsafe {
            let multiprocessor = multiprocessor_idx().min(MOST as u32 - 1);
            let mut group = words.load_early(at(GROUP_OF, multiprocessor));
            let groups = words.load_early(GROUPS as i64);
            let mut tries = 0;
            let slot = loop {
                let [first, end] =
                    [group, group + 1].map(|group| words.load_early(at(FIRST, group)));
                let nth = atomic_add_early(words, at(TAKEN, group), 1);
                if nth < end - first {
                    break words.load_early(at(SLOTS, first + nth));
                }
                tries += 1;
                if tries == groups {
                    // There are more clusters than slots: this slot has no work tiles.
                    break u32::MAX;
                }
                group = if group + 1 == groups { 0 } else { group + 1 };
            };
            if atomic_add_early(words, CLAIMED as i64, 1) + 1 == words.load_early(COUNT as i64) {
                for group in 0..MOST_GROUPS as u32 {
                    words.store_early(at(TAKEN, group), 0);
                }
                words.store_early(CLAIMED as i64, 0);
                thread_fence();
            }
            slot
        }
    }
}

/// Shared memory in which the blocks of a cluster receive the slot that it claimed.
#[derive(Clone, Copy, Debug)]
pub struct AffinitySlot {
    slot: SharedArray<u32, 1>,
    received: Mbarrier,
}

impl SharedStorage for AffinitySlot {
    const BYTES: u32 = <(SharedArray<u32, 1>, Mbarrier)>::BYTES;
    const ALIGN: u32 = <(SharedArray<u32, 1>, Mbarrier)>::ALIGN;

    #[inline(always)]
    fn at(address: u32) -> Self {
        let (slot, received) = SharedStorage::at(address);
        Self { slot, received }
    }
}

impl AffinitySlot {
    /// Takes the memory. It must have the same address for every thread of every block of the cluster.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// Initialises the barrier. One thread of the block calls it. Then all threads of the cluster meet at the cluster's
    /// barrier.
    ///
    /// # Safety
    /// The barrier's memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self) {
        // SAFETY: as promised by the caller.
        unsafe { self.received.init(1) };
        fence_mbarrier_init();
    }

    /// Expects the broadcast. One thread of each block of the cluster calls it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn expect(self) {
        self.received.arrive_expect_tx(size_of::<u32>() as u32);
    }

    /// Broadcasts the slot to all `blocks` blocks of the cluster. One thread of the cluster calls it, after the cluster
    /// has met at its barrier.
    ///
    /// # Safety
    /// No block may end before it has called [`index`](Self::claimed).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn broadcast(self, slot: u32, blocks: u32) {
        for rank in 0..blocks {
            let (to, received) = (
                map_shared(*self.slot, rank),
                map_shared(self.received.word(), rank),
            );
            // SAFETY: each block waits for its barrier's phase before it reads the slot.
            unsafe { store_async(to, [slot], received) };
        }
    }

    /// Waits for the broadcast.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(self) {
        self.received.wait(0);
    }

    /// Waits for the broadcast, and returns the slot.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn claimed(self) -> u32 {
        self.wait();
        // SAFETY: the slot was received, and nothing writes it again.
        unsafe { self.slot.load(0) }
    }
}
