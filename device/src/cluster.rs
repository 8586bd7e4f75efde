//! Clusters: blocks that run at the same time and access each other's shared memory.

use crate::{ClusterRank, DeviceData, Shared, cluster_rank};

/// Arrives at the cluster's barrier without waiting. All threads of the cluster see this thread's earlier writes after
/// their [`cluster_wait`].
///
/// Every thread of the cluster calls it, and then [`cluster_wait`] before it calls it again.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cluster_arrive() {
    imp::arrive();
}

/// [`cluster_arrive`] without making this thread's writes visible, which would take a fence of the whole GPU. It is
/// enough after [`fence_mbarrier_init`](crate::mbarrier::fence_mbarrier_init), which makes initialised mbarriers
/// visible.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cluster_arrive_relaxed() {
    imp::arrive_relaxed();
}

/// Waits until all threads of the cluster have called [`cluster_arrive`] or [`cluster_arrive_relaxed`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cluster_wait() {
    imp::wait();
}

/// The barrier of all threads of the cluster: [`cluster_arrive`], then [`cluster_wait`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

/// The same address in the shared memory of the block with rank `rank` in the cluster: `mapa`.
///
/// [`load_cluster`], [`store_cluster`] and other remote operations take the result. [`Shared::load`] and
/// [`Shared::store`] access only the block's own memory.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn map_shared<T: DeviceData>(shared: Shared<T>, rank: u32) -> Shared<T> {
    Shared::from_address(imp::map(shared.address(), rank))
}

/// Reads `N` elements at an address from [`map_shared`], in one access of 1, 2, 4, 8 or 16 bytes.
///
/// # Safety
/// As [`Shared::load_vec`]. The block that owns the memory must not have ended.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_cluster<T: DeviceData, const N: usize>(shared: Shared<T>) -> [T; N] {
    // SAFETY: as promised by the caller.
    unsafe { imp::load(shared) }
}

/// Writes `N` elements to an address from [`map_shared`], in one access of 1, 2, 4, 8 or 16 bytes.
///
/// # Safety
/// As [`Shared::store_vec`]. The block that owns the memory must not have ended.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_cluster<T: DeviceData, const N: usize>(shared: Shared<T>, values: [T; N]) {
    // SAFETY: as promised by the caller.
    unsafe { imp::store(shared, values) };
}

/// Writes `N` elements asynchronously to an address from [`map_shared`], in one access of 4, 8 or 16 bytes: `st.async`.
/// Their bytes then count at the mbarrier in the word `barrier`, an address from [`map_shared`] in the same block.
///
/// [`DsmemBuffer`](crate::collective::DsmemBuffer) pairs it with the mbarriers that it needs.
///
/// # Safety
/// As [`store_cluster`]. No thread may use the elements before it has waited for the mbarrier's phase.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_async<T: DeviceData, const N: usize>(
    shared: Shared<T>,
    values: [T; N],
    barrier: Shared<u64>,
) {
    const {
        assert!(
            size_of::<[T; N]>() >= 4,
            "an asynchronous store writes 4, 8 or 16 bytes"
        );
    }
    // SAFETY: as promised by the caller.
    unsafe { imp::store_async(shared, values, barrier.address()) };
}

/// The blocks of a cluster that a multicast load writes to, as a mask with a bit for each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast(u16);

impl Multicast {
    /// The blocks with ranks `0..blocks`.
    #[inline(always)]
    pub const fn first(blocks: u32) -> Self {
        Self(((1u32 << blocks) - 1) as u16)
    }

    /// The `count` blocks with ranks `first`, `first + step`, …: a row or a column of a cluster.
    #[inline(always)]
    pub const fn every(first: u32, step: u32, count: u32) -> Self {
        let mut mask = 0;
        let mut n = 0;
        while n < count {
            mask |= 1u32 << (n * step);
            n += 1;
        }
        Self((mask << first) as u16)
    }

    /// The running block alone.
    #[inline(always)]
    pub fn own() -> Self {
        let rank: ClusterRank = cluster_rank();
        Self((1u32 << rank.get()) as u16)
    }

    /// The mask: bit `r` stands for the block with rank `r`.
    #[inline(always)]
    pub const fn mask(self) -> u16 {
        self.0
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use crate::vector::{Words, load_instruction, store_instruction, to_bits, vector_bytes};
    use crate::{DeviceData, Shared};

    load_instruction!(ld_cluster, "ld.shared::cluster", reg32: u32);
    store_instruction!(st_cluster, "st.shared::cluster", reg32: u32);

    #[inline(always)]
    pub unsafe fn load<T: DeviceData, const N: usize>(shared: Shared<T>) -> [T; N] {
        // SAFETY: as promised by the caller.
        unsafe { ld_cluster::<T, N, 0>(shared.address()) }
    }

    #[inline(always)]
    pub unsafe fn store<T: DeviceData, const N: usize>(shared: Shared<T>, values: [T; N]) {
        // SAFETY: as promised by the caller.
        unsafe { st_cluster::<T, N, 0>(shared.address(), values) };
    }

    #[inline(always)]
    pub unsafe fn store_async<T: DeviceData, const N: usize>(
        shared: Shared<T>,
        values: [T; N],
        barrier: u32,
    ) {
        let words = to_bits::<Words, T, N>(values);
        let [a, b, c, d] = words.0;
        let to = shared.address();
        // SAFETY: as promised by the caller.
        unsafe {
            match const { vector_bytes::<T, N>() } {
                4 => asm!(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [{}], {}, [{}];",
                    in(reg32) to, in(reg32) a, in(reg32) barrier, options(nostack)
                ),
                8 => asm!(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [{}], {{{}, {}}}, [{}];",
                    in(reg32) to, in(reg32) a, in(reg32) b, in(reg32) barrier, options(nostack)
                ),
                _ => asm!(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [{}], {{{}, {}, {}, {}}}, [{}];",
                    in(reg32) to, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                    in(reg32) barrier, options(nostack)
                ),
            }
        }
    }

    // Without `.aligned`, because the compiler may move assembly into divergent branches.
    #[inline(always)]
    pub fn arrive() {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { asm!("barrier.cluster.arrive.release;", options(nostack)) };
    }

    #[inline(always)]
    pub fn arrive_relaxed() {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { asm!("barrier.cluster.arrive.relaxed;", options(nostack)) };
    }

    #[inline(always)]
    pub fn wait() {
        // SAFETY: a barrier touches no memory of its own.
        unsafe { asm!("barrier.cluster.wait.acquire;", options(nostack)) };
    }

    #[inline(always)]
    pub fn map(address: u32, rank: u32) -> u32 {
        let mapped;
        // SAFETY: computes an address.
        unsafe {
            asm!("mapa.shared::cluster.u32 {}, {}, {};", out(reg32) mapped, in(reg32) address,
                in(reg32) rank, options(pure, nomem, nostack));
        }
        mapped
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use crate::vector::vector_bytes;
    use crate::{DeviceData, Shared};

    #[track_caller]
    pub unsafe fn load<T: DeviceData, const N: usize>(shared: Shared<T>) -> [T; N] {
        // SAFETY: as promised by the caller. The CPU accesses the memory of all blocks alike.
        unsafe { shared.load_vec(0) }
    }

    #[track_caller]
    pub unsafe fn store<T: DeviceData, const N: usize>(shared: Shared<T>, values: [T; N]) {
        // SAFETY: as in `load`.
        unsafe { shared.store_vec(0, values) };
    }

    #[track_caller]
    pub unsafe fn store_async<T: DeviceData, const N: usize>(
        shared: Shared<T>,
        values: [T; N],
        barrier: u32,
    ) {
        let bytes = const { vector_bytes::<T, N>() as u32 };
        let from = values.as_ptr().cast();
        // SAFETY: the array has that many bytes.
        unsafe { cutlet_simt::store_async(from, bytes, shared.address(), barrier) };
    }

    pub use cutlet_simt::{
        cluster_arrive as arrive, cluster_arrive_relaxed as arrive_relaxed, cluster_wait as wait,
        map_shared_rank as map,
    };
}
