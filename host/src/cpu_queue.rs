//! The CPU backend's streams: work runs when it is enqueued, or is recorded during a capture.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::graph_memory::GraphMemory;
use crate::lock::lock;
use crate::{Error, Result};

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
    /// Runs the recorded work as one piece of the queue's work.
    ///
    /// # Safety
    /// The memory that the work was enqueued with is still alive.
    pub(crate) unsafe fn replay(&self, queue: &CpuQueue) -> Result<()> {
        // No deadlock: the recording's turn is always taken first, and no turn is taken after a queue's.
        let _of_recording = self.turn.take();
        let _of_queue = queue.turn.take();
        // SAFETY: the caller's promise.
        self.work.iter().try_for_each(|work| unsafe { work.run() })
    }
}

/// A capture; `None` after it has ended. Its streams record in one list, in the order of their calls.
struct Capture(Mutex<Option<Recorded>>);

#[derive(Default)]
struct Recorded {
    work: Vec<Box<dyn Work>>,
    /// Indices of the work that no other work waits for.
    last: BTreeSet<usize>,
    /// The memory that the work uses.
    memory: Arc<GraphMemory>,
}

/// The position of a stream or an event in a capture.
#[derive(Clone)]
pub(crate) struct CapturePlace {
    capture: Arc<Capture>,
    /// Indices of the recorded work that it directly waits for.
    behind: BTreeSet<usize>,
}

impl CapturePlace {
    /// Whether the capture has not ended.
    fn is_open(&self) -> bool {
        lock(&self.capture.0).is_some()
    }
}

/// A stream of the CPU backend.
#[derive(Default)]
pub(crate) struct CpuQueue {
    /// The position in the last capture that the stream was part of.
    place: Mutex<Option<CapturePlace>>,
    /// Held by the thread that runs work. Threads that share the stream wait for it.
    turn: Turn,
}

impl CpuQueue {
    /// Runs the work after work of other threads, or records it during a capture. Running does not allocate here.
    pub(crate) fn submit(&self, work: impl Work) -> Result<()> {
        if let Some(place) = lock(&self.place).as_mut()
            && let Some(recorded) = lock(&place.capture.0).as_mut()
        {
            let own = recorded.work.len();
            recorded.work.push(Box::new(work));
            recorded.last.retain(|last| !place.behind.contains(last));
            recorded.last.insert(own);
            place.behind = BTreeSet::from([own]);
            return Ok(());
        }
        let _turn = self.turn.take();
        // SAFETY: whoever enqueues work keeps its memory alive during the call.
        unsafe { work.run() }
    }

    /// Runs the work after work of other threads. Whether a capture forbids it is asked once: a capture that begins
    /// afterwards does not record it.
    ///
    /// # Errors
    /// [`Error::Capturing`] during a capture.
    pub(crate) fn run(&self, doing: &'static str, work: &impl Work) -> Result<()> {
        if self.is_recording() {
            return Err(Error::Capturing { doing });
        }
        let _turn = self.turn.take();
        // SAFETY: whoever runs work keeps its memory alive during the call.
        unsafe { work.run() }
    }

    /// Waits for the work that other threads run.
    pub(crate) fn wait(&self) {
        drop(self.turn.take());
    }

    /// Begins a capture. Returns `false` if the stream is part of one already.
    pub(crate) fn begin(&self) -> bool {
        let mut place = lock(&self.place);
        let begins = !place.as_ref().is_some_and(CapturePlace::is_open);
        if begins {
            *place = Some(CapturePlace {
                capture: Arc::new(Capture(Mutex::new(Some(Recorded::default())))),
                behind: BTreeSet::new(),
            });
        }
        begins
    }

    /// Ends the capture that began here, for all streams in it. Returns the recorded work and its memory.
    ///
    /// # Errors
    /// [`Error::Capture`] if this stream has not waited for all work that other streams recorded.
    pub(crate) fn end(&self) -> Result<(Recording, Arc<GraphMemory>)> {
        let place = lock(&self.place).take();
        let ended = place.and_then(|it| Some((lock(&it.capture.0).take()?, it.behind)));
        let (recorded, behind) = ended.unwrap_or_default();
        if !recorded.last.is_subset(&behind) {
            return Err(Error::Capture {
                found: "the stream that the capture began on did not wait for all work of the other streams"
                    .into(),
                fix: "record an event after that work and have the first stream wait for it",
            });
        }
        let recording = Recording {
            work: recorded.work,
            turn: Turn::default(),
        };
        Ok((recording, recorded.memory))
    }

    /// The stream's position in a capture; `None` outside a capture.
    pub(crate) fn place(&self) -> Option<CapturePlace> {
        lock(&self.place).clone().filter(CapturePlace::is_open)
    }

    /// Makes later work wait for an event of a capture. A stream outside a capture joins the event's.
    ///
    /// # Errors
    /// [`Error::Capture`] if the stream is part of another capture.
    pub(crate) fn wait_for(&self, event: &CapturePlace) -> Result<()> {
        let mut place = lock(&self.place);
        match place.as_mut().filter(|place| place.is_open()) {
            Some(place) if Arc::ptr_eq(&place.capture, &event.capture) => {
                place.behind.extend(&event.behind);
            }
            Some(_) => return Err(waits_for_other_work()),
            None if event.is_open() => *place = Some(event.clone()),
            // The event's capture has ended, so there is nothing to wait for.
            None => {}
        }
        Ok(())
    }

    /// Waits for an event that was recorded outside a capture: the work before it is done already.
    ///
    /// # Errors
    /// [`Error::Capture`] during a capture, as the event is no part of it.
    pub(crate) fn wait_for_passed(&self) -> Result<()> {
        match self.is_recording() {
            true => Err(waits_for_other_work()),
            false => Ok(()),
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        lock(&self.place)
            .as_ref()
            .is_some_and(CapturePlace::is_open)
    }

    /// The memory of the graph into which the stream is being captured; `None` outside a capture.
    pub(crate) fn graph_memory(&self) -> Option<Arc<GraphMemory>> {
        let place = lock(&self.place);
        let recorded = lock(&place.as_ref()?.capture.0);
        Some(recorded.as_ref()?.memory.clone())
    }
}

fn waits_for_other_work() -> Error {
    Error::Capture {
        found: "a stream of the capture waits for an event that was recorded outside it".into(),
        fix: "record the event in a stream of the same capture, or wait for it before the capture begins",
    }
}

/// The right to run work, held by one thread at a time.
#[derive(Default)]
struct Turn(Mutex<()>);

impl Turn {
    /// Waits for the turn and holds it until the guard is dropped. A panic of an earlier holder does no harm.
    ///
    /// `None` inside a kernel, which would wait for its own launch to end. The launch it attempts is then refused.
    fn take(&self) -> Option<MutexGuard<'_, ()>> {
        let waits = !cutlet_simt::in_kernel();
        waits.then(|| lock(&self.0))
    }
}
