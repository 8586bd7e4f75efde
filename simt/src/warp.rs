//! A warp: its lanes, and the exchanges of values by which they synchronise.

use std::cell::Cell;

use crate::vector_clock::{Orders, SyncClock, VectorClock};

/// Threads of a warp. The last warp of a block may have fewer.
pub const WARP_SIZE: usize = 32;

/// The exchanges of one warp.
pub(crate) struct Warp {
    /// Bit `i` is set if lane `i` exists.
    members: u32,
    arrived: Cell<u32>,
    phase: Cell<u32>,
    /// The collective that the lanes that have arrived called.
    operation: Cell<&'static str>,
    pub(crate) clock: SyncClock,
    /// Values of even and of odd phases. A lane can be one exchange ahead of the lanes that still read the values
    /// before, never two.
    values: [[Cell<u32>; WARP_SIZE]; 2],
}

impl Warp {
    pub(crate) fn new(lanes: u32) -> Self {
        Self {
            members: u32::MAX >> (WARP_SIZE as u32 - lanes),
            arrived: Cell::new(0),
            phase: Cell::new(0),
            operation: Cell::new(""),
            clock: SyncClock::default(),
            values: [const { [const { Cell::new(0) }; WARP_SIZE] }; 2],
        }
    }

    /// Bit `i` is set if lane `i` exists.
    pub(crate) fn members(&self) -> u32 {
        self.members
    }

    /// Number of the current phase.
    #[inline]
    pub(crate) fn phase(&self) -> u32 {
        self.phase.get()
    }

    /// Shows the value of a lane that calls the collective `operation`. Returns the phase.
    #[track_caller]
    pub(crate) fn arrive(
        &self,
        lane: usize,
        operation: &'static str,
        value: u32,
        orders: Orders,
        clock: &VectorClock,
    ) -> u32 {
        let phase = self.phase.get();
        self.values[phase as usize % 2][lane].set(value);
        let arrived = self.arrived.get();
        if arrived == 0 {
            self.operation.set(operation);
        } else if self.operation.get() != operation {
            panic!(
                "lane {lane} calls {operation} while lane {} of its warp waits in {}: all lanes of a warp must call \
                 the same collective",
                arrived.trailing_zeros(),
                self.operation.get()
            );
        }
        let arrived = arrived | 1 << lane;
        self.clock.release_what(orders, clock);
        if arrived == self.members {
            if orders != Orders::Nothing {
                self.clock.publish(None);
            }
            self.arrived.set(0);
            self.phase.set(phase.wrapping_add(1));
        } else {
            self.arrived.set(arrived);
        }
        phase
    }

    /// Whether a phase has ended.
    #[inline]
    pub(crate) fn has_ended(&self, phase: u32) -> bool {
        self.phase.get() != phase
    }

    /// Mask of the lanes that have not arrived in the current phase.
    pub(crate) fn missing(&self) -> u32 {
        self.members & !self.arrived.get()
    }

    /// What all lanes showed in a phase, as `lane` sees it.
    pub(crate) fn lanes(&self, phase: u32, lane: usize) -> Lanes {
        let values = &self.values[phase as usize % 2];
        Lanes {
            values: values.each_ref().map(Cell::get),
            members: self.members,
            lane: lane as u32,
        }
    }
}

/// The values that the lanes of a warp showed in one exchange.
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
