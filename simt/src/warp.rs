//! Warp collectives: all lanes of a warp show each other a value.

use std::cell::Cell;
use std::fmt;

use crate::context::current;
use crate::knowledge::Meeting;
use crate::wait::{WaitKind, yield_until};

/// Threads a warp has; the last warp of a block may have fewer.
pub const WARP_SIZE: usize = 32;

/// One warp's meeting place.
pub(crate) struct Warp {
    /// Bit per lane that exists.
    members: u32,
    arrived: Cell<u32>,
    phase: Cell<u32>,
    /// What the lanes that have arrived are doing.
    operation: Cell<&'static str>,
    meeting: Meeting,
    /// Two sets of values: a lane can be one exchange ahead of those that still read the last one,
    /// never two.
    values: [[Cell<u32>; WARP_SIZE]; 2],
}

impl Warp {
    pub(crate) fn new(lanes: u32) -> Self {
        Self {
            members: u32::MAX >> (WARP_SIZE as u32 - lanes),
            arrived: Cell::new(0),
            phase: Cell::new(0),
            operation: Cell::new(""),
            meeting: Meeting::default(),
            values: [const { [const { Cell::new(0) }; WARP_SIZE] }; 2],
        }
    }
}

/// What the lanes of a warp showed each other in one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    values: [u32; WARP_SIZE],
    members: u32,
    lane: u32,
}

impl Lanes {
    /// The value of a lane; `None` if the warp has no such lane.
    #[inline]
    pub fn get(&self, lane: u32) -> Option<u32> {
        (lane < WARP_SIZE as u32 && self.members >> lane & 1 == 1)
            .then(|| self.values[lane as usize])
    }

    /// Bit `i` is set if lane `i` exists.
    #[inline]
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Bit `i` is set if lane `i` exists and showed a value other than zero.
    #[inline]
    pub fn non_zero(&self) -> u32 {
        (0..WARP_SIZE as u32)
            .filter(|&lane| self.get(lane).is_some_and(|value| value != 0))
            .fold(0, |mask, lane| mask | 1 << lane)
    }

    /// The calling lane.
    #[inline]
    pub fn lane(&self) -> u32 {
        self.lane
    }
}

/// Shows `value` to the other lanes of the warp and returns what they all showed, once all have
/// called this.
///
/// `operation` names the collective (such as `shfl`), so that lanes that meet in different ones are
/// told apart.
///
/// # Panics
/// Outside of a kernel, or if lanes that are already there called another operation.
#[track_caller]
pub fn warp_exchange(operation: &'static str, value: u32) -> Lanes {
    let thread = current();
    let warp = thread.warp();
    let lane = thread.lane();
    let phase = warp.phase.get();
    let values = &warp.values[phase as usize % 2];
    values[lane].set(value);
    let arrived = warp.arrived.get();
    if arrived == 0 {
        warp.operation.set(operation);
    } else if warp.operation.get() != operation {
        panic!(
            "lane {lane} calls {operation} while lane {} of its warp waits in {}: all lanes must call the same",
            arrived.trailing_zeros(),
            warp.operation.get()
        );
    }
    let arrived = arrived | 1 << lane;
    warp.meeting.arrive(thread);
    if arrived == warp.members {
        warp.meeting.end(None);
        warp.arrived.set(0);
        warp.phase.set(phase.wrapping_add(1));
    } else {
        warp.arrived.set(arrived);
        let missing = || warp.members & !warp.arrived.get();
        yield_until(
            WaitKind::Cluster,
            format_args!(
                "waits in {operation} for lanes of its warp (mask {})",
                // As it is when the message is written, not when the wait began.
                fmt::from_fn(|f| write!(f, "{:#010x}", missing()))
            ),
            || warp.phase.get() != phase,
        );
    }
    warp.meeting.leave(thread);
    Lanes {
        values: values.each_ref().map(Cell::get),
        members: warp.members,
        lane: lane as u32,
    }
}

/// Waits until all lanes of the warp have called it.
///
/// # Panics
/// As for [`warp_exchange`].
#[inline]
#[track_caller]
pub fn sync_warp() {
    warp_exchange("sync_warp", 0);
}
