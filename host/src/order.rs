//! The order of streams' work, as builds with debug assertions know it: a use of a buffer that nothing orders after a
//! conflicting use in another stream is an error. Other builds have `no_order` instead.
//!
//! Uses of buffers are numbered. For each stream, a [`Timeline`] has the number up to which its uses are done, because
//! the host has waited for them, and the uses in other streams that come before its later work. Where the order is not
//! certain, uses count as ordered: some conflicts are missed, and none is invented.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::access::AccessKind;
pub(crate) use crate::access::{Access, Caller};
use crate::lock::lock;
use crate::{Error, Result, Stream};

/// Uses that a buffer remembers.
const USES: usize = 8;

/// The number of the last use.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Whether the work of a device is followed.
#[derive(Default)]
pub(crate) struct DeviceOrder {
    is_shared: AtomicBool,
}

impl DeviceOrder {
    /// From now on, another library may order work of the device, or wait for it. So nothing is followed any more.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }
}

/// The timeline of a stream; `None` for the stream of a capture. Its work runs when a graph is replayed, and is not
/// followed.
pub(crate) struct StreamOrder(Option<Arc<Timeline>>);

/// What is known of a stream's work. The uses of its work keep it, too.
#[derive(Default)]
struct Timeline {
    /// The number up to which the stream's uses are done.
    done: AtomicU64,
    /// Uses in other streams that come before the stream's later work.
    before: Mutex<Clock>,
}

impl Timeline {
    fn is_done(&self, number: u64) -> bool {
        number <= self.done.load(Ordering::Relaxed)
    }

    /// The host has waited for the stream's uses up to a number, and with them for those that come before.
    fn wait(&self, number: u64) {
        self.done.fetch_max(number, Ordering::Relaxed);
        lock(&self.before).is_waited_for();
    }
}

/// A vector clock: the uses that come before something, which are, in some streams, all up to a number.
#[derive(Default)]
struct Clock(Vec<(Weak<Timeline>, u64)>);

impl Clock {
    fn contains(&self, timeline: &Arc<Timeline>, number: u64) -> bool {
        let is_later = |(of, last): &(Weak<Timeline>, u64)| {
            *last >= number && of.as_ptr() == Arc::as_ptr(timeline)
        };
        self.0.iter().any(is_later)
    }

    fn add(&mut self, timeline: Weak<Timeline>, number: u64) {
        let is_same = |(of, _): &&mut (Weak<Timeline>, u64)| of.ptr_eq(&timeline);
        if let Some((_, last)) = self.0.iter_mut().find(is_same) {
            *last = number.max(*last);
            return;
        }
        if self.0.len() == self.0.capacity() {
            // What is done comes before everything, and streams without uses before nothing.
            let is_needed = |(of, last): &(Weak<Timeline>, u64)| {
                of.upgrade().is_some_and(|of| !of.is_done(*last))
            };
            self.0.retain(is_needed);
        }
        self.0.push((timeline, number));
    }

    fn join(&mut self, other: &Clock) {
        for (timeline, number) in &other.0 {
            self.add(timeline.clone(), *number);
        }
    }

    /// Adds what is enqueued in a stream, and what comes before it.
    fn join_enqueued(&mut self, stream: &StreamOrder) {
        if let StreamOrder(Some(timeline)) = stream {
            self.join(&lock(&timeline.before));
            self.add(Arc::downgrade(timeline), LAST.load(Ordering::Relaxed));
        }
    }

    /// The host has waited for these uses.
    fn is_waited_for(&self) {
        for (timeline, number) in &self.0 {
            if let Some(timeline) = timeline.upgrade() {
                timeline.done.fetch_max(*number, Ordering::Relaxed);
            }
        }
    }
}

/// The number of the last use when a call began to wait.
#[derive(Clone, Copy)]
pub(crate) struct Enqueued(u64);

impl StreamOrder {
    pub(crate) fn new(is_of_capture: bool) -> Self {
        StreamOrder((!is_of_capture).then(Arc::default))
    }

    /// What a call that waits for the stream waits for.
    pub(crate) fn enqueued(&self) -> Enqueued {
        Enqueued(LAST.load(Ordering::Relaxed))
    }

    /// The host has waited for the stream.
    pub(crate) fn is_waited_for(&self, Enqueued(number): Enqueued) {
        if let StreamOrder(Some(timeline)) = self {
            timeline.wait(number);
        }
    }

    /// A call is refused. Accesses of other arguments are noted already and never happen, so they count as done.
    pub(crate) fn call_is_refused(&self) {
        self.is_waited_for(self.enqueued());
    }

    /// Later work in this stream comes after what is enqueued in the other one.
    pub(crate) fn follows(&self, other: &StreamOrder) {
        let mark = Mark::default();
        mark.add(other);
        self.follows_mark(&mark);
    }

    /// Later work in this stream comes after the mark.
    pub(crate) fn follows_mark(&self, Mark(mark): &Mark) {
        if let StreamOrder(Some(timeline)) = self {
            // A mark is always locked before a stream.
            let mark = lock(mark);
            lock(&timeline.before).join(&mark);
        }
    }
}

/// The uses that come before an event, or before the replays of a graph to come.
#[derive(Default)]
pub(crate) struct Mark(Mutex<Clock>);

impl Mark {
    /// Puts the mark after the work that is enqueued in the stream.
    pub(crate) fn set(&self, stream: &StreamOrder) {
        let mut mark = lock(&self.0);
        mark.0.clear();
        mark.join_enqueued(stream);
    }

    /// Puts the mark also after the work that is enqueued in the stream.
    pub(crate) fn add(&self, stream: &StreamOrder) {
        lock(&self.0).join_enqueued(stream);
    }

    /// The host has waited for the mark.
    pub(crate) fn is_waited_for(&self) {
        lock(&self.0).is_waited_for();
    }
}

/// The uses of a buffer.
#[derive(Default)]
pub(crate) struct Uses(Box<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    latest: [Option<Use>; USES],
    /// Uses that there was no room for, and what comes before them. Conflicts with them are missed.
    others: Clock,
}

/// The uses of a view's buffer; none of memory with another owner.
#[derive(Clone, Copy)]
pub(crate) struct Tracked<'a> {
    uses: Option<&'a Uses>,
    is_relaxed: bool,
}

impl<'a> Tracked<'a> {
    /// Memory whose uses are not followed.
    pub(crate) const NONE: Self = Tracked {
        uses: None,
        is_relaxed: false,
    };

    pub(crate) const fn of(uses: &'a Uses) -> Self {
        Tracked {
            uses: Some(uses),
            is_relaxed: false,
        }
    }

    /// See [`View::relaxed`](crate::View::relaxed).
    pub(crate) fn relaxed(self) -> Self {
        Tracked {
            is_relaxed: true,
            ..self
        }
    }

    /// Returns an error if the stream's later work does not come after all conflicting uses of the elements, which are
    /// `what` in words.
    #[track_caller]
    pub(crate) fn note(
        self,
        stream: &Stream,
        access: Access,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        let (Some(uses), StreamOrder(Some(timeline))) = (self.uses, stream.order()) else {
            return Ok(());
        };
        if access.is_empty() || stream.device().order().is_shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let this = Use {
            timeline: timeline.clone(),
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            access,
            is_relaxed: self.is_relaxed,
            line: Location::caller(),
        };
        let mut earlier = lock(&uses.0);
        if let Some(other) = this.unordered_among(&earlier.latest) {
            let error = this.unordered(other, what());
            stream.order().call_is_refused();
            return Err(error);
        }
        earlier.add(this);
        Ok(())
    }
}

/// A use of elements of a buffer.
struct Use {
    timeline: Arc<Timeline>,
    number: u64,
    access: Access,
    is_relaxed: bool,
    line: &'static Location<'static>,
}

impl Use {
    /// An earlier use that conflicts with this one, and does not come before it.
    fn unordered_among<'u>(&self, earlier: &'u [Option<Use>]) -> Option<&'u Use> {
        let before = lock(&self.timeline.before);
        earlier.iter().flatten().find(|of| {
            let is_before = self.is_in_stream_of(of)
                || of.is_done()
                || before.contains(&of.timeline, of.number);
            !is_before && self.conflicts_with(of)
        })
    }

    fn is_done(&self) -> bool {
        self.timeline.is_done(self.number)
    }

    fn is_in_stream_of(&self, other: &Use) -> bool {
        Arc::ptr_eq(&self.timeline, &other.timeline)
    }

    /// Whether one of both writes an element that the other one uses.
    fn conflicts_with(&self, other: &Use) -> bool {
        let (this, that) = (&self.access, &other.access);
        let one_writes = this.writes() || that.writes();
        one_writes
            && match (self.is_relaxed, other.is_relaxed) {
                (false, false) => this.overlaps(that),
                // A relaxed use is of at least one of its elements.
                (false, true) => this.covers(that),
                (true, false) => that.covers(this),
                (true, true) => false,
            }
    }

    /// Whether the earlier use can be forgotten: what conflicts with it conflicts with this one, and what comes after
    /// this one comes after both.
    fn replaces(&self, earlier: &Use) -> bool {
        let (this, that) = (&self.access, &earlier.access);
        let comes_after = self.is_in_stream_of(earlier) || self.conflicts_with(earlier);
        let is_as_strong = this.writes() || !that.writes();
        let is_as_large = match self.is_relaxed {
            false => this.covers(that),
            true => earlier.is_relaxed && this.covers(that) && that.covers(this),
        };
        comes_after && is_as_strong && is_as_large
    }

    /// The error of this use, which does not come after one in another stream.
    fn unordered(&self, other: &Use, what: String) -> Error {
        let (this, that) = (&self.access, &other.access);
        let (asked, did) = match (this.kind, that.kind) {
            (AccessKind::Read, _) => ("read", "wrote"),
            (AccessKind::Write, AccessKind::Read) => ("written", "read"),
            (AccessKind::Write, AccessKind::Write) => ("written", "wrote"),
        };
        Error::Unordered {
            what: format!("{what} ({} × {})", this.len, this.element),
            asked,
            found: format!("{} ({}) {did} it", that.by, other.line),
        }
    }
}

impl Remembered {
    /// Adds a use. If there are too many, conflicts with the oldest one are missed from now on.
    fn add(&mut self, this: Use) {
        for earlier in &mut self.latest {
            earlier.take_if(|earlier| earlier.is_done() || this.replaces(earlier));
        }
        let number = |of: &Option<Use>| of.as_ref().map_or(0, |of| of.number);
        let oldest = self.latest.iter_mut().min_by_key(|of| number(of));
        if let Some(oldest) = oldest.and_then(|oldest| oldest.replace(this)) {
            self.others.join(&lock(&oldest.timeline.before));
            let stream = Arc::downgrade(&oldest.timeline);
            self.others.add(stream, oldest.number);
        }
    }
}
