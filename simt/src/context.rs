//! Which GPU thread is running, with its block and its cluster, and what a kernel can ask about them.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use corosensei::Yielder;
use corosensei::trap::CoroutineTrapHandler;

use crate::barrier::{Barrier, ClusterBarrier};
use crate::buffers::Buffers;
use crate::error::Index;
use crate::flags::Fences;
use crate::launch_shadow::LaunchShadow;
use crate::model_state::ModelState;
use crate::outputs::Outputs;
use crate::panic::PanicReport;
use crate::shared_address::own_window;
use crate::shared_memory::SharedMemory;
use crate::shown_wait::ShownWait;
use crate::traffic::Traffic;
use crate::unwritten::UnwrittenRead;
use crate::vector_clock::{SyncClock, VectorClock};
use crate::wait::{Poll, Wait};
use crate::warp::{WARP_SIZE, Warp};

/// Named barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// The shape of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Dims {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: u32,
    pub(crate) overlaps_previous: bool,
}

impl Dims {
    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Index of the block with a rank in the `cluster`-th cluster. The blocks of a cluster are neighbours along x.
    pub(crate) fn block_idx(&self, cluster: u64, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        let across = x / u64::from(self.cluster);
        let [plane, in_plane] = [cluster / (across * y), cluster % (across * y)];
        // Each index is below the grid's extent in its direction, which is a u32.
        let [x, y, z] = [in_plane % across, in_plane / across, plane].map(|index| index as u32);
        [x * self.cluster + rank, y, z]
    }

    /// The `[x, y, z]` index of a block's `linear`-th thread, counted along x first.
    pub(crate) fn thread_idx(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [linear % x, linear / x % y, linear / x / y]
    }
}

/// What all threads of a launch share.
pub(crate) struct Launch<'l> {
    pub(crate) kernel: &'l str,
    pub(crate) dims: Dims,
    /// The buffers that the launch was given; `None` if it may use any memory.
    pub(crate) buffers: Option<&'l Buffers>,
    /// What the threads access; `None` if the launch is not reported.
    pub(crate) traffic: Option<Traffic>,
    /// What the threads write; `None` if the launch is not reported.
    pub(crate) outputs: Option<Outputs>,
    /// Whether the launch has failed: threads that run end at their next access to memory.
    pub(crate) cancelled: AtomicBool,
    /// The threads that ran when the launch failed, and the lines at which they ended.
    pub(crate) ended: Mutex<Vec<EndedThread>>,
    /// The accesses to global memory; `None` if the launch does not look for races.
    pub(crate) shadow: Option<LaunchShadow>,
}

/// A thread that ended at an access because its launch had failed.
#[derive(Clone, Copy)]
pub(crate) struct EndedThread {
    pub(crate) block: [u32; 3],
    pub(crate) thread: [u32; 3],
    pub(crate) line: &'static Location<'static>,
}

/// One block while it runs.
pub(crate) struct Block {
    launch: *const Launch<'static>,
    pub(crate) idx: [u32; 3],
    pub(crate) rank: u32,
    /// The number of its cluster in the grid.
    pub(crate) cluster_number: u64,
    pub(crate) dims: Dims,
    pub(crate) threads: u32,
    pub(crate) ended_threads: Cell<u32>,
    pub(crate) shared: SharedMemory,
    /// The first read by one of its threads of shared memory that nothing has written.
    pub(crate) unwritten_read: Cell<Option<UnwrittenRead>>,
    /// The window of the block's addresses to its own shared memory.
    pub(crate) shared_window: u32,
    pub(crate) barriers: [Barrier; BARRIERS],
    pub(crate) warps: Box<[Warp]>,
    pub(crate) models: ModelState,
    /// The cluster's barrier. That of the block with rank 0 is used.
    pub(crate) cluster_barrier: ClusterBarrier,
    /// The clock of all flags of the cluster. That of the block with rank 0 is used.
    pub(crate) flags: SyncClock,
    /// All blocks of the cluster, this one included, by rank.
    pub(crate) cluster: Cell<*const [Block]>,
}

impl Block {
    /// The block with a rank in a cluster of a launch, which must outlive it.
    pub(crate) fn new(
        launch: &Launch<'_>,
        cluster_number: u64,
        rank: u32,
        shared: SharedMemory,
    ) -> Self {
        let dims = launch.dims;
        let threads = dims.threads();
        let warps = (0..threads)
            .step_by(WARP_SIZE)
            .map(|first| Warp::new((threads - first).min(WARP_SIZE as u32)))
            .collect();
        Self {
            launch: ptr::from_ref(launch).cast(),
            idx: dims.block_idx(cluster_number, rank),
            rank,
            cluster_number,
            dims,
            threads,
            ended_threads: Cell::new(0),
            shared,
            unwritten_read: Cell::new(None),
            shared_window: own_window(rank, dims.cluster),
            barriers: std::array::from_fn(|_| Barrier::default()),
            warps,
            models: ModelState::default(),
            cluster_barrier: ClusterBarrier::default(),
            flags: SyncClock::default(),
            cluster: Cell::new(ptr::slice_from_raw_parts(ptr::null(), 0)),
        }
    }

    /// What all threads of the launch share.
    pub(crate) fn launch(&self) -> &Launch<'_> {
        // SAFETY: the scheduler keeps the launch until its blocks have been dropped. Only the lifetime of what it
        // borrows was changed, and that becomes the block's here.
        unsafe { &*self.launch }
    }

    /// All blocks of the cluster, by rank.
    pub(crate) fn all_of_cluster(&self) -> &[Block] {
        // SAFETY: the scheduler sets the slice to the cluster's blocks before any of its threads runs, and the blocks
        // outlive the threads.
        unsafe { &*self.cluster.get() }
    }

    /// The block with rank 0, which holds what the whole cluster shares.
    pub(crate) fn first_of_cluster(&self) -> &Block {
        &self.all_of_cluster()[0]
    }

    /// The `[x, y, z]` index of the block's `linear`-th thread, counted along x first.
    pub(crate) fn thread_idx(&self, linear: u32) -> [u32; 3] {
        self.dims.thread_idx(linear)
    }
}

/// How a thread's coroutine ended.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Finished,
    /// The report is in the thread.
    Panicked,
}

/// One GPU thread while it runs.
pub(crate) struct Thread {
    pub(crate) idx: [u32; 3],
    pub(crate) linear: u32,
    pub(crate) block: *const Block,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    /// What the thread waits for while it is suspended.
    pub(crate) wait: Cell<Option<Wait>>,
    /// Where it shows that to the watchdog.
    shown: *const ShownWait,
    pub(crate) poll: Cell<Poll>,
    pub(crate) clock: RefCell<VectorClock>,
    pub(crate) fences: Fences,
    /// The phase of the cluster's barrier that the thread has arrived in and not waited for.
    pub(crate) cluster_arrival: Cell<Option<u32>>,
    /// Whether the thread has waited for the previous kernels (programmatic dependent launch).
    pub(crate) waited_for_previous: Cell<bool>,
    pub(crate) models: ModelState,
    pub(crate) exited: Cell<bool>,
    /// The range of the coroutine's stack, to recognise a stack overflow; set when the coroutine starts.
    pub(crate) trap: Cell<Option<CoroutineTrapHandler<Outcome>>>,
    /// The line on whose behalf the thread accesses memory, if it is not that of the access.
    pub(crate) line: Cell<Option<&'static Location<'static>>>,
    /// The report of the thread's panic, if there was one.
    pub(crate) panic: Cell<Option<PanicReport>>,
    /// The report of the thread's first wrong access. It ends the launch, even if the kernel catches the panic.
    pub(crate) fault: Cell<Option<PanicReport>>,
}

impl Thread {
    /// The `linear`-th thread of a block, before it runs. `shown` must outlive it.
    pub(crate) fn new(block: &Block, linear: u32, shown: &ShownWait) -> Self {
        let clock = match block.launch().shadow {
            Some(_) => VectorClock::of_thread(block.rank * block.threads + linear),
            None => VectorClock::default(),
        };
        Self {
            idx: block.thread_idx(linear),
            linear,
            block,
            yielder: Cell::new(ptr::null()),
            wait: Cell::new(None),
            shown,
            poll: Cell::new(Poll::default()),
            clock: RefCell::new(clock),
            fences: Fences::default(),
            cluster_arrival: Cell::new(None),
            waited_for_previous: Cell::new(false),
            models: ModelState::default(),
            exited: Cell::new(false),
            trap: Cell::new(None),
            line: Cell::new(None),
            panic: Cell::new(None),
            fault: Cell::new(None),
        }
    }

    pub(crate) fn block(&self) -> &Block {
        // SAFETY: a cluster's blocks stay in place, live as long as its threads, and are only borrowed shared.
        unsafe { &*self.block }
    }

    /// Where the thread shows what it waits for.
    pub(crate) fn shown(&self) -> &ShownWait {
        // SAFETY: the scheduler keeps it as long as the cluster's threads (see `Thread::new`).
        unsafe { &*self.shown }
    }

    pub(crate) fn lane(&self) -> usize {
        self.linear as usize % WARP_SIZE
    }

    pub(crate) fn warp(&self) -> &Warp {
        &self.block().warps[self.linear as usize / WARP_SIZE]
    }

    /// Ends the thread at an access of the caller if its launch has failed. A thread that unwinds goes on.
    #[inline]
    #[track_caller]
    pub(crate) fn end_if_cancelled(&self) {
        if self.block().launch().cancelled.load(Ordering::Relaxed) && !std::thread::panicking() {
            self.end_at(self.line());
        }
    }

    #[cold]
    fn end_at(&self, line: &'static Location<'static>) -> ! {
        let ended = EndedThread {
            block: self.block().idx,
            thread: self.idx,
            line,
        };
        let all = &self.block().launch().ended;
        all.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ended);
        panic!("the launch has failed");
    }

    /// The line of an access that the caller makes.
    #[inline]
    #[track_caller]
    pub(crate) fn line(&self) -> &'static Location<'static> {
        self.line.get().unwrap_or(Location::caller())
    }

    /// Adds what a synchronisation point has published to the thread's clock.
    #[inline]
    pub(crate) fn acquire(&self, clock: &SyncClock) {
        clock.acquire(&mut self.clock.borrow_mut());
    }
}

/// Ends the running thread because of a wrong access, whose message this is.
#[cold]
#[track_caller]
pub(crate) fn fault(thread: &Thread, message: String) -> ! {
    let report = PanicReport::at(thread.line(), &message);
    let first = thread.fault.take();
    thread.fault.set(Some(first.unwrap_or(report)));
    panic!("{message}")
}

/// Attributes the next accesses of the running thread to a line, or to that of each access. Returns the line before.
#[inline]
pub fn attribute_to(
    line: Option<&'static Location<'static>>,
) -> Option<&'static Location<'static>> {
    // SAFETY: as in `current`. Outside of a kernel no access is reported.
    let thread = unsafe { current_or_null().as_ref() }?;
    thread.line.replace(line)
}

/// A thread of a block, as messages of the running thread call it. The block is of the running cluster.
pub(crate) fn thread_in_message(block: &Block, linear: u32) -> String {
    let [x, y, z] = block.thread_idx(linear);
    if ptr::eq(block, current().block()) {
        format!("thread ({x}, {y}, {z})")
    } else {
        format!(
            "thread ({x}, {y}, {z}) of block {} of the cluster",
            block.rank
        )
    }
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

/// A part of the scheduler that gives turns to the threads of a cluster. When it ends, also by a panic, no thread runs
/// on this OS thread: the threads' memory may go then.
pub(crate) struct Turns(());

impl Turns {
    /// No thread has its turn yet.
    pub(crate) fn begin() -> Self {
        CURRENT.set(ptr::null());
        Self(())
    }

    /// The code that follows on this OS thread belongs to a thread, which must outlive its turn.
    #[inline]
    pub(crate) fn give(&self, thread: &Thread) {
        CURRENT.set(thread);
    }

    /// Ends the turn of the thread that has it. Returns the thread; null for none.
    pub(crate) fn end(&self) -> *const Thread {
        CURRENT.replace(ptr::null())
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.end();
    }
}

/// The running GPU thread; null outside of kernels.
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
    // SAFETY: the scheduler sets the pointer before it resumes the coroutine, and `Turns` clears it afterwards. The
    // `Thread` outlives its coroutine, on whose stack the reference is used.
    unsafe { &*thread }
}

#[cold]
#[track_caller]
fn outside() -> ! {
    panic!("this function can only be called while a kernel runs: call it from a kernel's body")
}

/// The block of the running cluster with the given rank, which must still run: the shared memory of a block that has
/// ended must not be accessed.
#[track_caller]
pub(crate) fn running_block<'a>(rank: u32) -> &'a Block {
    let cluster = current().block().all_of_cluster();
    let Some(block) = cluster.get(rank as usize) else {
        no_such_block(rank, cluster.len() as u32)
    };
    assert!(
        block.ended_threads.get() < block.threads,
        "block {rank} of the cluster has ended, and with it its shared memory: let all blocks of a cluster meet at a \
         cluster barrier (or drain their pipelines) before one of them ends"
    );
    block
}

/// Panics for a rank that a cluster of `blocks` blocks does not have.
#[cold]
#[track_caller]
pub(crate) fn no_such_block(rank: u32, blocks: u32) -> ! {
    panic!("there is no block {rank} in a cluster of {blocks} blocks: ranks are below {blocks}")
}

/// The kernel, block and thread that run, in a message; `None` outside of kernels.
pub(crate) fn running_thread() -> Option<String> {
    // SAFETY: as in `current`.
    let thread = unsafe { current_or_null().as_ref() }?;
    let block = thread.block();
    Some(format!(
        "kernel `{}`, block {}, thread {}",
        block.launch().kernel,
        Index(block.idx),
        Index(thread.idx)
    ))
}

/// Whether the calling code runs as a GPU thread.
#[inline]
pub fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

/// Index of the running thread in its block, `[x, y, z]`.
///
/// # Panics
/// Outside of a kernel. So do the other functions that ask about the running thread.
#[inline]
#[track_caller]
pub fn thread_idx() -> [u32; 3] {
    current().idx
}

/// Index of the running thread in its block, counted along x first.
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

/// How many blocks a cluster has; 1 if the launch asks for no clusters.
#[inline]
#[track_caller]
pub fn cluster_size() -> u32 {
    current().block().dims.cluster
}
