//! Running one cluster: all threads of its blocks, in turn, on one OS thread.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::context::{Block, Outcome, Thread, Turns};
use crate::error::{SimtError, Waiting};
use crate::grid::{Core, Grid};
use crate::panic::PanicReport;
use crate::shared_memory::SharedMemory;
use crate::shown_wait::ShownWait;
use crate::stack::{PooledStack, StackCache, stack_bytes};
use crate::unwritten::UnwrittenRead;
use crate::wait::{Wait, WaitKind};
use crate::{cp_async, mbarrier, sm90, sync, tma};

/// Where a cluster stands when its core turns to other work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// All threads have ended.
    Finished,
    /// All threads wait. Some wait for other blocks, or have just ended such a wait.
    WaitsForGrid,
    /// The launch has failed elsewhere.
    Cancelled,
}

type ThreadCoroutine = Coroutine<(), (), Outcome, PooledStack>;

/// What a core passes from one cluster to the next.
pub(crate) struct Resources {
    pub(crate) stacks: StackCache,
    shared: Vec<SharedMemory>,
}

impl Resources {
    pub(crate) fn new() -> Self {
        Self {
            stacks: StackCache::new(),
            shared: Vec::new(),
        }
    }
}

/// A cluster that has been started.
pub(crate) struct RunningCluster<'g> {
    grid: &'g Grid<'g>,
    number: u64,
    /// Where the core shows which thread runs.
    core: &'g Core,
    // Declared before the vectors it points into, so that coroutines are dropped, and their threads unwound, first.
    coroutines: Vec<Option<ThreadCoroutine>>,
    threads: Vec<Thread>,
    /// What each thread waits for. The grid has it too, for the watchdog.
    shown: Arc<[ShownWait]>,
    blocks: Vec<Block>,
    /// How many threads have not ended.
    live: usize,
}

impl<'g> RunningCluster<'g> {
    /// Prepares the `index`-th cluster of the grid; no thread runs yet.
    pub(crate) fn new(
        grid: &'g Grid<'g>,
        index: u64,
        core: &'g Core,
        resources: &mut Resources,
    ) -> Self {
        let blocks: Vec<Block> = (0..grid.launch.dims.cluster)
            .map(|rank| {
                let mut shared = resources
                    .shared
                    .pop()
                    .unwrap_or_else(|| SharedMemory::new(grid.shared_bytes));
                shared.poison();
                Block::new(&grid.launch, index, rank, shared)
            })
            .collect();
        let threads = blocks
            .iter()
            .flat_map(|block| (0..block.threads).map(move |linear| (block, linear)));
        let shown: Arc<[ShownWait]> = threads.clone().map(|_| ShownWait::default()).collect();
        let threads: Vec<Thread> = threads
            .zip(shown.iter())
            .map(|((block, linear), shown)| Thread::new(block, linear, shown))
            .collect();
        grid.shows(index, &shown);
        for block in &blocks {
            block.cluster.set(ptr::from_ref::<[Block]>(&blocks));
        }
        let live = threads.len();
        let coroutines = (0..live).map(|_| None).collect();
        Self {
            grid,
            number: index,
            core,
            coroutines,
            threads,
            shown,
            blocks,
            live,
        }
    }

    /// Runs the cluster's threads in turn until all of them wait or have ended.
    ///
    /// # Errors
    /// If a thread failed, or if all threads wait for events that only this cluster can cause.
    pub(crate) fn advance(&mut self, stacks: &mut StackCache) -> Result<Status, SimtError> {
        let result =
            self.catch_thread_panic(|cluster, turns| cluster.run_until_all_wait(turns, stacks));
        match result {
            Ok(Status::WaitsForGrid | Status::Cancelled) => result,
            // What a thread reads before it is written is the cause of most that goes wrong afterwards.
            Ok(Status::Finished) | Err(_) => self.unwritten_read().map_or(result, Err),
        }
    }

    /// The error of the first read of shared memory that nothing has written.
    fn unwritten_read(&self) -> Option<SimtError> {
        self.blocks.iter().find_map(|block| {
            let UnwrittenRead { thread, report } = block.unwritten_read.take()?;
            let first_of_block = block.rank * block.threads;
            let thread = &self.threads[(first_of_block + thread) as usize];
            Some(self.panic_error(thread, report))
        })
    }

    /// The error if the cluster waits for other clusters, and all of these wait, too.
    pub(crate) fn deadlock_error(&mut self) -> SimtError {
        let Err(error) =
            self.catch_thread_panic(|cluster, turns| Err::<Infallible, _>(cluster.deadlock(turns)));
        self.unwritten_read().unwrap_or(error)
    }

    /// Calls `f`, which runs code of threads on the scheduler's stack: the conditions and the descriptions of their
    /// waits. A panic there becomes the error of the thread whose turn it is.
    fn catch_thread_panic<R>(
        &mut self,
        f: impl FnOnce(&mut Self, &Turns) -> Result<R, SimtError>,
    ) -> Result<R, SimtError> {
        let turns = Turns::begin();
        let result = catch_unwind(AssertUnwindSafe(|| f(self, &turns)));
        // Before the payload is dropped, whose destructor is no code of the thread.
        let current = turns.end();
        result.unwrap_or_else(|payload| {
            // SAFETY: null, or set by `f` to the thread whose turn it is, which is one of `self.threads`.
            let Some(thread) = (unsafe { current.as_ref() }) else {
                resume_unwind(payload)
            };
            Err(self.panic_error(thread, PanicReport::new(payload)))
        })
    }

    fn run_until_all_wait(
        &mut self,
        turns: &Turns,
        stacks: &mut StackCache,
    ) -> Result<Status, SimtError> {
        loop {
            // Whether threads ran, after a wait for the grid or otherwise.
            let (mut ran_after_grid, mut ran) = (false, false);
            for index in 0..self.threads.len() {
                let thread = &self.threads[index];
                if thread.exited.get() {
                    continue;
                }
                turns.give(thread);
                if let Some(wait) = thread.wait.get() {
                    // SAFETY: the thread set this when it suspended itself, and has not been resumed since.
                    if !unsafe { wait.is_ready() } {
                        continue;
                    }
                    thread.wait.set(None);
                    match wait.kind {
                        WaitKind::Grid => ran_after_grid = true,
                        WaitKind::BlockBarrier | WaitKind::Cluster => ran = true,
                    }
                } else {
                    ran = true;
                }
                self.resume(index, stacks)?;
            }
            if self.live == 0 {
                self.check_mbarriers()?;
                return Ok(Status::Finished);
            }
            if self.grid.is_cancelled() {
                return Ok(Status::Cancelled);
            }
            if ran || ran_after_grid {
                self.grid.note_progress();
            }
            if ran {
                continue;
            }
            let for_grid =
                |t: &Thread| t.wait.get().is_some_and(|wait| wait.kind == WaitKind::Grid);
            let threads = &self.threads;
            // Threads that poll end such waits again and again. Other clusters must get their turn.
            if ran_after_grid || threads.iter().any(|t| !t.exited.get() && for_grid(t)) {
                return Ok(Status::WaitsForGrid);
            }
            return Err(self.deadlock(turns));
        }
    }

    /// Checks that the blocks end with mbarriers whose byte counts add up.
    fn check_mbarriers(&self) -> Result<(), SimtError> {
        for block in &self.blocks {
            if let Some((thread, message)) = mbarrier::unbalanced(block) {
                return Err(SimtError::Panic {
                    kernel: self.grid.launch.kernel.to_owned(),
                    block: block.idx,
                    thread: block.thread_idx(thread),
                    message,
                    location: String::new(),
                });
            }
        }
        Ok(())
    }

    fn resume(&mut self, index: usize, stacks: &mut StackCache) -> Result<(), SimtError> {
        let thread = &self.threads[index];
        let slot = &mut self.coroutines[index];
        let coroutine = match slot {
            Some(coroutine) => coroutine,
            None => {
                let stack = stacks.take().map_err(|error| SimtError::OutOfStacks {
                    kernel: self.grid.launch.kernel.to_owned(),
                    stack_bytes: stack_bytes(),
                    message: error.to_string(),
                })?;
                slot.insert(start(thread, self.grid.body, stack))
            }
        };
        self.core.runs(self.number, index);
        let result = coroutine.resume(());
        self.core.rests();
        let CoroutineResult::Return(outcome) = result else {
            return Ok(());
        };
        thread.exited.set(true);
        thread.shown().end();
        thread.trap.set(None);
        self.live -= 1;
        if let Some(coroutine) = slot.take() {
            stacks.give_back(coroutine.into_stack());
        }
        if let Some(fault) = thread.fault.take() {
            return Err(self.panic_error(thread, fault));
        }
        match outcome {
            Outcome::Finished => Ok(()),
            Outcome::Panicked => {
                let report = thread.panic.take().unwrap_or_default();
                Err(self.panic_error(thread, report))
            }
        }
    }

    /// Unwinds the threads that have not ended, and takes back what the cluster used.
    pub(crate) fn tear_down(mut self, resources: &mut Resources) {
        let turns = Turns::begin();
        for (thread, slot) in self.threads.iter().zip(&mut self.coroutines) {
            if let Some(mut coroutine) = slot.take() {
                turns.give(thread);
                let number =
                    (thread.block().rank * thread.block().threads + thread.linear) as usize;
                self.core.runs(self.number, number);
                coroutine.force_unwind();
                resources.stacks.give_back(coroutine.into_stack());
            }
        }
        drop(turns);
        self.core.rests();
        self.grid.shows_no_more(&self.shown);
        if let Some(traffic) = &self.grid.launch.traffic {
            self.blocks.iter().for_each(|block| traffic.add(block));
        }
        resources
            .shared
            .extend(self.blocks.drain(..).map(|block| block.shared));
    }

    fn panic_error(&self, thread: &Thread, report: PanicReport) -> SimtError {
        SimtError::Panic {
            kernel: self.grid.launch.kernel.to_owned(),
            block: thread.block().idx,
            thread: thread.idx,
            message: report.message,
            location: report.location,
        }
    }

    /// The error if all threads of the cluster wait.
    #[cold]
    fn deadlock(&self, turns: &Turns) -> SimtError {
        let waits_with = |thread: &Thread, kind| {
            thread
                .wait
                .get()
                .is_some_and(|wait: Wait| wait.kind == kind)
                && !thread.exited.get()
        };
        for block in &self.blocks {
            let threads = || {
                self.threads
                    .iter()
                    .filter(|thread| ptr::eq(thread.block, block))
            };
            let waiting = threads().find(|thread| waits_with(thread, WaitKind::BlockBarrier));
            let missing = threads().find(|thread| thread.exited.get());
            let rest_wait =
                threads().all(|t| t.exited.get() || waits_with(t, WaitKind::BlockBarrier));
            if let (Some(waiting), Some(missing), true) = (waiting, missing, rest_wait) {
                return SimtError::BarrierNotReached {
                    kernel: self.grid.launch.kernel.to_owned(),
                    block: block.idx,
                    waiting: waiting.idx,
                    line: waiting.shown().line(),
                    missing: missing.idx,
                    arrived: block.barriers[0].arrived(),
                    threads: block.threads,
                };
            }
        }
        let waiting = self.waiting(turns);
        SimtError::Deadlock {
            kernel: self.grid.launch.kernel.to_owned(),
            block: waiting.first().map_or([0; 3], |first| first.block),
            waiting,
        }
    }

    /// The threads that wait, grouped by block, by what they wait for, and by line.
    fn waiting(&self, turns: &Turns) -> Vec<Waiting> {
        let mut groups: Vec<Waiting> = Vec::new();
        for thread in self.threads.iter().filter(|thread| !thread.exited.get()) {
            let Some(wait) = thread.wait.get() else {
                continue;
            };
            turns.give(thread);
            // SAFETY: the thread is suspended in the wait, see `run_until_all_wait`.
            let what = unsafe { wait.what() };
            let (block, line) = (thread.block().idx, thread.shown().line());
            let same = |group: &&mut Waiting| {
                group.block == block && group.what == what && group.line == line
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.count += 1,
                None => groups.push(Waiting {
                    block,
                    thread: thread.idx,
                    count: 1,
                    what,
                    line,
                }),
            }
        }
        groups
    }
}

/// Makes a thread's coroutine, on the given stack.
fn start(thread: &Thread, body: &(dyn Fn() + Sync), stack: PooledStack) -> ThreadCoroutine {
    let this = ptr::from_ref(thread);
    let main = move |yielder: &Yielder<(), ()>, ()| {
        // SAFETY: the thread's memory stays in place and outlives its coroutine (see `RunningCluster`).
        let thread = unsafe { &*this };
        thread.yielder.set(yielder);
        let body = || {
            body();
            let ended_threads = &thread.block().ended_threads;
            ended_threads.set(ended_threads.get() + 1);
            sync::thread_ends(thread);
            cp_async::thread_ends(thread);
            tma::thread_ends(thread);
            sm90::thread_ends(thread);
        };
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(()) => Outcome::Finished,
            Err(payload) => {
                thread.panic.set(Some(PanicReport::new(payload)));
                Outcome::Panicked
            }
        }
    };
    // SAFETY: the closure borrows the thread and the kernel's body. `RunningCluster` owns the coroutine and drops it
    // before the threads. The body outlives `RunningCluster`.
    let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, main) };
    thread.trap.set(Some(coroutine.trap_handler()));
    coroutine
}
