//! The block reduction: one value of all threads of a block, which every thread gets.

use core::marker::PhantomData;

use crate::shared_storage::bytes_of;
use crate::warp_reduce::butterfly;
use crate::{
    DeviceData, LogicalWarp, ReduceElement, Shared, SharedStorage, Shuffle, ThreadGroup, ThreadIdx,
    WARP_SIZE, lane_idx, sync_threads,
};

/// Shared memory for reductions over a block with the threads of `G`: whole warps. A `T` has 1, 2, 4, 8 or 16 bytes.
///
/// A reduction combines the values of each warp by shuffles, and those of the warps through shared memory. It takes one
/// barrier of the block, so all threads of the block call it. The results of one call may be read, and the next call
/// made, without another barrier.
///
/// The order of the operations does not depend on the run.
///
/// ```
/// use cutlet_device::collective::BlockReduce;
/// use cutlet_device::{Global, GlobalMut, Threads, kernel, rsqrt_approx, thread_idx};
///
/// /// Divides a row of 256 numbers by the root of their mean square.
/// ///
/// /// # Safety
/// /// `x` and `y` have 256 elements.
/// #[kernel(threads = 256)]
/// unsafe fn rms_norm(
///     x: Global<f32>,
///     y: GlobalMut<f32>,
///     #[shared] mut squares: BlockReduce<f32, Threads<256>>,
/// ) {
///     let at = i64::from(thread_idx().get());
///     // SAFETY: as promised by the caller.
///     unsafe {
///         let x = x.load(at);
///         let mean = squares.sum(thread_idx(), x * x) / 256.0;
///         y.store(at, x * rsqrt_approx(mean + 1e-6));
///     }
/// }
///
/// assert_eq!(rms_norm.bounds().shared_bytes(), 2 * 8 * 4);
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "rms_norm", grid: [1; 3], block: [256, 1, 1], cluster: 1, shared_bytes: 64,
/// #     overlap_previous: false,
/// # };
/// # let (from, mut to) = ([2.0f32; 256], [0.0f32; 256]);
/// # let (x, y) = (Global::from_ptr(from.as_ptr()), GlobalMut::from_ptr(to.as_mut_ptr()));
/// # cutlet_simt::launch(&spec, &|| unsafe { rms_norm.body().unwrap()((x, y)) }).unwrap();
/// # assert!(to.iter().all(|y| (y - 1.0).abs() < 1e-5));
/// ```
#[derive(Debug)]
pub struct BlockReduce<T, G> {
    /// A value of each warp, twice: a call writes one half while slow threads may still read the other one.
    partials: Shared<T>,
    half: u32,
    group: PhantomData<G>,
}

impl<T: DeviceData, G: ThreadGroup> SharedStorage for BlockReduce<T, G> {
    const BYTES: u32 = bytes_of::<T>(2 * Self::WARPS as usize);
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            partials: Shared::from_address(address),
            half: 0,
            group: PhantomData,
        }
    }
}

impl<T: DeviceData, G: ThreadGroup> BlockReduce<T, G> {
    const WARPS: u32 = {
        assert!(
            G::THREADS > 0 && G::THREADS.is_multiple_of(WARP_SIZE),
            "a block reduction is over whole warps: give the kernel a multiple of 32 threads"
        );
        G::THREADS / WARP_SIZE
    };
    /// The largest power of two that is not above the number of warps.
    const LANES: u32 = 1 << Self::WARPS.ilog2();
}

impl<T: DeviceData + Shuffle, G: ThreadGroup> BlockReduce<T, G> {
    /// The threads' values, combined by `combine`, which is associative and commutative. All threads of the block call
    /// it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn reduce(
        &mut self,
        thread: ThreadIdx<G>,
        value: T,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> T {
        let of_warp = LogicalWarp::<WARP_SIZE>::reduce(value, combine);
        self.of_block(thread, of_warp, combine)
    }

    /// The warps' values, combined.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn of_block(
        &mut self,
        thread: ThreadIdx<G>,
        of_warp: T,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> T {
        if Self::WARPS == 1 {
            return of_warp;
        }
        let partials = self.partials.offset(self.half.into());
        self.half = Self::WARPS - self.half;
        if lane_idx().is_first() {
            // SAFETY: there is a place for each warp. The threads that read it before have since met at a barrier.
            unsafe { partials.store((thread.get() / WARP_SIZE).into(), of_warp) };
        }
        sync_threads();
        let first = lane_idx().get() % Self::LANES;
        let second = first + Self::LANES;
        // SAFETY: the warps have written their values before the barrier.
        let mut partial = unsafe { partials.load(first.into()) };
        if second < Self::WARPS {
            // SAFETY: as above.
            partial = combine(partial, unsafe { partials.load(second.into()) });
        }
        butterfly(partial, Self::LANES, combine)
    }
}

impl<T: DeviceData + ReduceElement, G: ThreadGroup> BlockReduce<T, G> {
    /// The sum of the threads' values. All threads of the block call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn sum(&mut self, thread: ThreadIdx<G>, value: T) -> T {
        let of_warp = LogicalWarp::<WARP_SIZE>::sum(value);
        self.of_block(thread, of_warp, T::sum_of)
    }

    /// The largest of the threads' values. All threads of the block call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn max(&mut self, thread: ThreadIdx<G>, value: T) -> T {
        let of_warp = LogicalWarp::<WARP_SIZE>::max(value);
        self.of_block(thread, of_warp, T::larger_of)
    }

    /// The smallest of the threads' values. All threads of the block call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn min(&mut self, thread: ThreadIdx<G>, value: T) -> T {
        let of_warp = LogicalWarp::<WARP_SIZE>::min(value);
        self.of_block(thread, of_warp, T::smaller_of)
    }
}
