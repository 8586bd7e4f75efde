//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of asynchronous
//! copies.

use crate::{Shared, SharedMemory};

/// A barrier in shared memory.
///
/// It goes through phases. A phase ends when as many arrivals have come as [`init`](Self::init)
/// said and as many bytes as were announced ([`arrive_expect_tx`](Self::arrive_expect_tx)); the
/// next one then begins. The parity of phases alternates, the first one's is 0.
/// [`wait`](Self::wait) takes the parity of the phase whose end it waits for; the states of a
/// [`Pipeline`](super::Pipeline) keep count of it.
///
/// On the CPU the model complains about a barrier that was not initialised, one arrival too many,
/// and bytes that do not add up; a wait that never ends names the arrivals and bytes that are
/// missing. Who uses what a copy brings without having waited for its phase (nor met a thread that had)
/// ends in an error, even where it is there already, and so does a copy to where `wgmma` may still be
/// reading.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier(Shared<u64>);

impl Mbarrier {
    /// The barrier in this word of shared memory.
    #[inline(always)]
    pub const fn from_shared(word: Shared<u64>) -> Self {
        Self(word)
    }

    /// A barrier in the next 8 bytes of shared memory.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        Self(shared.take(1))
    }

    /// Its address in shared memory.
    #[inline(always)]
    pub const fn address(self) -> u32 {
        self.0.address()
    }

    /// Begins phase 0, each phase expecting `arrivals` arrivals.
    ///
    /// One thread calls it, then [`fence_mbarrier_init`](super::fence_mbarrier_init) and a barrier
    /// of the block or cluster, before anybody uses it.
    ///
    /// # Safety
    /// Nobody may be using the barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self, arrivals: u32) {
        imp::init(self.address(), arrivals);
    }

    /// Ends the barrier's life, after which its memory may be used for something else.
    ///
    /// # Safety
    /// Nobody may be using the barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn invalidate(self) {
        imp::invalidate(self.address());
    }

    /// Counts one arrival in the current phase. What the thread did before is done when the phase
    /// ends.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive(self) {
        imp::arrive(self.address());
    }

    /// Announces that `bytes` more bytes will be copied before the current phase may end, without
    /// arriving.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn expect_tx(self, bytes: u32) {
        imp::expect_tx(self.address(), bytes);
    }

    /// Announces `bytes` bytes and counts one arrival: what a producer does before it starts
    /// copies.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_expect_tx(self, bytes: u32) {
        imp::arrive_expect_tx(self.address(), bytes);
    }

    /// Counts one arrival at the barrier in the same place of the block with rank `rank` in the
    /// cluster, which may be the running block.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_remote(self, rank: u32) {
        imp::arrive_remote(self.address(), rank);
    }

    /// [`arrive`](Self::arrive) by those threads for which `here` holds: a predicate instead of a
    /// branch, so that the threads of a warp stay together.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_if(self, here: bool) {
        imp::arrive_if(self.address(), here);
    }

    /// [`arrive_remote`](Self::arrive_remote) by those threads for which `here` holds, as
    /// [`arrive_if`](Self::arrive_if).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_remote_if(self, rank: u32, here: bool) {
        imp::arrive_remote_if(self.address(), rank, here);
    }

    /// Whether the phase of this parity has ended. It may wait for a while.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn try_wait(self, parity: u32) -> bool {
        imp::try_wait(self.address(), parity)
    }

    /// Waits until the phase of this parity has ended. What was done before its arrivals, and its
    /// copies' bytes, can then be seen.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(self, parity: u32) {
        imp::wait(self.address(), parity);
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn init(barrier: u32, arrivals: u32) {
        // SAFETY: the caller of `Mbarrier::init` promises that nobody uses the word.
        unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) barrier, in(reg32) arrivals,
                options(nostack));
        }
    }

    #[inline(always)]
    pub fn invalidate(barrier: u32) {
        // SAFETY: the caller of `Mbarrier::invalidate` promises that nobody uses the barrier.
        unsafe {
            asm!("mbarrier.inval.shared::cta.b64 [{}];", in(reg32) barrier, options(nostack))
        };
    }

    #[inline(always)]
    pub fn arrive(barrier: u32) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!("mbarrier.arrive.shared::cta.b64 _, [{}];", in(reg32) barrier, options(nostack))
        };
    }

    #[inline(always)]
    pub fn expect_tx(barrier: u32, bytes: u32) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{}], {};", in(reg32) barrier,
                in(reg32) bytes, options(nostack));
        }
    }

    #[inline(always)]
    pub fn arrive_expect_tx(barrier: u32, bytes: u32) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", in(reg32) barrier,
                in(reg32) bytes, options(nostack));
        }
    }

    #[inline(always)]
    pub fn arrive_if(barrier: u32, here: bool) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                "setp.ne.u32 p, {}, 0;",
                "@p mbarrier.arrive.shared::cta.b64 _, [{}];",
                "}}",
                in(reg32) u32::from(here),
                in(reg32) barrier,
                options(nostack)
            );
        }
    }

    /// Without `.release.cluster`, which makes the compiler emit a fence of the whole GPU: what a
    /// consumer releases a stage for is that its reads are over, and `wgmma` reads are when
    /// their group has been waited for. Of ordinary reads, those of a mailbox, PTX does not promise
    /// it; Hopper does a warp's accesses of shared memory in order, and this one leaves the
    /// multiprocessor after them.
    #[inline(always)]
    pub fn arrive_remote(barrier: u32, rank: u32) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .b32 remote;",
                "mapa.shared::cluster.u32 remote, {}, {};",
                "mbarrier.arrive.shared::cluster.b64 _, [remote];",
                "}}",
                in(reg32) barrier,
                in(reg32) rank,
                options(nostack)
            );
        }
    }

    #[inline(always)]
    pub fn arrive_remote_if(barrier: u32, rank: u32, here: bool) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                ".reg .b32 remote;",
                "setp.ne.u32 p, {}, 0;",
                "@p mapa.shared::cluster.u32 remote, {}, {};",
                "@p mbarrier.arrive.shared::cluster.b64 _, [remote];",
                "}}",
                in(reg32) u32::from(here),
                in(reg32) barrier,
                in(reg32) rank,
                options(nostack)
            );
        }
    }

    #[inline(always)]
    pub fn try_wait(barrier: u32, parity: u32) -> bool {
        let ended: u32;
        // SAFETY: reads a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                "mbarrier.try_wait.parity.shared::cta.b64 p, [{}], {};",
                "selp.u32 {}, 1, 0, p;",
                "}}",
                in(reg32) barrier,
                in(reg32) parity,
                out(reg32) ended,
                options(nostack)
            );
        }
        ended != 0
    }

    /// The loop is in the assembly, where the predicate can be branched on.
    #[inline(always)]
    #[allow(named_asm_labels, reason = "a label in braces is local to them in PTX")]
    pub fn wait(barrier: u32, parity: u32) {
        // SAFETY: reads a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                "AGAIN:",
                "mbarrier.try_wait.parity.shared::cta.b64 p, [{}], {};",
                "@!p bra AGAIN;",
                "}}",
                in(reg32) barrier,
                in(reg32) parity,
                options(nostack)
            );
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::map_shared_rank;
    pub use cutlet_simt::{
        mbarrier_arrive as arrive, mbarrier_expect_tx as expect_tx, mbarrier_init as init,
        mbarrier_invalidate as invalidate, mbarrier_try_wait as try_wait, mbarrier_wait as wait,
    };

    #[track_caller]
    pub fn arrive_expect_tx(barrier: u32, bytes: u32) {
        expect_tx(barrier, bytes);
        arrive(barrier);
    }

    #[track_caller]
    pub fn arrive_if(barrier: u32, here: bool) {
        if here {
            arrive(barrier);
        }
    }

    #[track_caller]
    pub fn arrive_remote(barrier: u32, rank: u32) {
        arrive(map_shared_rank(barrier, rank));
    }

    #[track_caller]
    pub fn arrive_remote_if(barrier: u32, rank: u32, here: bool) {
        if here {
            arrive_remote(barrier, rank);
        }
    }
}
