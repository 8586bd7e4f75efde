//! The CPU backend's streams: work runs when it is enqueued, or is recorded during a capture.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crate::Result;
use crate::capture::Capture;
use crate::lock::lock;

/// A launch, copy or fill on the CPU backend.
pub(crate) trait Work: Send + Sync + 'static {
    /// Runs the work.
    ///
    /// # Safety
    /// The memory that the work was enqueued with is still alive.
    unsafe fn run(&self) -> Result<()>;
}

/// The work of a capture, in order.
pub(crate) struct Recording {
    work: Vec<Box<dyn Work>>,
    /// Held by a replay. Replays in all streams run one at a time, because they share the graph's memory.
    turn: Turn,
}

impl Recording {
    pub(crate) fn new(work: Vec<Box<dyn Work>>) -> Recording {
        Recording {
            work,
            turn: Turn::default(),
        }
    }

    /// Runs the recorded work as one piece of the queue's work.
    ///
    /// # Safety
    /// The memory that the work was enqueued with is still alive.
    pub(crate) unsafe fn replay(&self, queue: &CpuQueue, beside: Beside) -> Result<()> {
        // No deadlock: the recording's turn is always taken first, and no turn is taken after a queue's.
        let _of_recording = self.turn.take();
        let _of_queue = queue.turn();
        let _running = Running::begin(beside);
        // SAFETY: the caller's promise.
        self.work.iter().try_for_each(|work| unsafe { work.run() })
    }
}

/// A stream of the CPU backend.
pub(crate) enum CpuQueue {
    /// Runs work. One thread at a time does; threads that share the stream wait for it.
    Runs(Turn),
    /// Records work for a capture.
    Records(Weak<Capture>),
}

impl Default for CpuQueue {
    fn default() -> Self {
        CpuQueue::Runs(Turn::default())
    }
}

impl CpuQueue {
    /// A queue that records work for this capture.
    pub(crate) fn recording_for(capture: Weak<Capture>) -> CpuQueue {
        CpuQueue::Records(capture)
    }

    /// Runs the work after work of other threads, or records it during a capture. Running does not allocate here.
    pub(crate) fn submit(&self, work: impl Work) -> Result<()> {
        match self {
            CpuQueue::Runs(_) => self.run(&work),
            CpuQueue::Records(capture) => {
                if let Some(capture) = capture.upgrade() {
                    capture.record(Box::new(work));
                }
                Ok(())
            }
        }
    }

    /// Runs the work after work of other threads.
    pub(crate) fn run(&self, work: &impl Work) -> Result<()> {
        let _turn = self.turn();
        let _running = Running::begin(Beside::OtherWork);
        // SAFETY: whoever enqueues work keeps its memory alive during the call.
        unsafe { work.run() }
    }

    /// Waits for the work that other threads run.
    pub(crate) fn wait(&self) {
        drop(self.turn());
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            CpuQueue::Runs(turn) => turn.take(),
            CpuQueue::Records(_) => None,
        }
    }
}

/// The right to run work, held by one thread at a time.
#[derive(Default)]
pub(crate) struct Turn(Mutex<()>);

impl Turn {
    /// Waits for the turn and holds it until the guard is dropped. A panic of an earlier holder does no harm.
    ///
    /// `None` inside a kernel, which would wait for its own launch to end. The launch it attempts is then refused.
    fn take(&self) -> Option<MutexGuard<'_, ()>> {
        let waits = !cutlet_simt::in_kernel();
        waits.then(|| lock(&self.0))
    }
}

/// What runs on the CPU backend at the same time as a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Work of other queues.
    OtherWork,
    /// Nothing: replays of graphs that own their memory, which others may use as well.
    Nothing,
}

/// The right to run beside other work, or alone.
enum Running {
    BesideOthers {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
    },
}

impl Running {
    /// Waits until the work may run. A panic of earlier work does no harm.
    ///
    /// `None` inside a kernel, whose own launch runs meanwhile. The launch it attempts is then refused.
    fn begin(beside: Beside) -> Option<Running> {
        static WORK: RwLock<()> = RwLock::new(());
        if cutlet_simt::in_kernel() {
            return None;
        }
        Some(match beside {
            Beside::OtherWork => Running::BesideOthers {
                _guard: WORK.read().unwrap_or_else(PoisonError::into_inner),
            },
            Beside::Nothing => Running::Alone {
                _guard: WORK.write().unwrap_or_else(PoisonError::into_inner),
            },
        })
    }
}
