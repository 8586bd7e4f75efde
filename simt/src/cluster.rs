//! Running one cluster: all threads of all its blocks, in turn, on one OS thread.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::context::{Block, Thread, current_or_null, set_current};
use crate::error::{SimtError, Waiting};
use crate::grid::Grid;
use crate::hopper;
use crate::panic::PanicReport;
use crate::shared::SharedMemory;
use crate::stack::{PooledStack, StackCache, stack_bytes};
use crate::wait::{Poll, Wait, WaitKind};

/// How a thread's coroutine ended.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Finished,
    /// The thread holds the report.
    Panicked,
    StackOverflow,
}

/// How far a cluster has come when the scheduler turns to something else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All its threads have ended.
    Finished,
    /// Its threads wait, some of them for other blocks, or have got past such a wait just now.
    WaitsForGrid,
    /// The launch has failed elsewhere.
    Cancelled,
}

type ThreadCoroutine = Coroutine<(), (), Outcome, PooledStack>;

/// What a core keeps from one cluster to the next.
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
pub(crate) struct Run<'g> {
    grid: &'g Grid<'g>,
    // Before the vectors it points into, so that it is dropped (and its threads unwound) first.
    coroutines: Vec<Option<ThreadCoroutine>>,
    threads: Vec<Thread>,
    blocks: Vec<Block>,
    live: usize,
}

impl<'g> Run<'g> {
    /// Prepares the `index`-th cluster of the grid; no thread runs yet.
    pub(crate) fn new(grid: &'g Grid<'g>, index: u64, resources: &mut Resources) -> Self {
        let dims = grid.dims;
        let blocks: Vec<Block> = (0..dims.cluster)
            .map(|rank| {
                let mut shared = resources
                    .shared
                    .pop()
                    .unwrap_or_else(|| SharedMemory::new(grid.shared_bytes));
                shared.poison();
                Block::new(grid.block_idx(index, rank), rank, dims, shared)
            })
            .collect();
        let threads: Vec<Thread> = blocks
            .iter()
            .flat_map(|block| {
                (0..block.threads).map(move |linear| Thread {
                    idx: block.thread_idx(linear),
                    linear,
                    block: ptr::from_ref(block),
                    yielder: Cell::new(ptr::null()),
                    wait: Cell::new(None),
                    poll: Cell::new(Poll::default()),
                    knows: RefCell::default(),
                    hopper: hopper::ThreadState::default(),
                    exited: Cell::new(false),
                    trap: Cell::new(None),
                    panic: Cell::new(None),
                })
            })
            .collect();
        for block in &blocks {
            block.cluster.set(ptr::from_ref::<[Block]>(&blocks));
        }
        let live = threads.len();
        let coroutines = (0..live).map(|_| None).collect();
        Self {
            grid,
            coroutines,
            threads,
            blocks,
            live,
        }
    }

    /// Runs the cluster's threads, in turn, as far as they get.
    ///
    /// # Errors
    /// A thread's failure, or a standstill that only this cluster could end.
    pub(crate) fn advance(&mut self, stacks: &mut StackCache) -> Result<Standing, SimtError> {
        self.on_behalf_of_threads(|run| run.run_until_stuck(stacks))
    }

    /// The error for a cluster that waits for others, none of which can go on either.
    pub(crate) fn who_waits(&mut self) -> SimtError {
        let waits = self.on_behalf_of_threads(|run| Err::<Infallible, _>(run.standstill()));
        let Err(error) = waits;
        error
    }

    /// Calls what runs threads or asks what they wait for. Their conditions, and what they say that they wait for, are
    /// theirs, but called by the scheduler; a panic there is the thread's.
    fn on_behalf_of_threads<R>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<R, SimtError>,
    ) -> Result<R, SimtError> {
        let result = catch_unwind(AssertUnwindSafe(|| f(self)));
        let current = current_or_null();
        set_current(ptr::null());
        result.unwrap_or_else(|payload| {
            // SAFETY: null, or set below to the thread whose turn it is, one of `self.threads`.
            let Some(thread) = (unsafe { current.as_ref() }) else {
                resume_unwind(payload)
            };
            Err(self.panic_error(thread, PanicReport::new(payload.as_ref())))
        })
    }

    fn run_until_stuck(&mut self, stacks: &mut StackCache) -> Result<Standing, SimtError> {
        loop {
            let (mut moved, mut passed) = (false, false);
            for index in 0..self.threads.len() {
                let thread = &self.threads[index];
                if thread.exited.get() {
                    continue;
                }
                set_current(thread);
                if let Some(wait) = thread.wait.get() {
                    // SAFETY: the thread set this when it suspended itself, and it has not been
                    // resumed since.
                    if !unsafe { wait.is_ready() } {
                        continue;
                    }
                    thread.wait.set(None);
                    match wait.kind {
                        WaitKind::Grid => passed = true,
                        WaitKind::BlockBarrier | WaitKind::Cluster => moved = true,
                    }
                } else {
                    moved = true;
                }
                self.resume(index, stacks)?;
            }
            if self.live == 0 {
                self.check_leftovers()?;
                return Ok(Standing::Finished);
            }
            if self.grid.is_cancelled() {
                return Ok(Standing::Cancelled);
            }
            if moved || passed {
                self.grid.note_progress();
            }
            if moved {
                continue;
            }
            let for_grid =
                |t: &Thread| t.wait.get().is_some_and(|wait| wait.kind == WaitKind::Grid);
            let threads = &self.threads;
            // Threads that poll get past their waits again and again, and other clusters must have their turn.
            if passed || threads.iter().any(|t| !t.exited.get() && for_grid(t)) {
                return Ok(Standing::WaitsForGrid);
            }
            return Err(self.standstill());
        }
    }

    /// Whether the blocks end in order.
    fn check_leftovers(&self) -> Result<(), SimtError> {
        for block in &self.blocks {
            if let Some((thread, message)) = hopper::leftover(block) {
                return Err(SimtError::Panic {
                    kernel: self.grid.kernel.to_owned(),
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
                    kernel: self.grid.kernel.to_owned(),
                    stack_bytes: stack_bytes(),
                    message: error.to_string(),
                })?;
                slot.insert(start(thread, self.grid.body, stack))
            }
        };
        let CoroutineResult::Return(outcome) = coroutine.resume(()) else {
            return Ok(());
        };
        thread.exited.set(true);
        thread.trap.set(None);
        self.live -= 1;
        if let Some(coroutine) = slot.take() {
            stacks.give_back(coroutine.into_stack());
        }
        match outcome {
            Outcome::Finished => Ok(()),
            Outcome::Panicked => {
                let report = thread.panic.take().unwrap_or_default();
                Err(self.panic_error(thread, report))
            }
            Outcome::StackOverflow => Err(SimtError::StackOverflow {
                kernel: self.grid.kernel.to_owned(),
                block: thread.block().idx,
                thread: thread.idx,
                stack_bytes: stack_bytes(),
            }),
        }
    }

    /// Ends the cluster, whether or not its threads have ended, and takes back what it used.
    pub(crate) fn dismiss(mut self, resources: &mut Resources) {
        for (thread, slot) in self.threads.iter().zip(&mut self.coroutines) {
            if let Some(mut coroutine) = slot.take() {
                set_current(thread);
                coroutine.force_unwind();
                resources.stacks.give_back(coroutine.into_stack());
            }
        }
        set_current(ptr::null());
        resources
            .shared
            .extend(self.blocks.drain(..).map(|block| block.shared));
    }

    fn panic_error(&self, thread: &Thread, report: PanicReport) -> SimtError {
        SimtError::Panic {
            kernel: self.grid.kernel.to_owned(),
            block: thread.block().idx,
            thread: thread.idx,
            message: report.message,
            location: report.location,
        }
    }

    /// The error for a cluster of which no thread can go on.
    fn standstill(&self) -> SimtError {
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
                    kernel: self.grid.kernel.to_owned(),
                    block: block.idx,
                    waiting: waiting.idx,
                    missing: missing.idx,
                    arrived: block.barriers[0].arrived(),
                    threads: block.threads,
                };
            }
        }
        let waiting = self.waiting();
        SimtError::Deadlock {
            kernel: self.grid.kernel.to_owned(),
            block: waiting.first().map_or([0; 3], |first| first.block),
            waiting,
        }
    }

    /// Who waits for what, threads of a block that wait for the same thing together.
    fn waiting(&self) -> Vec<Waiting> {
        let mut groups: Vec<Waiting> = Vec::new();
        for thread in self.threads.iter().filter(|thread| !thread.exited.get()) {
            let Some(wait) = thread.wait.get() else {
                continue;
            };
            set_current(thread);
            // SAFETY: the thread is suspended in the wait, see `run_until_stuck`.
            let what = unsafe { wait.what() };
            let block = thread.block().idx;
            match groups
                .iter_mut()
                .find(|group| group.block == block && group.what == what)
            {
                Some(group) => group.count += 1,
                None => groups.push(Waiting {
                    block,
                    thread: thread.idx,
                    count: 1,
                    what,
                }),
            }
        }
        groups
    }
}

/// Makes the coroutine of a thread on the given stack.
fn start(thread: &Thread, body: &(dyn Fn() + Sync), stack: PooledStack) -> ThreadCoroutine {
    let this = ptr::from_ref(thread);
    let main = move |yielder: &Yielder<(), ()>, ()| {
        // SAFETY: the thread's memory stays in place and outlives its coroutine (see `Run`).
        let thread = unsafe { &*this };
        thread.yielder.set(yielder);
        let body = || {
            body();
            hopper::thread_ends(thread);
        };
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(()) => Outcome::Finished,
            Err(payload) => {
                thread.panic.set(Some(PanicReport::new(payload.as_ref())));
                Outcome::Panicked
            }
        }
    };
    // SAFETY: the closure borrows the thread and the kernel's body. `Run` holds the coroutine,
    // drops it before the threads, and is itself outlived by the body.
    let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, main) };
    thread.trap.set(Some(coroutine.trap_handler()));
    coroutine
}
