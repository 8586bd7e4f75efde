//! Who is running: the GPU thread, its block and its cluster, and the questions a kernel asks about
//! them.

use std::cell::{Cell, RefCell};
use std::ptr;

use corosensei::Yielder;
use corosensei::trap::CoroutineTrapHandler;

use crate::barrier::Barrier;
use crate::cluster::Outcome;
use crate::hopper;
use crate::knowledge::{Knowledge, Meeting};
use crate::panic::PanicReport;
use crate::shared::{SharedMemory, own_window};
use crate::wait::{Poll, Wait};
use crate::warp::{WARP_SIZE, Warp};

/// Named barriers a block has.
pub(crate) const BARRIERS: usize = 16;

/// What every thread of a launch sees the same.
#[derive(Clone, Copy)]
pub(crate) struct Dims {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: u32,
    pub(crate) overlaps_previous: bool,
}

/// One block while it runs.
pub(crate) struct Block {
    pub(crate) idx: [u32; 3],
    pub(crate) rank: u32,
    pub(crate) dims: Dims,
    pub(crate) threads: u32,
    pub(crate) shared: SharedMemory,
    /// The window of addresses in that memory.
    pub(crate) shared_window: u32,
    pub(crate) barriers: [Barrier; BARRIERS],
    pub(crate) warps: Box<[Warp]>,
    pub(crate) hopper: hopper::BlockState,
    /// Where threads of the cluster hand over data by flags; the one of the block with rank 0 is used.
    pub(crate) flags: Meeting,
    /// All blocks of the cluster, this one included, by rank.
    pub(crate) cluster: Cell<*const [Block]>,
}

impl Block {
    pub(crate) fn new(idx: [u32; 3], rank: u32, dims: Dims, shared: SharedMemory) -> Self {
        let threads = dims.block.iter().product::<u32>();
        let warps = (0..threads)
            .step_by(WARP_SIZE)
            .map(|first| Warp::new((threads - first).min(WARP_SIZE as u32)))
            .collect();
        Self {
            idx,
            rank,
            dims,
            threads,
            shared,
            shared_window: own_window(rank, dims.cluster),
            barriers: std::array::from_fn(|_| Barrier::default()),
            warps,
            hopper: hopper::BlockState::default(),
            flags: Meeting::default(),
            cluster: Cell::new(ptr::slice_from_raw_parts(ptr::null(), 0)),
        }
    }

    /// All blocks of the cluster, by rank.
    pub(crate) fn all_of_cluster(&self) -> &[Block] {
        // SAFETY: the scheduler sets the slice to the cluster's blocks before any of its threads runs,
        // and they outlive the threads.
        unsafe { &*self.cluster.get() }
    }

    /// The block with rank 0, which keeps what is the whole cluster's.
    pub(crate) fn first_of_cluster(&self) -> &Block {
        &self.all_of_cluster()[0]
    }

    /// The `[x, y, z]` index of the block's `linear`-th thread, counted along x first.
    pub(crate) fn thread_idx(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.dims.block;
        [linear % x, linear / x % y, linear / x / y]
    }
}

/// One GPU thread while it runs.
pub(crate) struct Thread {
    pub(crate) idx: [u32; 3],
    pub(crate) linear: u32,
    pub(crate) block: *const Block,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    /// What the thread waits for while it is suspended.
    pub(crate) wait: Cell<Option<Wait>>,
    pub(crate) poll: Cell<Poll>,
    /// What it knows to have ended.
    pub(crate) knows: RefCell<Knowledge>,
    pub(crate) hopper: hopper::ThreadState,
    pub(crate) exited: Cell<bool>,
    /// How a stack overflow ends the coroutine; set when it starts.
    pub(crate) trap: Cell<Option<CoroutineTrapHandler<Outcome>>>,
    /// What the thread panicked with, if it did.
    pub(crate) panic: Cell<Option<PanicReport>>,
}

impl Thread {
    pub(crate) fn block(&self) -> &Block {
        // SAFETY: a cluster's blocks are boxed, live as long as its threads, and are only lent out
        // shared.
        unsafe { &*self.block }
    }

    pub(crate) fn lane(&self) -> usize {
        self.linear as usize % WARP_SIZE
    }

    pub(crate) fn warp(&self) -> &Warp {
        &self.block().warps[self.linear as usize / WARP_SIZE]
    }
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

/// Says which GPU thread the code that follows on this OS thread belongs to; null for none.
#[inline]
pub(crate) fn set_current(thread: *const Thread) {
    CURRENT.set(thread);
}

/// The running GPU thread, null outside of kernels.
#[inline]
pub(crate) fn current_or_null() -> *const Thread {
    CURRENT.get()
}

/// The running GPU thread.
#[inline]
#[track_caller]
pub(crate) fn current<'a>() -> &'a Thread {
    let thread = CURRENT.get();
    if thread.is_null() {
        outside();
    }
    // SAFETY: the scheduler sets the pointer before it resumes the coroutine and clears it
    // afterwards; the `Thread` outlives its coroutine, on whose stack the reference is used.
    unsafe { &*thread }
}

#[cold]
#[track_caller]
fn outside() -> ! {
    panic!("this function is for kernel bodies: it can only be called while a kernel is launched")
}

/// Whether the calling code runs as a GPU thread.
#[inline]
pub fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

/// Index of the running thread in its block, `[x, y, z]`.
///
/// # Panics
/// Outside of a kernel, as do all questions about the running thread.
#[inline]
#[track_caller]
pub fn thread_idx() -> [u32; 3] {
    current().idx
}

/// Index of the running thread in its block, counted along x first: `0..threads`.
#[inline]
#[track_caller]
pub fn linear_thread_idx() -> u32 {
    current().linear
}

/// Index of the running block in the grid, `[x, y, z]`.
#[inline]
#[track_caller]
pub fn block_idx() -> [u32; 3] {
    current().block().idx
}

/// Extents of a block in threads, `[x, y, z]`.
#[inline]
#[track_caller]
pub fn block_dim() -> [u32; 3] {
    current().block().dims.block
}

/// Extents of the grid in blocks, `[x, y, z]`.
#[inline]
#[track_caller]
pub fn grid_dim() -> [u32; 3] {
    current().block().dims.grid
}

/// Position of the running thread in its warp: `0..32`.
#[inline]
#[track_caller]
pub fn lane() -> u32 {
    current().linear % WARP_SIZE as u32
}

/// Number of the running warp in its block.
#[inline]
#[track_caller]
pub fn warp() -> u32 {
    current().linear / WARP_SIZE as u32
}

/// Position of the running block in its cluster: `0..cluster_size()`.
#[inline]
#[track_caller]
pub fn cluster_rank() -> u32 {
    current().block().rank
}

/// How many blocks a cluster has; 1 when the launch asks for no clusters.
#[inline]
#[track_caller]
pub fn cluster_size() -> u32 {
    current().block().dims.cluster
}
