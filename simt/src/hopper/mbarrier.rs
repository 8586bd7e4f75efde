//! Mbarriers: barriers in shared memory whose state is the 64-bit word itself.

use std::cell::RefCell;
use std::fmt;

use super::running_block;
use crate::context::{Block, current};
use crate::shared::{offset_of, other_rank, shared_bytes};
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

    /// Begins the next phase if this one has all it needs.
    fn advance(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.parity ^= 1;
            self.pending = self.expected;
        }
    }
}

/// The barriers of a block: the offset of each, and the thread that initialised it.
#[derive(Default)]
pub(crate) struct Alive(RefCell<Vec<(u32, u32)>>);

#[track_caller]
fn word(address: u32) -> *mut u64 {
    if let Some(rank) = other_rank(address) {
        running_block(rank);
    }
    shared_bytes(address, 8, 8).cast()
}

#[track_caller]
fn read(address: u32) -> State {
    // SAFETY: `word` checked the address.
    let word = unsafe { word(address).read() };
    match State::from_word(word) {
        Some(state) => state,
        None => panic!(
            "the word at shared address {} is no mbarrier: it was not initialised, or overwritten \
             (it holds {word:#x})",
            Place(address)
        ),
    }
}

#[track_caller]
fn update(address: u32, change: impl FnOnce(&mut State)) {
    let mut state = read(address);
    change(&mut state);
    state.advance();
    // SAFETY: `word` checked the address.
    unsafe { word(address).write(state.to_word()) };
}

/// A shared address in a message: the offset, and whose memory it is if not the running block's.
struct Place(u32);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = offset_of(self.0);
        match other_rank(self.0) {
            None => write!(f, "{offset}"),
            Some(rank) => write!(f, "{offset} of block {rank} of the cluster"),
        }
    }
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
    check_own(address);
    let state = State {
        parity: 0,
        expected: arrivals,
        pending: arrivals,
        bytes: 0,
    };
    // SAFETY: `word` checks the address.
    unsafe { word(address).write(state.to_word()) };
    let thread = current();
    let mut alive = thread.block().hopper.mbarriers.0.borrow_mut();
    alive.retain(|&(other, _)| other != offset_of(address));
    alive.push((offset_of(address), thread.linear));
}

#[track_caller]
fn check_own(address: u32) {
    assert!(
        other_rank(address).is_none(),
        "the mbarrier at shared address {}: a barrier's life begins and ends in its own block",
        Place(address)
    );
}

/// Ends a barrier's life.
///
/// # Panics
/// If there is no barrier, or it is another block's.
#[track_caller]
pub fn mbarrier_invalidate(address: u32) {
    check_own(address);
    read(address);
    // SAFETY: `word` checks the address.
    unsafe { word(address).write(u64::MAX) };
    let block = current().block();
    block
        .hopper
        .mbarriers
        .0
        .borrow_mut()
        .retain(|&(other, _)| other != offset_of(address));
}

/// Counts one arrival.
///
/// # Panics
/// If the phase has had all its arrivals already (and lacks bytes), or there is no barrier.
#[track_caller]
pub fn mbarrier_arrive(address: u32) {
    update(address, |state| {
        assert!(
            state.pending > 0,
            "one arrival too many at the mbarrier at shared address {}: the current phase has had \
             its {} and waits for {} more bytes",
            Place(address),
            state.expected,
            state.bytes
        );
        state.pending -= 1;
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
pub fn mbarrier_complete_tx(address: u32, bytes: u32) {
    add_bytes(address, -i64::from(bytes));
}

#[track_caller]
fn add_bytes(address: u32, bytes: i64) {
    update(address, |state| {
        let sum = i64::from(state.bytes) + bytes;
        assert!(
            sum.unsigned_abs() <= u64::from(LIMIT),
            "the mbarrier at shared address {} would expect {sum} bytes: it can count {LIMIT}",
            Place(address)
        );
        assert!(
            sum >= 0 || state.pending > 0,
            "{} bytes too many were copied for the mbarrier at shared address {}: all arrivals of \
             its phase have come, and they announced fewer",
            -sum,
            Place(address)
        );
        // Within 21 bits, as just checked.
        state.bytes = sum as i32;
    });
}

/// Whether the phase of the given parity has ended; if not, other threads get a turn first.
///
/// # Panics
/// If `parity` is not 0 or 1, or there is no barrier.
#[track_caller]
pub fn mbarrier_try_wait(address: u32, parity: u32) -> bool {
    check_parity(parity);
    let state = read(address);
    if state.parity != parity {
        return true;
    }
    let host = word(address);
    crate::polled(host.addr(), state.to_word(), || {
        // SAFETY: the address was checked, and shared memory outlives the thread.
        unsafe { host.read() != state.to_word() }
    });
    read(address).parity != parity
}

/// Waits until the phase of the given parity has ended.
///
/// # Panics
/// If `parity` is not 0 or 1, or there is no barrier.
#[track_caller]
pub fn mbarrier_wait(address: u32, parity: u32) {
    check_parity(parity);
    read(address);
    yield_until(
        WaitKind::Cluster,
        format_args!(
            "waits for the phase of parity {parity} of the mbarrier at shared address {}, {}",
            Place(address),
            Missing(address)
        ),
        || read(address).parity != parity,
    );
}

#[track_caller]
fn check_parity(parity: u32) {
    assert!(
        parity < 2,
        "parity {parity} of an mbarrier's phase: parities are 0 and 1"
    );
}

/// Formats what a phase lacks when the message is written, not when the wait began.
struct Missing(u32);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State {
            expected,
            pending,
            bytes,
            ..
        } = read(self.0);
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
    let alive = block.hopper.mbarriers.0.borrow();
    alive.iter().find_map(|&(offset, thread)| {
        // SAFETY: the offset was checked when the barrier was initialised.
        let word = unsafe { block.shared.at(offset).cast::<u64>().read() };
        let bytes = State::from_word(word)?.bytes;
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
