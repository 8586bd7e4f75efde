//! Fixups: how blocks that each have a part of the same sums make whole ones of them.
//!
//! Each warp leaves its part in global memory, and the one that comes last adds all parts. Nobody waits for
//! another one, so the blocks need not run at the same time; and parts are added in their order, whoever
//! comes last, so the result is always the same.

use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, StaticLayout, each};

use crate::{DeviceData, GlobalMut, atomic_count, lane_idx, shfl, sync_warp};

use super::warpgroup::WARPS;
use super::words::{WORD, first_of_word, set_word, word_of, words};
use super::{WARPGROUP_SIZE, WarpgroupThread};

/// Registers for the sums and the parts that a thread reads at a time, so that reads overlap. With more of them,
/// kernels are slower even where there is nothing to add.
const REGISTERS: usize = 128;

/// For each warp that leaves a part of something, how many parts of that there are already.
///
/// All zero, before and after each sum.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Arrivals(GlobalMut<u32>);

// SAFETY: the only field is device data.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Arrivals {}

impl Arrivals {
    /// None: nothing is to be added.
    pub const NONE: Self = Self(GlobalMut::from_ptr(core::ptr::null_mut()));

    /// Those at `words`: [`WARPS`](Self::WARPS) for each place.
    #[inline(always)]
    pub const fn at(words: GlobalMut<u32>) -> Self {
        Self(words)
    }

    /// Words of a place: a warpgroup's warps count for themselves.
    pub const WARPS: u32 = WARPS;
}

/// Parts of sums, each a fragment of layout `L` of each thread of a warpgroup, in global memory.
///
/// ```no_run
/// use cutlet_device::GlobalMut;
/// use cutlet_device::hopper::{Arrivals, Fixup, warpgroup_thread_idx};
/// use cutlet_device::block_idx;
/// use cutlet_layout_core::{Fragment, L};
///
/// # let (memory, words) = (GlobalMut::<f32>::from_ptr(core::ptr::null_mut()), GlobalMut::<u32>::from_ptr(core::ptr::null_mut()));
/// // Three blocks of a warpgroup each have a part of the only tile's only sums.
/// let fixup = Fixup::<L!(8:1)>::new(memory, Arrivals::at(words), 1, 3);
/// let mut sums = Fragment::filled(1.0);
/// // SAFETY: the memory is there, and no other block has this part.
/// if unsafe { fixup.add((0, 0), block_idx().x.get(), warpgroup_thread_idx(), &mut sums) } {
///     // They are 3.0 here; the warps of two blocks have nothing more to do.
/// }
/// ```
#[derive(Debug)]
pub struct Fixup<L> {
    /// For each place, each part, the first four values of each thread, then the next four.
    memory: GlobalMut<f32>,
    arrivals: Arrivals,
    /// Places at a tile.
    at_tile: u32,
    /// Parts for each place.
    parts: u32,
    layout: PhantomData<L>,
}

impl<L: StaticLayout> Fixup<L> {
    /// Values of a part.
    pub const VALUES: usize = L::SIZE * WARPGROUP_SIZE as usize;
    const WORDS: usize = words::<L>();

    /// Of `parts` parts for each of `at_tile` places at each tile: a part has [`VALUES`](Self::VALUES) values in
    /// `memory`.
    #[inline(always)]
    pub fn new(memory: GlobalMut<f32>, arrivals: Arrivals, at_tile: u32, parts: u32) -> Self {
        Self {
            memory,
            arrivals,
            at_tile,
            parts,
            layout: PhantomData,
        }
    }

    /// Leaves part `part` of the sums at a tile's place, (tile, place), or makes them whole if it is the last:
    /// whether they are. All threads of the warpgroup call it; the answer may differ between its warps.
    ///
    /// # Safety
    /// There is memory for the place's parts, 16-byte aligned, and for its arrivals, which nobody else uses; and
    /// each part is left once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add(
        &self,
        (tile, place): (u32, u32),
        part: u32,
        thread: WarpgroupThread,
        sums: &mut Fragment<f32, L>,
    ) -> bool {
        let place = tile * self.at_tile + place;
        let part_at = |part: u32| {
            let nth = i64::from(place * self.parts + part);
            self.memory.offset(nth * Self::VALUES as i64)
        };
        let own = part_at(part);
        for word in 0..Self::WORDS {
            // SAFETY: the caller promises that it is there, and nobody reads it before it has arrived.
            unsafe { own.store_vec(first_of_word(word, thread), word_of(sums, word)) };
        }
        let counter = i64::from(place * Arrivals::WARPS + thread.warp());
        // SAFETY: as promised by the caller.
        if !unsafe { self.arrive_last(counter) } {
            return false;
        }
        *sums = Fragment::filled(0.0);
        let read = |part: u32, values: &mut Fragment<f32, L>| {
            let from = part_at(part);
            for word in 0..Self::WORDS {
                // SAFETY: all parts have been left.
                let four = unsafe { from.load_vec::<WORD>(first_of_word(word, thread)) };
                set_word(values, word, four);
            }
        };
        // So many fragments there are registers for, the sums among them.
        match const { REGISTERS / L::SIZE } {
            0..=2 => self.sum::<1>(sums, read),
            3 => self.sum::<2>(sums, read),
            4 => self.sum::<3>(sums, read),
            5..=7 => self.sum::<4>(sums, read),
            _ => self.sum::<7>(sums, read),
        }
        true
    }

    /// Adds all parts, which `read` reads, to the sums: in their order, so many at a time.
    #[inline(always)]
    fn sum<const AT_A_TIME: usize>(
        &self,
        sums: &mut Fragment<f32, L>,
        read: impl Fn(u32, &mut Fragment<f32, L>),
    ) {
        let mut next = 0;
        while next < self.parts {
            let mut parts = [Fragment::filled(0.0); AT_A_TIME];
            for values in &mut parts {
                if next < self.parts {
                    read(next, values);
                }
                next += 1;
            }
            for values in &parts {
                each::<L>(|v| sums.set(v, sums.get(v) + values.get(v)));
            }
        }
    }

    /// Whether the running warp is the last to count itself there. What the others wrote before they did, it sees
    /// then.
    ///
    /// # Safety
    /// The counter is there.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn arrive_last(&self, counter: i64) -> bool {
        let Arrivals(words) = self.arrivals;
        let last = self.parts - 1;
        let mut before = 0;
        sync_warp();
        if lane_idx().is_first() {
            // SAFETY: as promised by the caller.
            before = unsafe { atomic_count(words, counter, last) };
        }
        // A shuffle alone would not let the other lanes see what the first one does.
        sync_warp();
        shfl(before, 0) == last
    }
}
