//! The fixup of split-K and stream-K: the last block to finish a share of a tile's k-tiles adds the partials of all
//! shares.
//!
//! Each warp writes its partials to global memory, and the last warp to arrive adds them. No warp waits for another
//! one, so the blocks need not run at the same time. The last warp adds the partials in the order of the shares, so the
//! result is deterministic.

use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, FragmentLayout, each};

use super::Share;
use super::fragment_words::{WORD, first_of_word, set_word, word_of, words};
use crate::warpgroup::{WARPGROUP_SIZE, WARPGROUP_WARPS, WarpgroupThread};
use crate::{DeviceData, GlobalMut, PartialSum, atomic_count, lane_idx, shfl, sync_warp};

/// Registers for the accumulators and for the partials that a thread reads at a time. Several reads at a time overlap.
/// With more registers, kernels are slower even if nothing is added.
const REGISTERS: usize = 128;

/// Counters in global memory: for each warp's part of a tile, the number of shares that have arrived.
///
/// All of them are zero before and after each launch.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct ArrivalCounters(GlobalMut<u32>);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for ArrivalCounters {}

impl ArrivalCounters {
    /// No counters, for tiles that are not split.
    pub const NONE: Self = Self(GlobalMut::from_ptr(core::ptr::null_mut()));

    /// The counters at `words`: [`WARPS`](Self::WARPS) for each warpgroup's part of each tile.
    #[inline(always)]
    pub const fn at(words: GlobalMut<u32>) -> Self {
        Self(words)
    }

    /// Counters of a warpgroup: one for each warp.
    pub const WARPS: u32 = WARPGROUP_WARPS;
}

/// Partials in global memory: for each share, a fragment of `T` and of layout `L` per thread of a warpgroup.
///
/// ```no_run
/// use cutlet_device::collective::{ArrivalCounters, Fixup, Share};
/// use cutlet_device::warpgroup::warpgroup_thread_idx;
/// use cutlet_device::{GlobalMut, block_idx};
/// use cutlet_layout_core::{Fragment, L};
///
/// # let memory = GlobalMut::<f32>::from_ptr(core::ptr::null_mut());
/// # let words = GlobalMut::<u32>::from_ptr(core::ptr::null_mut());
/// // Three blocks of one warpgroup each have a share of the only tile.
/// let fixup = Fixup::<L!(8:1)>::new(memory, ArrivalCounters::at(words), 1);
/// let share = Share { nth: block_idx().x.get(), count: 3, first: 0 };
/// let mut accumulators = Fragment::filled(1.0);
/// // SAFETY: the memory exists, and no other block has this share.
/// if unsafe { fixup.add((0, 0), share, warpgroup_thread_idx(), &mut accumulators) } {
///     // The accumulators are 3.0. The warps of the other two blocks have nothing more to do.
/// }
/// ```
#[derive(Debug)]
pub struct Fixup<L, T = f32> {
    /// The partials, by place of the share and M atom.
    memory: GlobalMut<T>,
    arrivals: ArrivalCounters,
    /// M atoms of a tile. A warpgroup computes each of them.
    m_atoms: u32,
    layout: PhantomData<L>,
}

impl<L: FragmentLayout, T: PartialSum> Fixup<L, T> {
    /// Values of an M atom's partials.
    pub const VALUES: usize = L::SIZE * WARPGROUP_SIZE as usize;
    const WORDS: usize = words::<L>();

    /// The fixup of tiles with `m_atoms` M atoms. The partials of each M atom of each share take
    /// [`VALUES`](Self::VALUES) elements of `memory`.
    #[inline(always)]
    pub fn new(memory: GlobalMut<T>, arrivals: ArrivalCounters, m_atoms: u32) -> Self {
        Self {
            memory,
            arrivals,
            m_atoms,
            layout: PhantomData,
        }
    }

    /// Writes the accumulators of a share of an M atom of a tile. If this share is the last to arrive, it then
    /// adds the partials of all shares. Returns whether the accumulators are complete. All threads of the warpgroup
    /// call it. The result may differ between its warps.
    ///
    /// # Safety
    /// There must be memory for the M atom's partials, 16-byte aligned, and for its counters. Nothing else may use it.
    /// Each share must be added once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add(
        &self,
        (tile, m_atom): (u32, u32),
        share: Share,
        thread: WarpgroupThread,
        accumulators: &mut Fragment<T, L>,
    ) -> bool {
        let partials_of = |nth: u32| {
            let place = i64::from((share.first + nth) * self.m_atoms + m_atom);
            self.memory.offset(place * Self::VALUES as i64)
        };
        let own = partials_of(share.nth);
        for word in 0..Self::WORDS {
            // SAFETY: the caller promises that the memory exists, and no thread reads it before this warp arrives.
            unsafe { own.store_vec(first_of_word(word, thread), word_of(accumulators, word)) };
        }
        let atom = tile * self.m_atoms + m_atom;
        let counter = i64::from(atom * ArrivalCounters::WARPS + thread.warp());
        // SAFETY: as promised by the caller.
        if !unsafe { self.arrive_last(counter, share.count - 1) } {
            return false;
        }
        *accumulators = Fragment::filled(T::default());
        let read = |nth: u32, values: &mut Fragment<T, L>| {
            let from = partials_of(nth);
            for word in 0..Self::WORDS {
                // SAFETY: all shares have arrived.
                let four = unsafe { from.load_vec::<WORD>(first_of_word(word, thread)) };
                set_word(values, word, four);
            }
        };
        // The accumulators and the partials read at a time fit the registers.
        match const { REGISTERS / L::SIZE } {
            0..=2 => Self::sum::<1>(accumulators, share.count, read),
            3 => Self::sum::<2>(accumulators, share.count, read),
            4 => Self::sum::<3>(accumulators, share.count, read),
            5..=7 => Self::sum::<4>(accumulators, share.count, read),
            _ => Self::sum::<7>(accumulators, share.count, read),
        }
        true
    }

    /// Adds the partials of all shares in their order. `read` reads them, `AT_A_TIME` at a time.
    #[inline(always)]
    fn sum<const AT_A_TIME: usize>(
        accumulators: &mut Fragment<T, L>,
        shares: u32,
        read: impl Fn(u32, &mut Fragment<T, L>),
    ) {
        let mut next = 0;
        while next < shares {
            let mut partials = [Fragment::filled(T::default()); AT_A_TIME];
            for values in &mut partials {
                if next < shares {
                    read(next, values);
                }
                next += 1;
            }
            for values in &partials {
                each::<L>(|v| accumulators.set(v, accumulators.get(v).plus(values.get(v))));
            }
        }
    }

    /// Counts the running warp's arrival. Returns whether it is the last one. The last warp sees the other warps'
    /// writes before their arrivals.
    ///
    /// # Safety
    /// The counter must exist.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn arrive_last(&self, counter: i64, last: u32) -> bool {
        let ArrivalCounters(words) = self.arrivals;
        let mut before = 0;
        sync_warp();
        if lane_idx().is_first() {
            // SAFETY: as promised by the caller.
            before = unsafe { atomic_count(words, counter, last) };
        }
        // A shuffle alone would not make the writes visible to the other lanes.
        sync_warp();
        shfl(before, 0) == last
    }
}
