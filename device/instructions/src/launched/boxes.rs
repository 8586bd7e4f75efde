//! TMA in every dimension: boxes of tensors of rank 4 and 5.

use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::tma::{
    LoadOptions, TensorMap, tma_load, tma_prefetch, tma_store, tma_store_commit, tma_store_wait,
};
use cutlet_device::{GlobalMut, SharedArray, instantiate, sync_threads, thread_idx};

/// The extents of a box, innermost first. A tensor of rank 4 has the first four.
pub const BOX: [u32; 5] = [8, 3, 2, 3, 2];

/// Elements of a box of rank 5.
const MOST: usize = 8 * 3 * 2 * 3 * 2;

/// Threads of the block.
const THREADS: u32 = 32;

/// Loads the box at `from_at`, writes its elements to `seen` in their order in shared memory, and stores it at `to_at`.
///
/// # Safety
/// The maps are of boxes with the first `R` extents of [`BOX`], without a swizzle. Their tensors exist. `seen` has room
/// for a box.
#[inline(always)]
unsafe fn copy<const R: usize>(
    from: &TensorMap,
    from_at: [i32; R],
    to: &TensorMap,
    to_at: [i32; R],
    seen: GlobalMut<f32>,
    shared: SharedArray<f32, MOST, 128>,
    barrier: Mbarrier,
) {
    let elements: u32 = const {
        let mut elements = 1;
        let mut d = 0;
        while d < R {
            elements *= BOX[d];
            d += 1;
        }
        elements
    };
    let leads = thread_idx().get() == 0;
    // SAFETY: one thread begins and uses the barrier before the others see it. All threads wait for the load before
    // they read the box, and the store begins after their reads. The rest is promised by the caller.
    unsafe {
        if leads {
            tma_prefetch(from, from_at);
            barrier.init(1);
            fence_mbarrier_init();
            barrier.arrive_expect_tx(elements * size_of::<f32>() as u32);
            tma_load(from, from_at, *shared, barrier, LoadOptions::DEFAULT);
        }
        sync_threads();
        barrier.wait(0);
        let mut i = thread_idx().get();
        while i < elements {
            seen.store(i64::from(i), shared.load(i64::from(i)));
            i += THREADS;
        }
        sync_threads();
        if leads {
            tma_store(to, to_at, *shared);
            tma_store_commit();
            tma_store_wait::<0>();
        }
    }
}

instantiate! {
    /// Copies a box of a tensor of rank 4.
    #[kernel(threads = 32, arch = "sm_90a")]
    pub unsafe fn copy_of_rank_4(
        #[grid_constant] from: &TensorMap,
        from_at: [i32; 4],
        #[grid_constant] to: &TensorMap,
        to_at: [i32; 4],
        seen: GlobalMut<f32>,
        #[shared] shared: SharedArray<f32, MOST, 128>,
        #[shared] barrier: Mbarrier,
    ) = copy::<4>;

    /// Copies a box of a tensor of rank 5.
    #[kernel(threads = 32, arch = "sm_90a")]
    pub unsafe fn copy_of_rank_5(
        #[grid_constant] from: &TensorMap,
        from_at: [i32; 5],
        #[grid_constant] to: &TensorMap,
        to_at: [i32; 5],
        seen: GlobalMut<f32>,
        #[shared] shared: SharedArray<f32, MOST, 128>,
        #[shared] barrier: Mbarrier,
    ) = copy::<5>;
}
