//! Mailboxes: shared memory in which a warpgroup of a block of a cluster receives the fragments that
//! a warpgroup of another block sends.
//!
//! As with a [`Pipeline`](super::Pipeline), two barriers say when there is something, and when there
//! is room for more, and [`Sender`] and [`Receiver`] know which phase they are at.

use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, StaticLayout};

use crate::{Shared, SharedMemory, cluster_rank, lane_idx, sync_warp};

use super::warpgroup::WARPS;
use super::words::{WORD, first_of_word, set_word, word_of, words};
use super::{
    Mbarrier, WARPGROUP_SIZE, WarpgroupIdx, WarpgroupThread, fence_mbarrier_init, map_shared,
    store_async,
};

/// Room for a fragment of layout `L` of each thread of a warpgroup.
#[derive(Debug)]
pub struct Mailbox<L> {
    /// The first four values of each thread, then the next four.
    words: Shared<f32>,
    /// Whether there is something in this block's mailbox.
    full: Shared<u64>,
    /// Whether there is room in the mailbox that this block sends to.
    empty: Shared<u64>,
    layout: PhantomData<L>,
}

impl<L> Clone for Mailbox<L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Mailbox<L> {}

impl<L: StaticLayout> Mailbox<L> {
    /// Bytes of the fragments.
    pub const BYTES: u32 = (Self::WORDS * WORD * size_of::<f32>()) as u32 * WARPGROUP_SIZE;
    const WORDS: usize = words::<L>();

    /// Takes the mailbox's memory; the same for every thread, in the same place of every block.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        Self {
            words: shared.take(L::SIZE * WARPGROUP_SIZE as usize),
            full: shared.take(1),
            empty: shared.take(1),
            layout: PhantomData,
        }
    }

    /// Prepares the barriers. One thread of the block calls it; then all threads of the cluster meet
    /// at its barrier before any uses a mailbox.
    ///
    /// # Safety
    /// The barriers' memory must not be in use.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self) {
        // SAFETY: as promised by the caller.
        unsafe {
            self.full().init(1);
            self.empty().init(WARPS);
        }
        fence_mbarrier_init();
    }

    /// The side of the warpgroup that sends to the mailbox of the block with rank `to`. Each of its
    /// threads has one.
    ///
    /// # Safety
    /// There must be such a block in the cluster, with this mailbox, which no other warpgroup sends to and which it has
    /// made before the first thing is sent. The block must receive all that is sent before it ends.
    #[inline(always)]
    pub unsafe fn sender(self, to: u32) -> Sender<L> {
        Sender {
            mailbox: self,
            to,
            // A new mailbox is empty: the phase before the first counts as ended.
            parity: 1,
        }
    }

    /// The side of the warpgroup that receives what the block with rank `from` sends to this one.
    /// Each of its threads has one.
    #[inline(always)]
    pub fn receiver(self, from: u32) -> Receiver<L> {
        Receiver {
            mailbox: self,
            from,
            parity: 0,
        }
    }

    /// The part of warpgroup `warpgroup` in an exchange of sums with the other one of two blocks.
    ///
    /// # Safety
    /// Where something is exchanged, the cluster must have two blocks, which have met after making this mailbox, and two
    /// warpgroups of each must exchange the same number of times, and [`drain`](Exchange::drain) at last.
    #[inline(always)]
    pub unsafe fn exchange(self, warpgroup: WarpgroupIdx) -> Exchange<L> {
        let rank = cluster_rank().get();
        let other = rank ^ 1;
        Exchange {
            receives: warpgroup.get() == rank,
            // SAFETY: as promised by the caller.
            sender: unsafe { self.sender(other) },
            receiver: self.receiver(other),
        }
    }

    #[inline(always)]
    fn full(self) -> Mbarrier {
        Mbarrier::from_shared(self.full)
    }

    #[inline(always)]
    fn empty(self) -> Mbarrier {
        Mbarrier::from_shared(self.empty)
    }
}

/// Sends to another block's mailbox.
#[derive(Debug)]
pub struct Sender<L> {
    mailbox: Mailbox<L>,
    to: u32,
    parity: u32,
}

impl<L: StaticLayout> Sender<L> {
    /// Sends the values of each thread of the warpgroup to the thread with the same index, as soon as
    /// what was sent before has been received.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn send(&mut self, thread: WarpgroupThread, values: &Fragment<f32, L>) {
        let Self { mailbox, to, .. } = *self;
        self.wait();
        let words = map_shared(mailbox.words, to);
        let full = map_shared(mailbox.full, to);
        for word in 0..Mailbox::<L>::WORDS {
            let four = word_of(values, word);
            // SAFETY: the place is empty, and its block does not end before it has received, as was promised.
            unsafe { store_async(words.offset(first_of_word(word, thread)), four, full) };
        }
    }

    /// Waits until what was sent last has been received. A block calls it before it ends: until then
    /// the other one may still signal its barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(mut self) {
        self.wait();
    }

    /// Waits until there is room.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn wait(&mut self) {
        self.mailbox.empty().wait(self.parity);
        self.parity ^= 1;
    }
}

/// Receives what is sent to a block's mailbox.
#[derive(Debug)]
pub struct Receiver<L> {
    mailbox: Mailbox<L>,
    from: u32,
    parity: u32,
}

impl<L: StaticLayout> Receiver<L> {
    /// Waits for the values that the thread with the same index sends. All threads of the warpgroup
    /// call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn receive(&mut self, thread: WarpgroupThread) -> Fragment<f32, L> {
        let Self { mailbox, from, .. } = *self;
        if thread.get() == 0 {
            mailbox.full().arrive_expect_tx(Mailbox::<L>::BYTES);
        }
        mailbox.full().wait(self.parity);
        self.parity ^= 1;
        let mut values = Fragment::filled(0.0);
        for word in 0..Mailbox::<L>::WORDS {
            // SAFETY: the values have come.
            let four = unsafe { mailbox.words.load_vec::<WORD>(first_of_word(word, thread)) };
            set_word(&mut values, word, four);
        }
        sync_warp();
        mailbox
            .empty()
            .arrive_remote_if(from, lane_idx().is_first());
        values
    }
}

/// The exchange of sums between the two blocks of a cluster that work at the same things, each of which
/// has a warpgroup for each thing: the warpgroup with its block's rank gets all sums, the other one
/// sends its own.
///
/// ```no_run
/// use cutlet_device::hopper::{
///     Mailbox, cluster_arrive_relaxed, cluster_wait, warpgroup_idx, warpgroup_thread_idx,
/// };
/// use cutlet_device::{SharedMemory, thread_idx};
/// use cutlet_layout_core::{Fragment, L};
///
/// let mailbox = Mailbox::<L!(8:1)>::take(&mut SharedMemory::new());
/// if thread_idx().is_first() {
///     // SAFETY: nobody uses the barriers before the cluster has met.
///     unsafe { mailbox.init() };
/// }
/// cluster_arrive_relaxed();
/// cluster_wait();
/// // SAFETY: the two blocks of the cluster have met, and both of their warpgroups exchange once.
/// let mut exchange = unsafe { mailbox.exchange(warpgroup_idx()) };
/// let mut sums = Fragment::filled(1.0);
/// if exchange.add(warpgroup_thread_idx(), &mut sums) {
///     // They are 2.0 here, and the other warpgroup has nothing more to do.
/// }
/// exchange.drain();
/// ```
#[derive(Debug)]
pub struct Exchange<L> {
    receives: bool,
    sender: Sender<L>,
    receiver: Receiver<L>,
}

impl<L: StaticLayout> Exchange<L> {
    /// Adds the other block's sums to these, or sends it these: whether they are complete now. All
    /// threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn add(&mut self, thread: WarpgroupThread, sums: &mut Fragment<f32, L>) -> bool {
        if self.receives {
            let more: Fragment<f32, L> = self.receiver.receive(thread);
            *sums = sums.map(|v, sum| sum + more.get(v));
        } else {
            self.sender.send(thread, sums);
        }
        self.receives
    }

    /// As [`Sender::drain`]. A block calls it before it ends.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(self) {
        if !self.receives {
            self.sender.drain();
        }
    }
}
