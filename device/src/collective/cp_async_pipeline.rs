//! The pipeline over `cp.async`: a ring of shared-memory stages that all threads of a block fill and read together.
//!
//! [`Pipeline`](super::Pipeline) is its sibling for Hopper's roles, with mbarriers. This one needs no memory of its
//! own: each thread waits for its own copies, and then meets the others at the block's barrier.

use core::marker::PhantomData;

use super::{StageCount, StageIdx};
use crate::cp_async::{cp_async_commit, cp_async_wait};
use crate::sync_threads;

/// A ring of `S` stages, 2 to 8, that the threads of a block fill by [`cp_async`](crate::cp_async) ahead of reading
/// them. Each thread has its own `CpAsyncPipeline`, and all threads of the block make the same calls.
///
/// [`AHEAD`](Self::AHEAD) stages are filled first. Then each turn waits for a stage, fills the one that the turn before
/// has read, and computes:
///
/// ```
/// use cutlet_device::collective::{CpAsyncPipeline, StageIdx, Stages, TileRing};
/// use cutlet_device::cp_async::cp_async;
/// use cutlet_device::{Global, GlobalMut, ThreadIdx, Threads, kernel, thread_idx};
/// use cutlet_layout_core::{L, NoSwizzle, RowMajor, Tensor, Tv};
///
/// type Tile = L!((16, 128):(1@0, 1@1));
/// type Ring = TileRing<f32, L!((16, 128):(128, 1)), NoSwizzle, Stages<3>>;
/// type Pipeline = CpAsyncPipeline<Stages<3>>;
/// /// A thread copies four neighbours of a row at a time.
/// type Copies = Tv<L!((32, 4):(4@1, 1@0)), L!((4, 4):(1@1, 4@0)), 4>;
/// /// A thread reads a column.
/// type Columns = Tv<L!(128:1@1), L!(16:1@0)>;
///
/// /// The sums of 128 columns over `rows` rows.
/// ///
/// /// # Safety
/// /// `x` has 128 · `rows` elements and begins at a multiple of 16 bytes. `sums` has 128.
/// #[kernel(threads = 128)]
/// unsafe fn column_sums(rows: i32, x: Global<f32>, sums: GlobalMut<f32>, #[shared] ring: Ring) {
///     let thread = thread_idx();
///     // SAFETY: as promised by the caller.
///     let x = unsafe { Tensor::new(x, RowMajor::new([rows, 128], 128)) };
///     // SAFETY: no thread uses the tile but as the pipeline says.
///     let tile = |stage: StageIdx| unsafe { ring.stage(stage).tensor() };
///     // Rows beyond the last one are filled with zeros.
///     let load = |tile_row: u32, stage: StageIdx| {
///         let from = x.local_tile::<Tile>((tile_row, 0u32)).partition::<Copies>(thread);
///         from.each_access(&tile(stage).partition(thread), |from, to, count| {
///             // SAFETY: `count` elements exist. The stage is free.
///             unsafe { cp_async::<_, 4>(to, from, count) }
///         });
///     };
///
///     let mut pipeline = Pipeline::new();
///     for tile_row in 0..Pipeline::AHEAD {
///         load(tile_row, pipeline.acquire());
///         pipeline.commit();
///     }
///     let mut sum = 0.0;
///     for tile_row in 0..x.tiles::<Tile>()[0] {
///         let full = pipeline.wait();
///         load(tile_row + Pipeline::AHEAD, pipeline.acquire());
///         pipeline.commit();
///         tile(full).partition::<Columns>(thread).for_each(|_, x| sum += x);
///     }
///     pipeline.drain();
///     // SAFETY: as promised by the caller.
///     unsafe { sums.store(thread.get().into(), sum) };
/// }
/// # #[repr(align(16))]
/// # struct Aligned([f32; 128 * 100]);
/// # let (from, mut to) = (Aligned(core::array::from_fn(|i| (i % 128) as f32)), [0.0f32; 128]);
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "column_sums", grid: [1; 3], block: [128, 1, 1], cluster: 1, shared_bytes: 3 * 8192,
/// #     overlap_previous: false,
/// # };
/// # let (x, sums) = (Global::from_ptr(from.0.as_ptr()), GlobalMut::from_ptr(to.as_mut_ptr()));
/// # cutlet_simt::launch(&spec, &|| unsafe { column_sums.body().unwrap()((100, x, sums)) }).unwrap();
/// # assert_eq!(to, core::array::from_fn(|i| 100.0 * i as f32));
/// ```
///
/// A loop that reads the next stage's operands while it computes calls `wait` in its last step, and fills the free
/// stage in a later step of the next turn.
///
/// A wrong order of calls panics on the CPU backend. A GPU does not check it.
#[derive(Debug)]
pub struct CpAsyncPipeline<S> {
    /// The next stage to fill.
    fill: u32,
    /// The next stage to wait for.
    full: u32,
    calls: imp::Calls,
    stages: PhantomData<S>,
}

impl<S: StageCount> CpAsyncPipeline<S> {
    /// Stages that are filled before the first one is waited for: all but one.
    pub const AHEAD: u32 = {
        assert!(
            S::STAGES >= 2 && S::STAGES <= 8,
            "a pipeline over cp.async has 2 to 8 stages: one is read while the others are filled"
        );
        S::STAGES as u32 - 1
    };

    /// A pipeline whose stages are all free.
    #[inline(always)]
    #[allow(
        clippy::new_without_default,
        reason = "a pipeline is made where its stages are free"
    )]
    pub const fn new() -> Self {
        Self {
            fill: 0,
            full: 0,
            calls: imp::Calls::new(),
            stages: PhantomData,
        }
    }

    /// The next stage to fill. No thread reads it any more. The thread issues its copies to it, and then calls
    /// [`commit`](Self::commit).
    ///
    /// # Panics
    /// On the CPU, if no stage is free, or the stage acquired before was not committed.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn acquire(&mut self) -> StageIdx {
        self.calls.acquire(Self::AHEAD);
        let stage = self.fill;
        self.fill = Self::after(stage);
        StageIdx::new(stage)
    }

    /// Closes the group of the thread's copies to the stage that was acquired last. The group may be empty: a loop
    /// fills stages until its end, though there is nothing left to copy.
    ///
    /// # Panics
    /// On the CPU, if no stage was acquired.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn commit(&mut self) {
        self.calls.commit();
        cp_async_commit();
    }

    /// Waits until all threads' copies to the next stage have arrived, and returns the stage, which all threads may
    /// read until their next `wait`. All threads of the block meet here, so the stage that was read before is free.
    ///
    /// # Panics
    /// On the CPU, if fewer than [`AHEAD`](Self::AHEAD) stages are filled: the copies might not have arrived.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(&mut self) -> StageIdx {
        self.calls.wait(Self::AHEAD);
        match Self::AHEAD {
            1 => cp_async_wait::<0>(),
            2 => cp_async_wait::<1>(),
            3 => cp_async_wait::<2>(),
            4 => cp_async_wait::<3>(),
            5 => cp_async_wait::<4>(),
            6 => cp_async_wait::<5>(),
            _ => cp_async_wait::<6>(),
        }
        sync_threads();
        let stage = self.full;
        self.full = Self::after(stage);
        StageIdx::new(stage)
    }

    /// Waits for all copies and all threads, before the stages' memory is used for something else.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn drain(self) {
        cp_async_wait::<0>();
        sync_threads();
    }

    #[inline(always)]
    const fn after(stage: u32) -> u32 {
        if stage == Self::AHEAD { 0 } else { stage + 1 }
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    /// A GPU does not check the order of calls.
    #[derive(Debug)]
    pub struct Calls;

    impl Calls {
        #[inline(always)]
        pub const fn new() -> Self {
            Self
        }

        #[inline(always)]
        pub fn acquire(&mut self, _: u32) {}

        #[inline(always)]
        pub fn commit(&mut self) {}

        #[inline(always)]
        pub fn wait(&mut self, _: u32) {}
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    /// The calls so far.
    #[derive(Debug)]
    pub struct Calls {
        acquired: u32,
        committed: u32,
        waited: u32,
    }

    impl Calls {
        pub const fn new() -> Self {
            Self {
                acquired: 0,
                committed: 0,
                waited: 0,
            }
        }

        #[track_caller]
        pub fn acquire(&mut self, ahead: u32) {
            assert!(
                self.acquired == self.committed,
                "acquire: the stage acquired before was not committed: call commit after its copies"
            );
            // Threads read the stage that was waited for last.
            let reading = self.waited.min(1);
            assert!(
                self.acquired + reading - self.waited <= ahead,
                "acquire: no stage is free: fill {ahead} stages before the first wait, and then one after each wait"
            );
            self.acquired += 1;
        }

        #[track_caller]
        pub fn commit(&mut self) {
            assert!(
                self.acquired > self.committed,
                "commit: no stage was acquired: call acquire before the copies"
            );
            self.committed += 1;
        }

        #[track_caller]
        pub fn wait(&mut self, ahead: u32) {
            let filled = self.committed - self.waited;
            assert!(
                filled >= ahead,
                "wait: {filled} stages are filled, and a wait needs {ahead}: acquire and commit a stage in each turn, \
                 also when nothing is left to copy"
            );
            self.waited += 1;
        }
    }
}
