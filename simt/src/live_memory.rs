//! Global memory that is alive in this process, and which of its bytes were written.
//!
//! A kernel's pointer without a tag, such as one in a struct, is checked against it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::written::Written;

/// How many freed ranges are remembered, for messages.
const MOST_FREED: usize = 1024;
/// How many ranges of other owners are known.
const MOST_BORROWED: usize = 1 << 16;

/// What memory holds when it begins to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Every byte has a value.
    Written,
    /// No byte has a value before something writes it.
    Unwritten,
}

/// A range of global memory that lives. Dropping it ends its life, before the memory is freed.
#[derive(Debug)]
pub struct LiveMemory {
    start: usize,
}

/// A range of live memory.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    /// Which bytes were written; `None` if all were.
    pub(crate) written: Option<Arc<Written>>,
}

impl Range {
    fn end(&self) -> usize {
        self.start + self.bytes
    }

    /// Address of the last byte.
    fn last(&self) -> usize {
        self.start + self.bytes.saturating_sub(1)
    }

    #[inline]
    fn has(&self, address: usize, bytes: usize) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset <= self.bytes && bytes <= self.bytes - offset
    }
}

/// All ranges, by their start.
#[derive(Default)]
struct Known {
    /// Ranges with a [`LiveMemory`]. They do not overlap.
    owned: BTreeMap<usize, Range>,
    /// Ranges of other owners. They do not overlap each other.
    borrowed: BTreeMap<usize, Range>,
    freed: VecDeque<(usize, usize)>,
}

static KNOWN: RwLock<Known> = RwLock::new(Known {
    owned: BTreeMap::new(),
    borrowed: BTreeMap::new(),
    freed: VecDeque::new(),
});

/// Counts the changes that make a range that was found earlier wrong.
static CHANGES: AtomicU64 = AtomicU64::new(1);

fn read() -> RwLockReadGuard<'static, Known> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Changes what is known. Ranges that were found earlier are looked up again.
fn write() -> RwLockWriteGuard<'static, Known> {
    let known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    CHANGES.fetch_add(1, Ordering::Release);
    known
}

/// The last range that begins at or before an address.
fn before(ranges: &BTreeMap<usize, Range>, address: usize) -> Option<&Range> {
    ranges.range(..=address).next_back().map(|(_, range)| range)
}

impl LiveMemory {
    /// `bytes` bytes at `start` begin to live.
    pub fn new(start: usize, bytes: usize, contents: Contents) -> Self {
        let written = (contents == Contents::Unwritten).then(|| Arc::new(Written::none(bytes)));
        let range = Range {
            start,
            bytes,
            written,
        };
        let mut known = write();
        // What another owner had there has been freed. Beside it, another thread may have borrowed memory that lives.
        while bytes > 0
            && let Some(borrowed) = before(&known.borrowed, range.last())
            && start < borrowed.end()
        {
            let (first, end) = (borrowed.start, borrowed.end());
            known.borrowed.remove(&first);
            for (start, end) in [(first, start), (range.end(), end)] {
                if start < end {
                    let rest = Range {
                        start,
                        bytes: end - start,
                        written: None,
                    };
                    known.borrowed.insert(start, rest);
                }
            }
        }
        known.freed.retain(|&(freed, _)| freed != start);
        known.owned.insert(start, range);
        Self { start }
    }

    /// Says that kernels may use `bytes` bytes at `start`, which have an owner that this crate does not know.
    pub fn borrow(start: usize, bytes: usize) {
        let mut range = Range {
            start,
            bytes,
            written: None,
        };
        if bytes == 0 || find(start, bytes).is_some() {
            return;
        }
        let mut known = write();
        while let Some(other) = before(&known.borrowed, range.last())
            && range.start < other.end()
        {
            let (start, end) = (range.start.min(other.start), range.end().max(other.end()));
            let other = other.start;
            known.borrowed.remove(&other);
            range.start = start;
            range.bytes = end - start;
        }
        if known.borrowed.len() == MOST_BORROWED {
            known.borrowed.pop_first();
        }
        known.borrowed.insert(range.start, range);
    }

    /// The first of `bytes` bytes at `start` that nothing has written, counted from `start`; `None` if all have a value, or
    /// if this crate does not know the memory.
    pub fn first_unwritten(start: usize, bytes: usize) -> Option<usize> {
        let range = find(start, bytes)?;
        let offset = start - range.start;
        let first = range.written?.first_unwritten(offset, bytes)?;
        Some(first - offset)
    }

    /// Says that the host has written `bytes` bytes at `start`.
    pub fn written(start: usize, bytes: usize) {
        let Some(range) = find(start, bytes) else {
            return;
        };
        let Some(written) = range.written else {
            return;
        };
        if bytes < range.bytes {
            written.set(start - range.start, bytes);
        } else if let Some(range) = write().owned.get_mut(&range.start) {
            range.written = None;
        }
    }
}

impl Drop for LiveMemory {
    fn drop(&mut self) {
        let mut known = write();
        if let Some(range) = known.owned.remove(&self.start) {
            if known.freed.len() == MOST_FREED {
                known.freed.pop_front();
            }
            known.freed.push_back((range.start, range.bytes));
        }
    }
}

/// The live range that has these bytes.
pub(crate) fn find(address: usize, bytes: usize) -> Option<Range> {
    let known = read();
    let has = |range: &&Range| range.has(address, bytes);
    before(&known.owned, address)
        .filter(has)
        .or_else(|| before(&known.borrowed, address).filter(has))
        .cloned()
}

/// Ranges that the calling OS thread found last, and the number of changes then.
struct Found {
    changes: u64,
    ranges: Vec<Range>,
    next: usize,
}

impl Found {
    /// A kernel has a few operands.
    const MOST: usize = 6;
}

/// Calls `f` with the live range that has these bytes. It remembers the last ranges of the calling OS thread.
#[inline]
pub(crate) fn with_range<R>(
    address: usize,
    bytes: usize,
    f: impl FnOnce(&Range) -> R,
) -> Option<R> {
    thread_local! {
        static FOUND: RefCell<Found> = const {
            RefCell::new(Found { changes: 0, ranges: Vec::new(), next: 0 })
        };
    }
    FOUND.with_borrow_mut(|found| {
        let changes = CHANGES.load(Ordering::Acquire);
        if found.changes != changes {
            found.ranges.clear();
            found.next = 0;
            found.changes = changes;
        }
        if let Some(range) = found.ranges.iter().find(|range| range.has(address, bytes)) {
            return Some(f(range));
        }
        let range = find(address, bytes)?;
        let result = f(&range);
        if found.ranges.len() < Found::MOST {
            found.ranges.push(range);
        } else {
            let next = found.next;
            found.ranges[next] = range;
            found.next = (next + 1) % Found::MOST;
        }
        Some(result)
    })
}

/// What is known of an address at which nothing lives, as the end of a sentence.
pub(crate) fn describe(address: usize) -> String {
    let known = read();
    let freed = known
        .freed
        .iter()
        .rev()
        .find(|&&(start, bytes)| (start..start + bytes).contains(&address));
    if let Some(&(start, bytes)) = freed {
        return format!(
            "the buffer of {bytes} bytes that had byte {} there has been freed: keep it alive until the kernel has run",
            address - start
        );
    }
    let below = before(&known.owned, address);
    let above = known.owned.range(address..).next().map(|(_, range)| range);
    let past = below.map(|range| (address - range.end(), range.bytes, "after the end"));
    let short = above.map(|range| (range.start - address, range.bytes, "before the start"));
    match past.into_iter().chain(short).min() {
        Some((distance, bytes, side)) => format!(
            "the nearest is {distance} bytes away, {side} of a buffer of {bytes} bytes: check the index, or pass memory \
             of another owner to the kernel as an argument"
        ),
        None => "no buffer is alive: make one on the CPU's device, or pass memory of another owner to the kernel as \
                 an argument"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Addresses that no allocation has.
    const BASE: usize = 1 << 60;

    #[test]
    fn memory_is_known_until_it_is_dropped() {
        let start = BASE;
        let memory = LiveMemory::new(start, 100, Contents::Written);
        assert!(with_range(start + 96, 4, |_| ()).is_some());
        assert!(with_range(start + 97, 4, |_| ()).is_none());
        drop(memory);
        assert!(with_range(start, 4, |_| ()).is_none());
        assert!(
            describe(start + 5)
                .contains("buffer of 100 bytes that had byte 5 there has been freed")
        );
    }

    #[test]
    fn borrowed_ranges_are_joined_and_give_way_to_new_memory() {
        let start = BASE + (1 << 20);
        LiveMemory::borrow(start, 100);
        LiveMemory::borrow(start + 200, 100);
        assert!(find(start + 90, 20).is_none());
        LiveMemory::borrow(start + 90, 120);
        assert!(find(start, 300).is_some());
        let memory = LiveMemory::new(start + 50, 10, Contents::Written);
        assert!(find(start + 48, 4).is_none());
        // Another thread may have borrowed what is beside it.
        assert!(find(start, 50).is_some() && find(start + 60, 240).is_some());
        drop(memory);
        assert!(find(start + 50, 10).is_none());
    }

    #[test]
    fn unwritten_memory_becomes_written() {
        let start = BASE + (2 << 20);
        let memory = LiveMemory::new(start, 64, Contents::Unwritten);
        let is_written = |at, bytes| {
            with_range(start + at, bytes, |range| {
                range.written.as_ref().is_none_or(|it| it.all(at, bytes))
            })
        };
        assert_eq!(is_written(0, 4), Some(false));
        LiveMemory::written(start + 4, 4);
        let first = |at, bytes| LiveMemory::first_unwritten(start + at, bytes);
        assert_eq!(
            (first(0, 8), first(4, 4), first(5, 8)),
            (Some(0), None, Some(3))
        );
        assert_eq!(
            (is_written(4, 4), is_written(4, 8)),
            (Some(true), Some(false))
        );
        LiveMemory::written(start, 64);
        assert_eq!(is_written(0, 64), Some(true));
        assert!(find(start, 1).unwrap().written.is_none());
        drop(memory);
    }
}
