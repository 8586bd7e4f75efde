//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of asynchronous copies.

use crate::{Shared, SharedMemory, SharedStorage};

/// A barrier in shared memory.
///
/// It goes through phases. A phase ends once the number of arrivals given to [`init`](Self::init) and all announced
/// bytes ([`arrive_expect_tx`](Self::arrive_expect_tx)) have come. The next phase then begins. The first phase has
/// parity 0, and the parity alternates. [`wait`](Self::wait) takes the parity of the phase whose end it waits for. A
/// [`Pipeline`](crate::collective::Pipeline) keeps count of it.
///
/// The CPU backend reports a barrier that was not initialised, an arrival too many, and a wrong number of bytes. For a
/// wait that never ends, it reports the missing arrivals and bytes. It also reports a thread that uses the result of a
/// copy before it, or a thread it synchronised with, waited for the barrier's phase, even if the copy has ended. And it
/// reports a copy to memory that `wgmma` may still read.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier(Shared<u64>);

impl SharedStorage for Mbarrier {
    const BYTES: u32 = 8;
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(Shared::from_address(address))
    }
}

impl Mbarrier {
    /// The barrier in this word of shared memory.
    #[inline(always)]
    pub const fn from_shared(word: Shared<u64>) -> Self {
        Self(word)
    }

    /// A barrier in the next 8 bytes of shared memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// Its word of shared memory.
    #[inline(always)]
    pub const fn word(self) -> Shared<u64> {
        self.0
    }

    /// Its address in shared memory.
    #[inline(always)]
    pub const fn address(self) -> u32 {
        self.0.address()
    }

    /// Begins phase 0. Each phase expects `arrivals` arrivals.
    ///
    /// One thread calls it and then [`fence_mbarrier_init`]. All threads of the block or
    /// cluster meet at their barrier before any thread uses this one.
    ///
    /// # Safety
    /// No thread may be using the barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn init(self, arrivals: u32) {
        imp::init(self.address(), arrivals);
    }

    /// Invalidates the barrier. Its memory may then be used for something else.
    ///
    /// # Safety
    /// No thread may be using the barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn invalidate(self) {
        imp::invalidate(self.address());
    }

    /// Counts one arrival in the current phase. The end of the phase makes the thread's earlier writes visible to the
    /// threads that wait for it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive(self) {
        imp::arrive(self.address());
    }

    /// Announces `bytes` more bytes, which must be copied before the current phase ends. It does not arrive.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn expect_tx(self, bytes: u32) {
        imp::expect_tx(self.address(), bytes);
    }

    /// Announces `bytes` bytes and counts one arrival. A producer calls it before it starts copies.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_expect_tx(self, bytes: u32) {
        imp::arrive_expect_tx(self.address(), bytes);
    }

    /// Counts one arrival at the barrier with the same address in the block with rank `rank` of the cluster, which may
    /// be the running block.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_remote(self, rank: u32) {
        imp::arrive_remote(self.address(), rank);
    }

    /// [`arrive`](Self::arrive) by the threads for which `condition` holds. It is a predicate instead of a branch, so
    /// that the warp does not diverge.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_if(self, condition: bool) {
        imp::arrive_if(self.address(), condition);
    }

    /// [`arrive_remote`](Self::arrive_remote) by the threads for which `condition` holds, as
    /// [`arrive_if`](Self::arrive_if).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn arrive_remote_if(self, rank: u32, condition: bool) {
        imp::arrive_remote_if(self.address(), rank, condition);
    }

    /// Whether the phase of this parity has ended. The instruction may wait for a limited time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn try_wait(self, parity: u32) -> bool {
        imp::try_wait(self.address(), parity)
    }

    /// Waits until the phase of this parity has ended. Writes before its arrivals, and the bytes of its copies, are
    /// then visible.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(self, parity: u32) {
        imp::wait(self.address(), parity);
    }
}

/// Makes the mbarriers that this thread initialised visible to the cluster and to TMA. The barrier of the block or
/// cluster follows it.
#[inline(always)]
pub fn fence_mbarrier_init() {
    imp::fence_init();
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn init(barrier: u32, arrivals: u32) {
        // SAFETY: the caller of `Mbarrier::init` promises that no thread uses the word.
        unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) barrier, in(reg32) arrivals,
                options(nostack));
        }
    }

    #[inline(always)]
    pub fn invalidate(barrier: u32) {
        // SAFETY: the caller of `Mbarrier::invalidate` promises that no thread uses the barrier.
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
    pub fn arrive_if(barrier: u32, condition: bool) {
        // SAFETY: counts in a word that is a barrier.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                "setp.ne.u32 p, {}, 0;",
                "@p mbarrier.arrive.shared::cta.b64 _, [{}];",
                "}}",
                in(reg32) u32::from(condition),
                in(reg32) barrier,
                options(nostack)
            );
        }
    }

    /// Without `.release.cluster`, for which the compiler emits a fence of the whole GPU. A consumer that releases a
    /// stage only has to have finished reading. Reads of `wgmma` have finished once their group was waited for. For
    /// ordinary reads, those of a `DsmemBuffer`, PTX does not guarantee it. Hopper executes a warp's accesses to shared
    /// memory in order, so this arrival leaves the multiprocessor after them.
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
    pub fn arrive_remote_if(barrier: u32, rank: u32, condition: bool) {
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
                in(reg32) u32::from(condition),
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

    /// The loop is in the assembly, where a branch can take the predicate.
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

    #[inline(always)]
    pub fn fence_init() {
        // SAFETY: a fence only orders.
        unsafe { asm!("fence.mbarrier_init.release.cluster;", options(nostack)) };
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
    pub fn arrive_if(barrier: u32, condition: bool) {
        if condition {
            arrive(barrier);
        }
    }

    #[track_caller]
    pub fn arrive_remote(barrier: u32, rank: u32) {
        arrive(map_shared_rank(barrier, rank));
    }

    #[track_caller]
    pub fn arrive_remote_if(barrier: u32, rank: u32, condition: bool) {
        if condition {
            arrive_remote(barrier, rank);
        }
    }

    pub fn fence_init() {}
}
