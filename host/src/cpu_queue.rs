//! The CPU backend's streams: work runs at once, one after the other, or is recorded while a graph is being captured.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Result;

/// A launch, copy or fill on the CPU backend.
pub(crate) trait Work: Send + Sync + 'static {
    /// Does it.
    ///
    /// # Safety
    /// The memory that it was put in for is still alive.
    unsafe fn run(&self) -> Result<()>;
}

/// What a capture recorded, in order.
#[derive(Default)]
pub(crate) struct Recording {
    work: Vec<Box<dyn Work>>,
    /// Its replays run one after the other, whatever the streams: what it keeps is for one at a time.
    turn: Turn,
}

impl Recording {
    /// Does what was recorded, as one piece of the queue's work.
    ///
    /// # Safety
    /// The memory that the work was put in for is still alive.
    pub(crate) unsafe fn replay(&self, queue: &CpuQueue) -> Result<()> {
        // In this order everywhere, and who has a queue's turn takes no other: nobody waits in a circle.
        let _of_recording = self.turn.take();
        let _of_queue = queue.turn.take();
        // SAFETY: the caller's promise.
        self.work.iter().try_for_each(|work| unsafe { work.run() })
    }
}

/// A stream of the CPU backend.
#[derive(Default)]
pub(crate) struct CpuQueue {
    recording: Mutex<Option<Recording>>,
    /// Threads that share the stream wait here, each for the work of the others.
    turn: Turn,
}

impl CpuQueue {
    /// Runs the work after what runs already, or records it during a capture. Running allocates nothing here.
    pub(crate) fn submit(&self, work: impl Work) -> Result<()> {
        if let Some(recording) = self.recording().as_mut() {
            recording.work.push(Box::new(work));
            return Ok(());
        }
        let _turn = self.turn.take();
        // SAFETY: whoever puts work in holds the memory it is for during the call.
        unsafe { work.run() }
    }

    /// Waits for the work that another thread has running.
    pub(crate) fn wait(&self) {
        drop(self.turn.take());
    }

    /// Begins a capture; `false` if one is going on already.
    pub(crate) fn begin(&self) -> bool {
        let mut recording = self.recording();
        let begins = recording.is_none();
        if begins {
            *recording = Some(Recording::default());
        }
        begins
    }

    /// Ends a capture and returns what it recorded.
    pub(crate) fn end(&self) -> Recording {
        self.recording().take().unwrap_or_default()
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording().is_some()
    }

    fn recording(&self) -> MutexGuard<'_, Option<Recording>> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose turn it is to run work: one thread's at a time.
#[derive(Default)]
struct Turn(Mutex<()>);

impl Turn {
    /// Waits for the turn and has it until the guard is dropped, also where a run before panicked.
    ///
    /// `None` in a kernel, which would wait for the end of its own launch; another launch is refused there.
    fn take(&self) -> Option<MutexGuard<'_, ()>> {
        let waits = !cutlet_simt::in_kernel();
        waits.then(|| self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
