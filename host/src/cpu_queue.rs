//! The CPU backend's streams: work runs at once, or is recorded while a graph is being captured.

use std::sync::{Mutex, PoisonError};

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
pub(crate) type Recording = Vec<Box<dyn Work>>;

/// A stream of the CPU backend.
#[derive(Default)]
pub(crate) struct CpuQueue {
    recording: Mutex<Option<Recording>>,
}

impl CpuQueue {
    /// Runs the work, or records it during a capture. Running allocates nothing here.
    pub(crate) fn submit(&self, work: impl Work) -> Result<()> {
        if let Some(recording) = self.lock().as_mut() {
            recording.push(Box::new(work));
            return Ok(());
        }
        // SAFETY: whoever puts work in holds the memory it is for during the call.
        unsafe { work.run() }
    }

    /// Begins a capture; `false` if one is going on already.
    pub(crate) fn begin(&self) -> bool {
        let mut recording = self.lock();
        let begins = recording.is_none();
        if begins {
            *recording = Some(Vec::new());
        }
        begins
    }

    /// Ends a capture and returns what it recorded.
    pub(crate) fn end(&self) -> Recording {
        self.lock().take().unwrap_or_default()
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Recording>> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
