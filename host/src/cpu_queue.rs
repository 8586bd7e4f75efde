//! The CPU backend's streams: work runs at once, one after the other, or is recorded while a graph is being captured.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock;
use crate::resident::ResidentMemory;
use crate::{Error, Result};

/// A launch, copy or fill on the CPU backend.
pub(crate) trait Work: Send + Sync + 'static {
    /// Does it.
    ///
    /// # Safety
    /// The memory that it was put in for is still alive.
    unsafe fn run(&self) -> Result<()>;
}

/// What a capture recorded, in order.
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

/// A capture, until it has ended: all streams that are in it record in one list, in the order of their calls.
struct Capture(Mutex<Option<Recorded>>);

#[derive(Default)]
struct Recorded {
    work: Vec<Box<dyn Work>>,
    /// Which of it no other is behind.
    last: BTreeSet<usize>,
    /// The memory that it uses.
    keeps: Arc<ResidentMemory>,
}

/// A place in a capture, where a stream or an event is.
#[derive(Clone)]
pub(crate) struct CapturePlace {
    capture: Arc<Capture>,
    /// What of the recorded work it is behind, and of that the last.
    behind: BTreeSet<usize>,
}

impl CapturePlace {
    /// Whether the capture has not ended.
    fn goes_on(&self) -> bool {
        lock(&self.capture.0).is_some()
    }
}

/// A stream of the CPU backend.
#[derive(Default)]
pub(crate) struct CpuQueue {
    /// Where it is in the capture that it was in last.
    place: Mutex<Option<CapturePlace>>,
    /// Threads that share the stream wait here, each for the work of the others.
    turn: Turn,
}

impl CpuQueue {
    /// Runs the work after what runs already, or records it during a capture. Running allocates nothing here.
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
        // SAFETY: whoever puts work in holds the memory it is for during the call.
        unsafe { work.run() }
    }

    /// Waits for the work that another thread has running.
    pub(crate) fn wait(&self) {
        drop(self.turn.take());
    }

    /// Begins a capture; `false` if the stream is in one already.
    pub(crate) fn begin(&self) -> bool {
        let mut place = lock(&self.place);
        let begins = !place.as_ref().is_some_and(CapturePlace::goes_on);
        if begins {
            *place = Some(CapturePlace {
                capture: Arc::new(Capture(Mutex::new(Some(Recorded::default())))),
                behind: BTreeSet::new(),
            });
        }
        begins
    }

    /// Ends the capture that began here, for all streams that are in it. Returns what it recorded, and the memory
    /// that this uses.
    ///
    /// # Errors
    /// [`Error::Capture`] if another stream has recorded something that this one is not behind.
    pub(crate) fn end(&self) -> Result<(Recording, Arc<ResidentMemory>)> {
        let place = lock(&self.place).take();
        let ended = place.and_then(|it| Some((lock(&it.capture.0).take()?, it.behind)));
        let (recorded, behind) = ended.unwrap_or_default();
        if !recorded.last.is_subset(&behind) {
            return Err(Error::Capture {
                found: "the stream that it began on did not wait for all work of the others in it"
                    .into(),
                fix: "record an event behind that work and have the stream wait for it",
            });
        }
        let recording = Recording {
            work: recorded.work,
            turn: Turn::default(),
        };
        Ok((recording, recorded.keeps))
    }

    /// Where the stream is in a capture, if it is in one.
    pub(crate) fn place(&self) -> Option<CapturePlace> {
        lock(&self.place).clone().filter(CapturePlace::goes_on)
    }

    /// Has what is put in from now on be behind an event's place in a capture. A stream that is in none joins it.
    ///
    /// # Errors
    /// [`Error::Capture`] if the stream is in another one.
    pub(crate) fn wait_for(&self, event: &CapturePlace) -> Result<()> {
        let mut place = lock(&self.place);
        match place.as_mut().filter(|place| place.goes_on()) {
            Some(place) if Arc::ptr_eq(&place.capture, &event.capture) => {
                place.behind.extend(&event.behind);
            }
            Some(_) => return Err(waits_for_others()),
            None if event.goes_on() => *place = Some(event.clone()),
            // As after any event that has passed.
            None => {}
        }
        Ok(())
    }

    /// Waits for an event that was not recorded in a capture: whatever it marks is done.
    ///
    /// # Errors
    /// [`Error::Capture`] in a capture, of which that is no part.
    pub(crate) fn wait_for_passed(&self) -> Result<()> {
        match self.is_recording() {
            true => Err(waits_for_others()),
            false => Ok(()),
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.place().is_some()
    }

    /// What the graph keeps into which the stream is being captured; `None` if it is not.
    pub(crate) fn graph_memory(&self) -> Option<Arc<ResidentMemory>> {
        let place = self.place()?;
        let recorded = lock(&place.capture.0);
        Some(recorded.as_ref()?.keeps.clone())
    }
}

fn waits_for_others() -> Error {
    Error::Capture {
        found: "a stream in it was to wait for an event that is no part of it".into(),
        fix: "record the event in a stream of the same capture, or wait for it before",
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
        waits.then(|| lock(&self.0))
    }
}
