//! Cluster reduction: the two blocks of a cluster add their accumulators over distributed shared memory (DSMEM).
//!
//! A warpgroup of one block sends fragments to a [`DsmemBuffer`] of the other block. One mbarrier completes when the
//! buffer is full, and another one when it is empty. [`DsmemSender`] and [`DsmemReceiver`] keep count of the phases.

use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, FragmentLayout, StaticLayout};

use super::fragment_words::{WORD, first_of_word, set_word, word_of, words};
use crate::cluster::{map_shared, store_async};
use crate::mbarrier::{Mbarrier, fence_mbarrier_init};
use crate::warpgroup::{WARPGROUP_SIZE, WARPGROUP_WARPS, WarpgroupIdx, WarpgroupThread};
use crate::{PartialSum, Shared, SharedMemory, SharedStorage, cluster_rank, lane_idx, sync_warp};

/// Shared memory for a fragment of `T` and of layout `L` per thread of a warpgroup, which another block of the cluster fills.
#[derive(Debug)]
pub struct DsmemBuffer<L, T = f32> {
    /// The fragments, word by word.
    words: Shared<T>,
    /// Completes when this block's buffer is full.
    full: Mbarrier,
    /// Completes when the buffer that this block sends to is empty.
    empty: Mbarrier,
    layout: PhantomData<L>,
}

impl<L, T> Clone for DsmemBuffer<L, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L, T> Copy for DsmemBuffer<L, T> {}

impl<L: StaticLayout, T: PartialSum> SharedStorage for DsmemBuffer<L, T> {
    const BYTES: u32 = Self::FRAGMENT_BYTES + <(Mbarrier, Mbarrier)>::BYTES;
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        let (full, empty) = SharedStorage::at(address + Self::FRAGMENT_BYTES);
        Self {
            words: Shared::from_address(address),
            full,
            empty,
            layout: PhantomData,
        }
    }
}

impl<L: StaticLayout, T: PartialSum> DsmemBuffer<L, T> {
    /// Bytes of the fragments.
    pub const FRAGMENT_BYTES: u32 = (Self::WORDS * WORD * size_of::<T>()) as u32 * WARPGROUP_SIZE;
    const WORDS: usize = words::<L>();

    /// Takes the buffer's memory. It must have the same address for every thread of every block of the cluster.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// Initialises the barriers. One thread of the block calls it. Then all threads of the cluster meet at the
    /// cluster's barrier before any thread uses a buffer.
    ///
    /// # Safety
    /// The barriers' memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self) {
        // SAFETY: as promised by the caller.
        unsafe {
            self.full.init(1);
            self.empty.init(WARPGROUP_WARPS);
        }
        fence_mbarrier_init();
    }

    /// The sender of a warpgroup that sends to the block with rank `to`. Each thread of the warpgroup has one.
    ///
    /// # Safety
    /// The cluster must have a block with this rank. The block must initialise this buffer before anything is sent, and
    /// receive everything before it ends. No other warpgroup may send to the buffer.
    #[inline(always)]
    pub unsafe fn sender(self, to: u32) -> DsmemSender<L, T> {
        DsmemSender {
            buffer: self,
            to,
            // A new buffer is empty: the phase before the first one counts as ended.
            parity: 1,
        }
    }

    /// The receiver of a warpgroup to which the block with rank `from` sends. Each thread of the warpgroup has one.
    #[inline(always)]
    pub fn receiver(self, from: u32) -> DsmemReceiver<L, T> {
        DsmemReceiver {
            buffer: self,
            from,
            parity: 0,
        }
    }

    /// The part of warpgroup `warpgroup` in a reduction over two blocks.
    ///
    /// # Safety
    /// If [`add`](ClusterReduce::add) is called, the cluster must have two blocks. Both must have initialised this
    /// buffer before the cluster met. Two warpgroups of each block must call `add` equally often, and then
    /// [`drain`](ClusterReduce::drain).
    #[inline(always)]
    pub unsafe fn cluster_reduce(self, warpgroup: WarpgroupIdx) -> ClusterReduce<L, T> {
        let rank = cluster_rank().get();
        let other = rank ^ 1;
        ClusterReduce {
            receives: warpgroup.get() == rank,
            // SAFETY: as promised by the caller.
            sender: unsafe { self.sender(other) },
            receiver: self.receiver(other),
        }
    }
}

/// Sends fragments to another block's buffer.
#[derive(Debug)]
pub struct DsmemSender<L, T = f32> {
    buffer: DsmemBuffer<L, T>,
    to: u32,
    parity: u32,
}

impl<L: FragmentLayout, T: PartialSum> DsmemSender<L, T> {
    /// Sends each thread's fragment to the thread of the receiving warpgroup with the same index. It first waits until
    /// the previous fragments have been received. All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn send(&mut self, thread: WarpgroupThread, values: &Fragment<T, L>) {
        let Self { buffer, to, .. } = *self;
        self.wait();
        let words = map_shared(buffer.words, to);
        let full = map_shared(buffer.full.word(), to);
        for word in 0..DsmemBuffer::<L, T>::WORDS {
            let four = word_of(values, word);
            // SAFETY: the buffer is empty. The caller of `sender` promised that its block receives before it ends.
            unsafe { store_async(words.offset(first_of_word(word, thread)), four, full) };
        }
    }

    /// Waits until the last fragments have been received. A block calls it before it ends, because the other block
    /// signals its barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(mut self) {
        self.wait();
    }

    /// Waits until the buffer is empty.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn wait(&mut self) {
        self.buffer.empty.wait(self.parity);
        self.parity ^= 1;
    }
}

/// Receives the fragments that another block sends.
#[derive(Debug)]
pub struct DsmemReceiver<L, T = f32> {
    buffer: DsmemBuffer<L, T>,
    from: u32,
    parity: u32,
}

impl<L: FragmentLayout, T: PartialSum> DsmemReceiver<L, T> {
    /// Waits for the fragment from the thread with the same index. All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn receive(&mut self, thread: WarpgroupThread) -> Fragment<T, L> {
        let Self { buffer, from, .. } = *self;
        if thread.get() == 0 {
            buffer
                .full
                .arrive_expect_tx(DsmemBuffer::<L, T>::FRAGMENT_BYTES);
        }
        buffer.full.wait(self.parity);
        self.parity ^= 1;
        let mut values = Fragment::filled(T::default());
        for word in 0..DsmemBuffer::<L, T>::WORDS {
            // SAFETY: the buffer is full.
            let four = unsafe { buffer.words.load_vec::<WORD>(first_of_word(word, thread)) };
            set_word(&mut values, word, four);
        }
        sync_warp();
        buffer.empty.arrive_remote_if(from, lane_idx().is_first());
        values
    }
}

/// The reduction between the two blocks of a cluster that share a tile. Each block has two warpgroups. The warpgroup
/// whose index is its block's rank receives and adds, and the other one sends.
///
/// ```no_run
/// use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
/// use cutlet_device::collective::DsmemBuffer;
/// use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
/// use cutlet_device::{SharedMemory, thread_idx};
/// use cutlet_layout_core::{Fragment, L};
///
/// let buffer = DsmemBuffer::<L!(8:1)>::take(&mut SharedMemory::new());
/// if thread_idx().is_first() {
///     // SAFETY: no thread uses the barriers before the cluster has met.
///     unsafe { buffer.init() };
/// }
/// cluster_arrive_relaxed();
/// cluster_wait();
/// // SAFETY: the two blocks of the cluster have met, and both of their warpgroups add once.
/// let mut reduce = unsafe { buffer.cluster_reduce(warpgroup_idx()) };
/// let mut accumulators = Fragment::filled(1.0);
/// if reduce.add(warpgroup_thread_idx(), &mut accumulators) {
///     // The accumulators are 2.0. The other warpgroup has nothing more to do.
/// }
/// reduce.drain();
/// ```
#[derive(Debug)]
pub struct ClusterReduce<L, T = f32> {
    receives: bool,
    sender: DsmemSender<L, T>,
    receiver: DsmemReceiver<L, T>,
}

impl<L: FragmentLayout, T: PartialSum> ClusterReduce<L, T> {
    /// Adds the other block's accumulators to these, or sends these to the other block. Returns whether these are now
    /// complete. All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn add(&mut self, thread: WarpgroupThread, accumulators: &mut Fragment<T, L>) -> bool {
        if self.receives {
            let partials: Fragment<T, L> = self.receiver.receive(thread);
            *accumulators = accumulators.map(|v, own| own.plus(partials.get(v)));
        } else {
            self.sender.send(thread, accumulators);
        }
        self.receives
    }

    /// As [`DsmemSender::drain`]. A block calls it before it ends.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(self) {
        if !self.receives {
            self.sender.drain();
        }
    }
}
