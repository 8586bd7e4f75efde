//! Races of the running thread with accesses before: two accesses to the same bytes that nothing orders, of which one
//! writes.
//!
//! Threads take turns on the CPU, so a race here gives no wrong value. On a GPU it can. Accesses are ordered by what
//! orders them there: barriers, mbarriers, `sync_warp`, and atomic operations with acquire and release ordering or
//! fences. A shuffle or a vote orders nothing.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::context::{Block, Thread};
use crate::error::Index;
use crate::shadow::{Accessor, MemoryAccess, Race, Readers, words};
use crate::site::Site;
use crate::unwritten::forget_reads;
use crate::vector_clock::VectorClock;
use crate::warp::WARP_SIZE;

/// Environment variable that turns the search for races on (1) or off (0).
const VARIABLE: &str = "CUTLET_SIMT_RACES";

/// Whether launches look for races: 0 not decided, 1 no, 2 yes.
static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Turns the search for races on or off, for later launches of the whole process.
///
/// It is on in programs with debug assertions, as tests have them, and off in others. The environment variable
/// `CUTLET_SIMT_RACES` (1 or 0) decides otherwise.
pub fn check_races(on: bool) {
    CHOICE.store(1 + u8::from(on), Ordering::Relaxed);
}

/// Whether a launch that begins now looks for races.
pub fn checks_races() -> bool {
    if CHOICE.load(Ordering::Relaxed) == 0 {
        let wanted = match std::env::var(VARIABLE).as_deref() {
            Ok("0") => false,
            Ok("1") => true,
            _ => cfg!(debug_assertions),
        };
        // A call of `check_races` meanwhile decides.
        let choice = 1 + u8::from(wanted);
        let _ = CHOICE.compare_exchange(0, choice, Ordering::Relaxed, Ordering::Relaxed);
    }
    CHOICE.load(Ordering::Relaxed) == 2
}

/// Notes an access of the running thread to shared memory of a block of its cluster. The error says what it races with.
/// A store that repeats what is there does not race with other stores.
#[inline]
pub(crate) fn access_shared(
    thread: &Thread,
    block: &Block,
    offset: u32,
    bytes: u32,
    kind: MemoryAccess,
    site: Site,
    repeats: bool,
) -> Result<(), String> {
    let clock = thread.clock.borrow();
    let Some(by) = Accessor::new(thread.block().cluster_number, &clock, site) else {
        return Ok(());
    };
    let mut shadow = block.shared.shadow();
    for (word, mask) in words(offset as usize..(offset + bytes) as usize) {
        let word_shadow = shadow[word].of_cluster(by.cluster);
        if let Err(race) = word_shadow.access(&by, kind, mask, repeats) {
            let what = format!("{} of {bytes} bytes", kind.name());
            return Err(in_shared(thread, block, word as u32 * 4, &what, race));
        }
    }
    Ok(())
}

/// Checks that an asynchronous copy, issued by a thread with a clock, overwrites nothing too early. From now on the
/// bytes are those of the copy, whose arrival is followed elsewhere.
pub(crate) fn overwrite_shared(
    thread: &Thread,
    clock: &VectorClock,
    block: &Block,
    offset: u32,
    bytes: u32,
) -> Result<(), String> {
    let Some(by) = Accessor::new(thread.block().cluster_number, clock, Site::default()) else {
        return Ok(());
    };
    let mut shadow = block.shared.shadow();
    for (word, mask) in words(offset as usize..(offset + bytes) as usize) {
        let word_shadow = shadow[word].of_cluster(by.cluster);
        if let Err(race) = word_shadow.check(&by, MemoryAccess::Store, mask) {
            let what = "an asynchronous copy";
            return Err(in_shared(thread, block, word as u32 * 4, what, race));
        }
        *word_shadow = Default::default();
    }
    Ok(())
}

/// Checks that the readers with this clock know the stores to these bytes. `what` reads them, in an error message.
pub(crate) fn read_shared(
    thread: &Thread,
    clock: &VectorClock,
    block: &Block,
    offset: u32,
    bytes: u32,
    (what, readers): (&str, Readers),
) -> Result<(), String> {
    if clock.epoch().is_none() {
        return Ok(());
    }
    let cluster = thread.block().cluster_number;
    let shadow = block.shared.shadow();
    for (word, mask) in words(offset as usize..(offset + bytes) as usize) {
        if let Some(race) = shadow[word].unknown_store(cluster, mask, clock, readers) {
            return Err(in_shared(thread, block, word as u32 * 4, what, race));
        }
    }
    Ok(())
}

#[cold]
fn in_shared(thread: &Thread, block: &Block, offset: u32, what: &str, race: Race) -> String {
    forget_reads(thread);
    message(thread, what, &shared_place(thread, block, offset), race)
}

/// An offset in the shared memory of a block of the running cluster, in a message.
pub(crate) fn shared_place(thread: &Thread, block: &Block, offset: u32) -> String {
    if block.rank == thread.block().rank {
        format!("shared memory at offset {offset}")
    } else {
        format!(
            "shared memory of block {} of the cluster at offset {offset}",
            block.rank
        )
    }
}

/// Says which two accesses race, and how to order them.
#[cold]
pub(crate) fn message(thread: &Thread, what: &str, place: &str, race: Race) -> String {
    let own = thread.block();
    let dims = &own.dims;
    let threads = dims.threads();
    let (rank, linear) = (
        u32::from(race.thread) / threads,
        u32::from(race.thread) % threads,
    );
    let other_block = dims.block_idx(race.cluster.into(), rank);
    let of_block = if other_block == own.idx {
        String::new()
    } else {
        format!(" of block {}", Index(other_block))
    };
    let warp = |linear: u32| linear / WARP_SIZE as u32;
    let advice = if other_block == own.idx && warp(linear) == warp(thread.linear) {
        "call sync_warp or sync_threads between them"
    } else if other_block == own.idx {
        "call sync_threads between them"
    } else if race.cluster == own.cluster_number as u32 {
        "let the cluster's blocks meet at a barrier between them"
    } else {
        "blocks run in any order, so give each its own elements, use atomic operations, or pass data by atomic_store \
         and atomic_load"
    };
    format!(
        "{what} races: {place} has {} by thread {}{of_block} at {}, and nothing orders the two accesses; {advice}",
        race.earlier.name(),
        Index(dims.thread_idx(linear)),
        race.site,
    )
}
