//! The index of a thread among those of warpgroups that multiply together.

use cutlet_layout_core::ThreadIndex;

use super::{WARPGROUP_SIZE, WarpgroupIdx, WarpgroupThread};
use crate::{ThreadGroup, ThreadIdx, lane_idx, shfl, uniform};

/// The index of a thread in a number of whole warpgroups, for products that they issue.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the index of a thread of whole warpgroups",
    note = "take `thread_idx()` if all warpgroups of the block multiply, `ThreadOfWarpgroups` if some of them do, and \
            `warpgroup_thread_idx()` if each multiplies for itself"
)]
pub trait WarpgroupsThread: ThreadIndex {
    /// The thread's warpgroup, counted from the first of them. The compiler knows it to be the same for all threads of
    /// a warp.
    ///
    /// All lanes of the warp call it.
    fn warpgroup(self) -> u32;
}

/// Of all warpgroups of a block.
impl<G: ThreadGroup> WarpgroupsThread for ThreadIdx<G> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn warpgroup(self) -> u32 {
        uniform(self.get() / WARPGROUP_SIZE)
    }
}

/// Of one warpgroup.
impl WarpgroupsThread for WarpgroupThread {
    #[inline(always)]
    fn warpgroup(self) -> u32 {
        0
    }
}

/// Index of a thread among those of `COUNT` warpgroups of a block: of its consumers, for instance.
///
/// ```
/// use cutlet_device::sm90::Wgmma;
/// use cutlet_device::warpgroup::{ThreadOfWarpgroups, warpgroup_idx, warpgroup_thread_idx};
/// use cutlet_device::kernel;
/// use cutlet_layout_core::{L, TiledMma};
/// use half::bf16;
///
/// /// Two warpgroups below one another.
/// type Mma = TiledMma<Wgmma<256, bf16>, L!((2, 1):(1, 0))>;
///
/// #[kernel(threads = 384, arch = "sm_90a")]
/// fn product() {
///     let (warpgroup, thread) = (warpgroup_idx(), warpgroup_thread_idx());
///     if warpgroup.is_first() {
///         return; // It loads tiles.
///     }
///     let mma = Mma::thread_slice(ThreadOfWarpgroups::<2>::new(warpgroup.after(1), thread));
///     # let _ = mma;
/// }
/// assert_eq!(Mma::THREADS, 256);
/// # assert_eq!(product.bounds().threads(), 384);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadOfWarpgroups<const COUNT: u32> {
    warpgroup: WarpgroupIdx,
    thread: WarpgroupThread,
}

impl<const COUNT: u32> ThreadOfWarpgroups<COUNT> {
    /// Thread `thread` of warpgroup `warpgroup`, which is counted from the first of the warpgroups and below `COUNT`.
    #[inline(always)]
    pub const fn new(warpgroup: WarpgroupIdx, thread: WarpgroupThread) -> Self {
        Self { warpgroup, thread }
    }

    /// The index of the warpgroup among those of the product.
    #[inline(always)]
    pub(crate) const fn warpgroup_idx(self) -> WarpgroupIdx {
        self.warpgroup
    }

    /// The thread's index in its warpgroup.
    #[inline(always)]
    pub(crate) const fn in_warpgroup(self) -> WarpgroupThread {
        self.thread
    }
}

impl<const COUNT: u32> ThreadIndex for ThreadOfWarpgroups<COUNT> {
    const THREADS: Option<u32> = Some(COUNT * WARPGROUP_SIZE);

    #[inline(always)]
    fn index(self) -> u32 {
        self.warpgroup.0 * WARPGROUP_SIZE + self.thread.0
    }
}

impl<const COUNT: u32> WarpgroupsThread for ThreadOfWarpgroups<COUNT> {
    #[inline(always)]
    fn warpgroup(self) -> u32 {
        self.warpgroup.0
    }
}

/// Index of a thread of a warpgroup at one of `STEPS` steps: the coordinate of layouts of threads, and of steps behind
/// them.
///
/// ```
/// use cutlet_device::warpgroup::{ThreadAtStep, warpgroup_thread_idx};
/// use cutlet_device::{Global, GlobalMut, kernel};
/// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
///
/// /// Each thread has a row, of which it takes a number at each step.
/// type Row = Tv<L!((128, 32):(1@0, 1@1)), L!(1:1@0)>;
///
/// /// Adds the numbers of each row.
/// ///
/// /// # Safety
/// /// `numbers` has 128 rows of 32 numbers, and `sums` has 128.
/// #[kernel(threads = 128)]
/// unsafe fn sums(numbers: Global<f32>, sums: GlobalMut<f32>) {
///     let thread = warpgroup_thread_idx();
///     // SAFETY: as promised by the caller.
///     let rows = unsafe { Tensor::new(numbers, RowMajor::new([128, 32], 32)) };
///     let mut sum = 0.0;
///     for step in 0..32 {
///         let number = rows.partition::<Row>(ThreadAtStep::<32>::new(thread, step));
///         sum += number.value(0, 0.0);
///     }
///     // SAFETY: as promised by the caller.
///     unsafe { sums.store(i64::from(thread.get()), sum) };
/// }
/// # assert_eq!(sums.bounds().threads(), 128);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadAtStep<const STEPS: u32> {
    thread: u32,
    step: u32,
}

impl<const STEPS: u32> ThreadAtStep<STEPS> {
    /// Thread `thread` at step `step`, which is below `STEPS` and the same for all lanes of the warp. All of them call
    /// it.
    ///
    /// What depends on the index is computed after the call: for a loop that rarely runs, inside of one that has no
    /// registers to spare.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn new(thread: WarpgroupThread, step: u32) -> Self {
        Self {
            thread: shfl(thread.0, lane_idx().get()),
            step: uniform(step),
        }
    }
}

impl<const STEPS: u32> ThreadIndex for ThreadAtStep<STEPS> {
    const THREADS: Option<u32> = Some(STEPS * WARPGROUP_SIZE);

    #[inline(always)]
    fn index(self) -> u32 {
        self.step * WARPGROUP_SIZE + self.thread
    }
}
