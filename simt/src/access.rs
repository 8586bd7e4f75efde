//! Accesses to shared memory, checked against the asynchronous copies that fill it.

use std::cell::Cell;

use crate::context::{Block, current, fault};
use crate::in_flight::Arrival;
use crate::races;
use crate::report::Memory;
use crate::shadow::{MemoryAccess, Readers};
use crate::shared::{SharedAddress, locate};
use crate::site::Site;
use crate::sm90::check_not_read;
use crate::timelines::Timelines;
use crate::traffic;
use crate::vector_clock::VectorClock;

/// Host address of `bytes` bytes at the shared address `address`.
///
/// An address is an offset from the start of the running block's shared memory, with or without
/// [`shared_base`](crate::shared_base) added, or an address made by [`map_shared_rank`](crate::map_shared_rank) for
/// another block of the cluster.
///
/// The memory is valid while the block runs. Other threads use it, too: read and write it through the pointer, and keep
/// no references to it across a wait.
///
/// # Panics
/// - If the range is not inside the block's shared memory.
/// - If `align` is no power of two, or `address` is not a multiple of it.
/// - If a copy to these bytes is in flight that the thread has not waited for.
/// - Outside of a kernel.
#[inline]
#[track_caller]
pub fn shared_bytes(address: u32, bytes: u32, align: u32) -> *mut u8 {
    let (block, offset) = locate_arrived(address, bytes, align);
    block.shared.at(offset)
}

/// [`shared_bytes`] for an access of the given kind, which is checked for races.
///
/// # Panics
/// As [`shared_bytes`], and if the access races with another one ([`check_races`](crate::check_races)).
#[inline]
#[track_caller]
pub fn access_shared(address: u32, bytes: u32, align: u32, kind: MemoryAccess) -> *mut u8 {
    access(address, bytes, align, kind, None)
}

/// Stores `values` at a shared address, after the checks of [`access_shared`]. Stores of the same values do not race.
///
/// # Panics
/// As [`access_shared`].
#[inline]
#[track_caller]
pub fn store_shared(address: u32, align: u32, values: &[u8]) {
    // An access has at most 16 bytes.
    let bytes = values.len() as u32;
    let to = access(address, bytes, align, MemoryAccess::Store, Some(values));
    // SAFETY: the range was checked. It is no memory of the values, which a block's shared memory is not part of.
    unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
}

/// [`access_shared`], for a store with the values that it writes.
#[inline]
#[track_caller]
fn access(
    address: u32,
    bytes: u32,
    align: u32,
    kind: MemoryAccess,
    values: Option<&[u8]>,
) -> *mut u8 {
    let (block, offset) = locate_arrived(address, bytes, align);
    let thread = current();
    thread.end_if_cancelled();
    if kind.writes() {
        check_not_read(block, offset, bytes);
    }
    let memory = block.shared.at(offset);
    let repeats = values.is_some_and(|values| {
        // SAFETY: the range was checked, and all threads that use it run on this OS thread.
        let old = unsafe { std::slice::from_raw_parts(memory, values.len()) };
        old == values
    });
    let site = Site::of(thread.line());
    let raced = races::access_shared(thread, block, offset, bytes, kind, site, repeats);
    let (address, size) = (offset as usize, bytes as usize);
    traffic::note(thread, Memory::Shared, address, size, kind, site);
    if let Err(message) = raced
        && !std::thread::panicking()
    {
        fault(thread, message);
    }
    memory
}

/// The block and the offset of bytes of shared memory that the running thread may use now.
#[inline]
#[track_caller]
fn locate_arrived<'a>(address: u32, bytes: u32, align: u32) -> (&'a Block, u32) {
    let (block, offset) = locate(address, bytes, align);
    check_arrived(
        "is used too early, or was filled too early",
        block,
        offset,
        bytes,
    );
    (block, offset)
}

/// Checks that the running thread may use these bytes of a block's shared memory. `what` happens to them, in an error
/// message.
///
/// # Panics
/// If a copy to these bytes is in flight that the thread has not waited for.
#[inline]
#[track_caller]
pub(crate) fn check_arrived(what: &'static str, block: &Block, offset: u32, bytes: u32) {
    let arrivals = block.shared.in_flight.arrivals(offset, bytes);
    if arrivals.iter().all(|word| word.get().event == 0) {
        return;
    }
    let arrived = {
        let clock = current().clock.borrow();
        arrivals.iter().all(|word| word.get().is_known_to(&clock))
    };
    if !arrived {
        Access::by_running_thread(what).check(block, offset, bytes);
    }
}

/// An access to shared memory by threads of the running block.
pub(crate) struct Access {
    /// What happens to the memory, in an error message.
    what: &'static str,
    /// Clock and index of each thread when it asked for the access. Of neighbours with one clock, the first is kept.
    threads: Vec<(VectorClock, u32)>,
    /// The last arrival that all threads knew.
    known: Cell<Arrival>,
}

impl Access {
    /// An access by these threads, each with the clock it had when it asked.
    pub(crate) fn new<'a>(
        what: &'static str,
        threads: impl IntoIterator<Item = (&'a VectorClock, u32)>,
    ) -> Self {
        let mut kept: Vec<(VectorClock, u32)> = Vec::new();
        for (clock, thread) in threads {
            if !kept.last().is_some_and(|(last, _)| last.is(clock)) {
                kept.push((clock.clone(), thread));
            }
        }
        Self {
            what,
            threads: kept,
            known: Cell::default(),
        }
    }

    /// An access by the running thread, now.
    #[track_caller]
    pub(crate) fn by_running_thread(what: &'static str) -> Self {
        let thread = current();
        Self::new(what, [(&*thread.clock.borrow(), thread.linear)])
    }

    /// Checks that the threads know all stores to these bytes, which `what` reads.
    ///
    /// # Panics
    /// If one of them does not know a store.
    #[inline]
    #[track_caller]
    pub(crate) fn check_stores(
        &self,
        (what, readers): (&str, Readers),
        block: &Block,
        offset: u32,
        bytes: u32,
    ) {
        let thread = current();
        for (clock, _) in &self.threads {
            let raced = races::read_shared(thread, clock, block, offset, bytes, (what, readers));
            if let Err(message) = raced {
                fault(thread, message);
            }
        }
    }

    /// Checks that nothing uses these bytes any more, which an asynchronous copy of the threads overwrites.
    ///
    /// # Panics
    /// If an access to them is not ordered before the copy.
    #[track_caller]
    pub(crate) fn check_overwrites(&self, block: &Block, offset: u32, bytes: u32) {
        let thread = current();
        for (clock, _) in &self.threads {
            if let Err(message) = races::overwrite_shared(thread, clock, block, offset, bytes) {
                fault(thread, message);
            }
        }
    }

    /// Checks that the threads may use these bytes of a block's shared memory.
    ///
    /// # Panics
    /// If a copy to these bytes is in flight for one of the threads.
    #[inline]
    #[track_caller]
    pub(crate) fn check(&self, block: &Block, offset: u32, bytes: u32) {
        for word in block.shared.in_flight.arrivals(offset, bytes) {
            let arrival = word.get();
            if arrival == self.known.get() {
                continue;
            }
            for (clock, thread) in &self.threads {
                if !arrival.is_known_to(clock) {
                    self.too_early(arrival, SharedAddress::of(block, offset), *thread);
                }
            }
            self.known.set(arrival);
        }
    }

    #[cold]
    #[track_caller]
    fn too_early(&self, arrival: Arrival, address: SharedAddress, thread: u32) -> ! {
        let message = format!(
            "shared memory at address {address} {}: {}",
            self.what,
            Timelines::not_known(arrival, thread)
        );
        fault(current(), message)
    }
}
