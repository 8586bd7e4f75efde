//! Accesses to shared memory, checked against the asynchronous copies that fill it.

use std::cell::Cell;

use crate::context::{Block, current, fault};
use crate::in_flight::Arrival;
use crate::races;
use crate::shadow::Readers;
use crate::shared::{SharedAddress, locate};
use crate::timelines::Timelines;
use crate::unwritten::forget_reads;
use crate::vector_clock::VectorClock;

/// Host address of `bytes` bytes at the shared address `address`.
///
/// An address is an offset from the start of the running block's shared memory, with or without
/// [`shared_base`](crate::shared_base) added, or an address made by [`map_shared_rank`](crate::map_shared_rank) for
/// another block of the cluster.
///
/// The bytes count as written from now on. The memory is valid while the block runs. Other threads use it, too: read
/// and write it through the pointer, and keep no references to it across a wait.
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
    block.shared.set_written(offset, bytes);
    block.shared.at(offset)
}

/// The block and the offset of bytes of shared memory that the running thread may use now.
#[inline]
#[track_caller]
pub(crate) fn locate_arrived<'a>(address: u32, bytes: u32, align: u32) -> (&'a Block, u32) {
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
        forget_reads(current());
        let message = format!(
            "shared memory at address {address} {}: {}",
            self.what,
            Timelines::not_known(arrival, thread)
        );
        fault(current(), message)
    }
}
