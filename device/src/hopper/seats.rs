//! Seats: the places in a [`Schedule`](crate::Schedule) that a launch's clusters claim, by the
//! multiprocessors that they run on.
//!
//! Some multiprocessors share their way to the L2 cache: lines that several of them ask for at the same
//! moment are read once. So they should work at tiles that have an operand in common. But which
//! multiprocessor a block gets is known only when it runs, and depends on what ran before. Then one
//! thread of its cluster claims a seat among those for its group of multiprocessors, or another
//! group's, if all of these are taken.

use crate::atomic::atomic_add_early;
use crate::{DeviceData, GlobalMut, Shared, SharedMemory, multiprocessor_idx, thread_fence};

use super::{Mbarrier, fence_mbarrier_init, map_shared, store_async};

/// The most groups of multiprocessors.
const MOST_GROUPS: usize = 16;
/// The most multiprocessors, and seats.
const MOST: usize = 256;

// Where there is what among the words of seats.
/// Seats that were claimed in the running launch, …
const CLAIMED: usize = 0;
/// … of how many.
const COUNT: usize = 1;
/// Groups that there are.
const GROUPS: usize = 2;
/// For each group, how many of its seats are taken, or were asked for in vain.
const TAKEN: usize = 3;
/// For each group, the first of its seats; those of the next begin where its own end.
const FIRST: usize = TAKEN + MOST_GROUPS;
/// The group of each multiprocessor.
const GROUP_OF: usize = FIRST + MOST_GROUPS + 1;
/// The seats, group by group.
const SEATS: usize = GROUP_OF + MOST;
const WORDS: usize = SEATS + MOST;

/// Seats in global memory, for launches that run one after the other.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Seats(GlobalMut<u32>);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Seats {}

impl Seats {
    /// None: each cluster has the place of its index.
    pub const NONE: Self = Self(GlobalMut::from_ptr(core::ptr::null_mut()));

    /// Those whose words, made by [`plan`](Self::plan), are at `words`.
    #[inline(always)]
    pub const fn at(words: GlobalMut<u32>) -> Self {
        Self(words)
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0.as_ptr().is_null()
    }

    /// The words of seats: `groups` says of each multiprocessor which group it belongs to, and `seats`
    /// of each group which seats are for it. There must be a cluster in the launch for each seat.
    /// `None` if there are more than 256 multiprocessors or seats, or more than 16 groups, or if a
    /// multiprocessor is in none of the groups.
    ///
    /// ```
    /// use cutlet_device::hopper::Seats;
    ///
    /// // Four multiprocessors, of which neighbours belong together, and two clusters of two.
    /// let words = Seats::plan(&[0, 0, 1, 1], &[vec![0], vec![1]]);
    /// assert!(words.is_some());
    /// ```
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn plan(groups: &[u32], seats: &[std::vec::Vec<u32>]) -> Option<std::vec::Vec<u32>> {
        let count: usize = seats.iter().map(|of_group| of_group.len()).sum();
        let in_one = |group: &u32| (*group as usize) < seats.len();
        if groups.len() > MOST
            || count > MOST
            || seats.len() > MOST_GROUPS
            || !groups.iter().all(in_one)
        {
            return None;
        }
        let mut words = std::vec![0; WORDS];
        words[COUNT] = count as u32;
        words[GROUPS] = seats.len() as u32;
        words[GROUP_OF..][..groups.len()].copy_from_slice(groups);
        let mut end = 0;
        for (group, of_group) in seats.iter().enumerate() {
            words[FIRST + group] = end as u32;
            words[SEATS + end..][..of_group.len()].copy_from_slice(of_group);
            end += of_group.len();
            words[FIRST + group + 1] = end as u32;
        }
        Some(words)
    }

    /// A seat that nobody else in the launch has. The one who claims the last seat makes all of them
    /// free again, for the next launch.
    ///
    /// One thread of each cluster calls it, and tells its cluster by a [`Seat`].
    ///
    /// # Safety
    /// The words are there; the launch has as many clusters as there are seats; and no other launch
    /// may begin before all of this one's have claimed theirs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn claim(self) -> u32 {
        let Self(words) = self;
        let at = |place: usize, nth: u32| place as i64 + i64::from(nth);
        // SAFETY: all places are below `WORDS`. What is not written by atomic operations is written by
        // the last one to claim alone, after all others.
        unsafe {
            let multiprocessor = multiprocessor_idx().min(MOST as u32 - 1);
            let mut group = words.load_early(at(GROUP_OF, multiprocessor));
            let groups = words.load_early(GROUPS as i64);
            let mut tries = 0;
            let seat = loop {
                let [first, end] =
                    [group, group + 1].map(|group| words.load_early(at(FIRST, group)));
                let nth = atomic_add_early(words, at(TAKEN, group), 1);
                if nth < end - first {
                    break words.load_early(at(SEATS, first + nth));
                }
                tries += 1;
                if tries == groups {
                    // More claim than there are seats: this one is beyond all work.
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
            seat
        }
    }
}

/// Where the blocks of a cluster learn which seat it has.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    seat: Shared<u32>,
    told: Shared<u64>,
}

impl Seat {
    /// Takes its memory; the same for every thread, in the same place of every block.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        Self {
            seat: shared.take(1),
            told: shared.take(1),
        }
    }

    /// Prepares the barrier. One thread of the block calls it; then all threads of the cluster meet at
    /// its barrier.
    ///
    /// # Safety
    /// The barrier's memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self) {
        // SAFETY: as promised by the caller.
        unsafe { Mbarrier::from_shared(self.told).init(1) };
        fence_mbarrier_init();
    }

    /// Announces that it will be told. One thread of each block of the cluster calls it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn expect(self) {
        Mbarrier::from_shared(self.told).arrive_expect_tx(size_of::<u32>() as u32);
    }

    /// Tells all blocks of the cluster, which are `BLOCKS`, the seat. One thread of the cluster calls it,
    /// after the cluster has met.
    ///
    /// # Safety
    /// No block ends before it has asked for the seat.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn tell<const BLOCKS: usize>(self, seat: u32) {
        for rank in 0..BLOCKS as u32 {
            let (place, told) = (map_shared(self.seat, rank), map_shared(self.told, rank));
            // SAFETY: the place is read after the barrier's phase, for which its block waits.
            unsafe { store_async(place, [seat], told) };
        }
    }

    /// Waits until it was told.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(self) {
        Mbarrier::from_shared(self.told).wait(0);
    }

    /// The seat, once it was told.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn which(self) -> u32 {
        self.wait();
        // SAFETY: it has come, and nothing is written there any more.
        unsafe { self.seat.load(0) }
    }
}
