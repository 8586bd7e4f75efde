//! Mbarriers: barriers in shared memory whose state is a 64-bit word there.

use std::cell::RefCell;
use std::fmt;

use crate::context::{Block, Thread, current, running_block};
use crate::shared::{SharedAddress, locate, other_rank};
use crate::shown_wait::Awaited;
use crate::suspend::{polled, wait_for};
use crate::timelines::{Events, Timelines};
use crate::vector_clock::{SyncClock, Timeline};
use crate::wait::WaitKind;

/// The most arrivals, and the most bytes, that an mbarrier can count.
const LIMIT: u32 = (1 << 20) - 1;

/// Upper two bits of an mbarrier's word. Poisoned shared memory has other bits there.
const TAG: u64 = 0b01;

/// The state of an mbarrier.
#[derive(Clone, Copy)]
struct State {
    /// Parity of the current phase.
    parity: u32,
    /// Arrivals of a phase.
    expected: u32,
    /// Arrivals that the current phase lacks.
    pending: u32,
    /// Bytes expected in the current phase minus bytes copied.
    bytes: i32,
}

impl State {
    fn to_word(self) -> u64 {
        TAG << 62
            | u64::from(self.parity) << 61
            | u64::from(self.expected) << 41
            | u64::from(self.pending) << 21
            | (self.bytes as u64 & 0x1F_FFFF)
    }

    fn from_word(word: u64) -> Option<Self> {
        (word >> 62 == TAG).then_some(Self {
            parity: (word >> 61) as u32 & 1,
            expected: (word >> 41) as u32 & LIMIT,
            pending: (word >> 21) as u32 & LIMIT,
            // The lowest 21 bits, sign extended.
            bytes: ((word << 43) as i64 >> 43) as i32,
        })
    }

    /// Begins the next phase if the current one is complete. Returns whether it was.
    fn advance(&mut self) -> bool {
        let complete = self.pending == 0 && self.bytes == 0;
        if complete {
            self.parity ^= 1;
            self.pending = self.expected;
        }
        complete
    }
}

/// What the model keeps of an mbarrier beside its word.
struct Record {
    offset: u32,
    /// The thread that initialised the mbarrier last; `None` once it is invalidated.
    initialised_by: Option<u32>,
    /// Number of the current phase; its lowest bit is the phase's parity. It goes on counting when the mbarrier is
    /// initialised again.
    phase: u32,
    /// The timeline of the phases, made at the first copy that counts here.
    timeline: Option<Timeline>,
    clock: SyncClock,
}

/// The records of all words of a block that are or were mbarriers.
#[derive(Default)]
struct Records(RefCell<Vec<Record>>);

impl Records {
    fn of(block: &Block) -> &Self {
        block.models.get_or_default()
    }
}

/// A word that is, or is to be, an mbarrier: the block in whose memory it is, and its offset there.
#[derive(Clone, Copy)]
struct Mbarrier<'a> {
    block: &'a Block,
    offset: u32,
}

impl Mbarrier<'_> {
    /// The word at a shared address.
    #[track_caller]
    fn at(address: u32) -> Self {
        if let Some(rank) = other_rank(address) {
            running_block(rank);
        }
        let (block, offset) = locate(address, 8, 8);
        Self { block, offset }
    }

    /// The word's address, for messages.
    fn address(self) -> SharedAddress {
        SharedAddress::of(self.block, self.offset)
    }

    /// The word's host address. `at` checked that there are 8 aligned bytes.
    fn memory(self) -> *mut u64 {
        self.block.shared.at(self.offset).cast()
    }

    fn bits(self) -> u64 {
        // SAFETY: see `memory`.
        unsafe { self.memory().read() }
    }

    #[track_caller]
    fn read(self) -> State {
        let word = self.bits();
        match State::from_word(word) {
            Some(state) => state,
            None => panic!(
                "the word at shared address {} is not an mbarrier (it holds {word:#x}): initialise it before use, \
                 and write nothing over it",
                self.address()
            ),
        }
    }

    fn write(self, word: u64) {
        self.block.shared.set_written(self.offset, 8);
        // SAFETY: see `memory`.
        unsafe { self.memory().write(word) };
    }

    /// Calls `f` with the word's record, if it is or was an mbarrier.
    fn with_record<R>(self, f: impl FnOnce(&mut Record) -> R) -> Option<R> {
        let mut all = Records::of(self.block).0.borrow_mut();
        all.iter_mut()
            .find(|record| record.offset == self.offset)
            .map(f)
    }

    #[track_caller]
    fn update(self, change: impl FnOnce(&mut State)) {
        let mut state = self.read();
        change(&mut state);
        if state.advance() {
            self.with_record(|record| {
                record.phase += 1;
                let completed = record.timeline.map(|timeline| (timeline, record.phase));
                record.clock.publish(completed);
            });
        }
        self.write(state.to_word());
    }

    /// To be called when a thread has seen that a phase ended. It acquires the clocks of the threads that arrived.
    fn acquire(self, thread: &Thread) {
        self.with_record(|record| thread.acquire(&record.clock));
    }
}

/// The timeline of the phases of the mbarrier at an address, and the number of the current phase.
///
/// # Panics
/// If there is no mbarrier.
#[track_caller]
pub(crate) fn current_phase(address: u32) -> (Timeline, u32) {
    let mbarrier = Mbarrier::at(address);
    mbarrier.read();
    let phase = mbarrier.with_record(|record| {
        let new = || Timelines::add(mbarrier.block, Events::MbarrierPhases(mbarrier.address()));
        (*record.timeline.get_or_insert_with(new), record.phase)
    });
    match phase {
        Some(phase) => phase,
        None => panic!(
            "the mbarrier at shared address {} was not initialised: initialise it before a copy counts there",
            mbarrier.address()
        ),
    }
}

/// Initialises the 8 bytes at a shared address as an mbarrier whose phases take `arrivals` arrivals each.
///
/// # Panics
/// If `arrivals` is not 1 to 1048575, or if the mbarrier is in another block's memory. As all functions of mbarriers:
/// if the address is not a multiple of 8 or not in shared memory, or outside of a kernel.
#[track_caller]
pub fn mbarrier_init(address: u32, arrivals: u32) {
    assert!(
        (1..=LIMIT).contains(&arrivals),
        "an mbarrier is initialised for {arrivals} arrivals: it can count 1 to {LIMIT}"
    );
    let mbarrier = own(address);
    let state = State {
        parity: 0,
        expected: arrivals,
        pending: arrivals,
        bytes: 0,
    };
    mbarrier.write(state.to_word());
    let thread = current();
    let again = mbarrier.with_record(|record| {
        record.initialised_by = Some(thread.linear);
        // The next even number: the parity of a new mbarrier is 0.
        record.phase = (record.phase | 1) + 1;
    });
    if again.is_none() {
        Records::of(mbarrier.block).0.borrow_mut().push(Record {
            offset: mbarrier.offset,
            initialised_by: Some(thread.linear),
            phase: 0,
            timeline: None,
            clock: SyncClock::default(),
        });
    }
}

/// The word at an address in the running block's memory.
#[track_caller]
fn own<'a>(address: u32) -> Mbarrier<'a> {
    assert!(
        other_rank(address).is_none(),
        "the mbarrier at shared address {}: a block initialises and invalidates only mbarriers of its own",
        SharedAddress(address)
    );
    Mbarrier::at(address)
}

/// Invalidates the mbarrier at a shared address, so that its bytes can be used otherwise.
///
/// # Panics
/// If there is no mbarrier, or it is in another block's memory.
#[track_caller]
pub fn mbarrier_invalidate(address: u32) {
    let mbarrier = own(address);
    mbarrier.read();
    mbarrier.write(u64::MAX);
    mbarrier.with_record(|record| record.initialised_by = None);
}

/// Counts one arrival.
///
/// # Panics
/// If the phase has had all its arrivals and still waits for bytes, or if there is no mbarrier.
#[track_caller]
pub fn mbarrier_arrive(address: u32) {
    let mbarrier = Mbarrier::at(address);
    mbarrier.update(|state| {
        assert!(
            state.pending > 0,
            "one arrival too many at the mbarrier at shared address {}: the current phase has had its {} arrivals and \
             waits for {} more bytes; wait for the phase before the next arrival, or initialise the mbarrier for more \
             arrivals",
            mbarrier.address(),
            state.expected,
            state.bytes
        );
        state.pending -= 1;
        mbarrier.with_record(|record| record.clock.release(&current().clock.borrow()));
    });
}

/// Adds to the bytes that the current phase expects from copies.
///
/// # Panics
/// If that is more than an mbarrier can count, or if there is no mbarrier.
#[track_caller]
pub fn mbarrier_expect_tx(address: u32, bytes: u32) {
    add_bytes(address, i64::from(bytes));
}

/// Counts bytes that a copy has written.
///
/// # Panics
/// If the phase can no longer expect these bytes, because all its arrivals have come, or if there is no mbarrier.
#[track_caller]
pub(crate) fn mbarrier_complete_tx(address: u32, bytes: u32) {
    add_bytes(address, -i64::from(bytes));
}

#[track_caller]
fn add_bytes(address: u32, bytes: i64) {
    let mbarrier = Mbarrier::at(address);
    mbarrier.update(|state| {
        let sum = i64::from(state.bytes) + bytes;
        assert!(
            sum.unsigned_abs() <= u64::from(LIMIT),
            "the mbarrier at shared address {} would expect {sum} bytes: it counts at most {LIMIT}; use several \
             mbarriers",
            mbarrier.address()
        );
        assert!(
            sum >= 0 || state.pending > 0,
            "{} bytes too many were copied for the mbarrier at shared address {}: all arrivals of its phase have come, \
             and they announced fewer; announce the bytes of all copies before the last arrival",
            -sum,
            mbarrier.address()
        );
        // Within 21 bits, as just checked.
        state.bytes = sum as i32;
    });
}

/// Whether the phase of the given parity has ended. A call that returns false counts as a poll: see
/// [`polled`](crate::polled).
///
/// # Panics
/// If `parity` is not 0 or 1, or if there is no mbarrier.
#[track_caller]
pub fn mbarrier_try_wait(address: u32, parity: u32) -> bool {
    check_parity(parity);
    let mbarrier = Mbarrier::at(address);
    let state = mbarrier.read();
    if state.parity == parity {
        polled(mbarrier.memory().addr(), state.to_word(), || {
            mbarrier.read().to_word() != state.to_word()
        });
        if mbarrier.read().parity == parity {
            return false;
        }
    }
    mbarrier.acquire(current());
    true
}

/// Waits until the phase of the given parity has ended.
///
/// # Panics
/// If `parity` is not 0 or 1, or if there is no mbarrier.
#[track_caller]
pub fn mbarrier_wait(address: u32, parity: u32) {
    check_parity(parity);
    let mbarrier = Mbarrier::at(address);
    mbarrier.read();
    wait_for(
        WaitKind::Cluster,
        Awaited::Mbarrier { address, parity },
        format_args!(
            "waits for the phase of parity {parity} of the mbarrier at shared address {}, {}",
            mbarrier.address(),
            Missing(mbarrier)
        ),
        || mbarrier.read().parity != parity,
    );
    mbarrier.acquire(current());
}

#[track_caller]
fn check_parity(parity: u32) {
    assert!(
        parity < 2,
        "an mbarrier's phase of parity {parity} is waited for: parities are 0 and 1"
    );
}

/// What a phase lacks when the message is written, not when the wait begins.
struct Missing<'a>(Mbarrier<'a>);

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State {
            expected,
            pending,
            bytes,
            ..
        } = self.0.read();
        write!(f, "which lacks {pending} of {expected} arrivals")?;
        match bytes {
            0 => Ok(()),
            1.. => write!(f, " and {bytes} bytes"),
            _ => write!(f, " and has {} bytes that no expect_tx announced", -bytes),
        }
    }
}

/// A message about an mbarrier of a block that has ended whose byte counts do not add up, and the thread that
/// initialised it.
pub(crate) fn unbalanced(block: &Block) -> Option<(u32, String)> {
    let records = block.models.get::<Records>()?.0.borrow();
    records.iter().find_map(|record| {
        let (offset, thread) = (record.offset, record.initialised_by?);
        let bytes = State::from_word(Mbarrier { block, offset }.bits())?.bytes;
        let what = match bytes {
            0 => return None,
            1.. => format!("still expects {bytes} bytes"),
            _ => format!("was sent {} bytes that no expect_tx announced", -bytes),
        };
        Some((
            thread,
            format!(
                "the kernel ends while the mbarrier at shared address {offset}, which this thread initialised, \
                 {what}: announce exactly the bytes of the boxes that are loaded"
            ),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_state() {
        for bytes in [0, 1, -1, LIMIT as i32, -(LIMIT as i32)] {
            let state = State {
                parity: 1,
                expected: LIMIT,
                pending: 12345,
                bytes,
            };
            let back = State::from_word(state.to_word()).unwrap();
            assert_eq!(
                (back.parity, back.expected, back.pending, back.bytes),
                (1, LIMIT, 12345, bytes)
            );
        }
        assert!(State::from_word(u64::MAX).is_none());
        assert!(State::from_word(0).is_none());
    }
}
