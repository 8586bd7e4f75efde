//! Mbarriers: barriers in shared memory whose state is the 64-bit word itself.

use std::cell::RefCell;
use std::fmt;

use super::{new_series, running_block};
use crate::context::{Block, Thread, current};
use crate::knowledge::{Meeting, Series};
use crate::shared::{Place, other_rank, shared_place};
use crate::wait::{WaitKind, yield_until};

/// Largest number of arrivals and of bytes that a barrier can count.
const LIMIT: u32 = (1 << 20) - 1;

/// Upper bits of a word that is a barrier; unwritten shared memory has others.
const TAG: u64 = 0b01;

/// The state of a barrier.
#[derive(Clone, Copy)]
struct State {
    /// Parity of the current phase.
    parity: u32,
    /// Arrivals that a phase needs.
    expected: u32,
    /// Arrivals that the current phase still lacks.
    pending: u32,
    /// Bytes announced in the current phase minus bytes that have come.
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

    /// Begins the next phase if this one has all it needs: whether it does.
    fn advance(&mut self) -> bool {
        let ends = self.pending == 0 && self.bytes == 0;
        if ends {
            self.parity ^= 1;
            self.pending = self.expected;
        }
        ends
    }
}

/// What is kept of a barrier beside its word.
struct Barrier {
    offset: u32,
    /// The thread that initialised it last, until its life ends.
    initialised_by: Option<u32>,
    /// The number of the current phase, whose parity is the phase's. It goes on when the barrier is initialised
    /// again.
    phase: u32,
    /// The phases as others know them, if they need to: once bytes are copied.
    series: Option<Series>,
    meeting: Meeting,
}

/// What is kept of all words of a block that are, or were, barriers.
#[derive(Default)]
pub(crate) struct Barriers(RefCell<Vec<Barrier>>);

impl Barriers {
    /// Calls `f` with what is kept of the barrier at an offset.
    fn with<R>(&self, offset: u32, f: impl FnOnce(&mut Barrier) -> R) -> Option<R> {
        let mut all = self.0.borrow_mut();
        all.iter_mut()
            .find(|barrier| barrier.offset == offset)
            .map(f)
    }
}

/// A word that is, or is to be, a barrier: a block that has it, and its offset there.
#[derive(Clone, Copy)]
struct Word<'a> {
    block: &'a Block,
    offset: u32,
}

impl Word<'_> {
    /// That at a shared address.
    #[track_caller]
    fn at(address: u32) -> Self {
        if let Some(rank) = other_rank(address) {
            running_block(rank);
        }
        let (block, offset) = shared_place(address, 8, 8);
        Self { block, offset }
    }

    /// As it is called in messages.
    fn place(self) -> Place {
        Place::of(self.block, self.offset)
    }

    /// Where it is in the host's memory, which has room for it there: `at` checked that.
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
                "the word at shared address {} is no mbarrier: it was not initialised, or overwritten \
                 (it holds {word:#x})",
                self.place()
            ),
        }
    }

    fn write(self, word: u64) {
        // SAFETY: see `memory`.
        unsafe { self.memory().write(word) };
    }

    /// Calls `f` with what is kept beside the word, if it is or was a barrier.
    fn with<R>(self, f: impl FnOnce(&mut Barrier) -> R) -> Option<R> {
        self.block.hopper.mbarriers.with(self.offset, f)
    }

    #[track_caller]
    fn update(self, change: impl FnOnce(&mut State)) {
        let mut state = self.read();
        change(&mut state);
        if state.advance() {
            self.with(|barrier| {
                barrier.phase += 1;
                let ended = |series| (series, barrier.phase);
                barrier.meeting.end(barrier.series.map(ended));
            });
        }
        self.write(state.to_word());
    }

    /// A thread has seen the end of a phase: it knows what those knew that arrived.
    fn learn(self, thread: &Thread) {
        self.with(|barrier| barrier.meeting.leave(thread));
    }
}

/// The phases of a barrier at which bytes are to be counted, and the number of the current one.
///
/// # Panics
/// If there is no barrier.
#[track_caller]
pub(super) fn current_phase(address: u32) -> (Series, u32) {
    let word = Word::at(address);
    word.read();
    let phase = word.with(|barrier| {
        let new = || new_series(current().block());
        (*barrier.series.get_or_insert_with(new), barrier.phase)
    });
    match phase {
        Some(phase) => phase,
        None => panic!(
            "the mbarrier at shared address {} was not initialised",
            word.place()
        ),
    }
}

/// Where the barrier is whose phases are a series of the running cluster.
pub(super) fn place_of(series: Series) -> Place {
    let cluster = current().block().all_of_cluster();
    let find = |block: &Block| {
        let all = block.hopper.mbarriers.0.borrow();
        let barrier = all.iter().find(|barrier| barrier.series == Some(series))?;
        Some(Place::of(block, barrier.offset))
    };
    // A series is made for a barrier that is there.
    cluster.iter().find_map(find).unwrap_or(Place(0))
}

/// Makes the 8 bytes at a shared address a barrier whose phases take `arrivals` arrivals each.
///
/// # Panics
/// If the number is not 1 to 1048575, on an address in another block's memory, that is no multiple of
/// 8 or not in shared memory, or outside of a kernel, as do all functions of barriers.
#[track_caller]
pub fn mbarrier_init(address: u32, arrivals: u32) {
    assert!(
        (1..=LIMIT).contains(&arrivals),
        "an mbarrier for {arrivals} arrivals: it can count 1 to {LIMIT}"
    );
    let word = own(address);
    let state = State {
        parity: 0,
        expected: arrivals,
        pending: arrivals,
        bytes: 0,
    };
    word.write(state.to_word());
    let thread = current();
    let again = word.with(|barrier| {
        barrier.initialised_by = Some(thread.linear);
        // The next even one.
        barrier.phase = (barrier.phase | 1) + 1;
    });
    if again.is_none() {
        let barriers = &word.block.hopper.mbarriers;
        barriers.0.borrow_mut().push(Barrier {
            offset: word.offset,
            initialised_by: Some(thread.linear),
            phase: 0,
            series: None,
            meeting: Meeting::default(),
        });
    }
}

/// The word at an address in the running block's memory.
#[track_caller]
fn own<'a>(address: u32) -> Word<'a> {
    assert!(
        other_rank(address).is_none(),
        "the mbarrier at shared address {}: a barrier's life begins and ends in its own block",
        Place(address)
    );
    Word::at(address)
}

/// Ends a barrier's life.
///
/// # Panics
/// If there is no barrier, or it is another block's.
#[track_caller]
pub fn mbarrier_invalidate(address: u32) {
    let word = own(address);
    word.read();
    word.write(u64::MAX);
    word.with(|barrier| barrier.initialised_by = None);
}

/// Counts one arrival.
///
/// # Panics
/// If the phase has had all its arrivals already (and lacks bytes), or there is no barrier.
#[track_caller]
pub fn mbarrier_arrive(address: u32) {
    let word = Word::at(address);
    word.update(|state| {
        assert!(
            state.pending > 0,
            "one arrival too many at the mbarrier at shared address {}: the current phase has had \
             its {} and waits for {} more bytes",
            word.place(),
            state.expected,
            state.bytes
        );
        state.pending -= 1;
        word.with(|barrier| barrier.meeting.arrive(current()));
    });
}

/// Announces bytes that will be copied in the current phase.
///
/// # Panics
/// If that is more than a barrier can count, or there is no barrier.
#[track_caller]
pub fn mbarrier_expect_tx(address: u32, bytes: u32) {
    add_bytes(address, i64::from(bytes));
}

/// Counts bytes that have been copied.
///
/// # Panics
/// If nobody can announce them any more in this phase, or there is no barrier.
#[track_caller]
pub(super) fn mbarrier_complete_tx(address: u32, bytes: u32) {
    add_bytes(address, -i64::from(bytes));
}

#[track_caller]
fn add_bytes(address: u32, bytes: i64) {
    let word = Word::at(address);
    word.update(|state| {
        let sum = i64::from(state.bytes) + bytes;
        assert!(
            sum.unsigned_abs() <= u64::from(LIMIT),
            "the mbarrier at shared address {} would expect {sum} bytes: it can count {LIMIT}",
            word.place()
        );
        assert!(
            sum >= 0 || state.pending > 0,
            "{} bytes too many were copied for the mbarrier at shared address {}: all arrivals of \
             its phase have come, and they announced fewer",
            -sum,
            word.place()
        );
        // Within 21 bits, as just checked.
        state.bytes = sum as i32;
    });
}

/// Whether the phase of the given parity has ended; if not, that was a poll: see [`polled`](crate::polled).
///
/// # Panics
/// If `parity` is not 0 or 1, or there is no barrier.
#[track_caller]
pub fn mbarrier_try_wait(address: u32, parity: u32) -> bool {
    check_parity(parity);
    let word = Word::at(address);
    let state = word.read();
    if state.parity == parity {
        crate::polled(word.memory().addr(), state.to_word(), || {
            word.read().to_word() != state.to_word()
        });
        if word.read().parity == parity {
            return false;
        }
    }
    word.learn(current());
    true
}

/// Waits until the phase of the given parity has ended.
///
/// # Panics
/// If `parity` is not 0 or 1, or there is no barrier.
#[track_caller]
pub fn mbarrier_wait(address: u32, parity: u32) {
    check_parity(parity);
    let word = Word::at(address);
    word.read();
    yield_until(
        WaitKind::Cluster,
        format_args!(
            "waits for the phase of parity {parity} of the mbarrier at shared address {}, {}",
            word.place(),
            Missing(word)
        ),
        || word.read().parity != parity,
    );
    word.learn(current());
}

#[track_caller]
fn check_parity(parity: u32) {
    assert!(
        parity < 2,
        "parity {parity} of an mbarrier's phase: parities are 0 and 1"
    );
}

/// Formats what a phase lacks when the message is written, not when the wait began.
struct Missing<'a>(Word<'a>);

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
            _ => write!(f, " and has {} bytes that nobody announced", -bytes),
        }
    }
}

/// A barrier of the block that ends with bytes that do not add up, and who initialised it.
pub(super) fn leftover(block: &Block) -> Option<(u32, String)> {
    let barriers = block.hopper.mbarriers.0.borrow();
    barriers.iter().find_map(|barrier| {
        let (offset, thread) = (barrier.offset, barrier.initialised_by?);
        let bytes = State::from_word(Word { block, offset }.bits())?.bytes;
        let what = match bytes {
            0 => return None,
            1.. => format!("still expects {bytes} bytes"),
            _ => format!("was sent {} bytes that nobody announced", -bytes),
        };
        Some((
            thread,
            format!(
                "the kernel ends while the mbarrier at shared address {offset}, which this thread \
                 initialised, {what}: the bytes announced must be those of the boxes loaded"
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
