//! Asynchronous copies to shared memory, which complete with a phase of an mbarrier.

use crate::access::Access;
use crate::in_flight::Arrival;
use crate::mbarrier;
use crate::shared::locate;
use crate::sm90::check_not_read;

/// A copy to shared memory that the running thread issues.
pub(crate) struct AsyncCopy {
    arrival: Arrival,
    access: Access,
}

impl AsyncCopy {
    /// A copy whose bytes count in the current phase of the mbarrier at `barrier`.
    ///
    /// # Panics
    /// If there is no mbarrier.
    #[track_caller]
    pub(crate) fn begin(barrier: u32) -> Self {
        let (timeline, phase) = mbarrier::current_phase(barrier);
        Self {
            arrival: Arrival {
                timeline,
                event: phase + 1,
            },
            access: Access::by_running_thread("is overwritten too early"),
        }
    }

    /// Host address of bytes that the copy writes. From now on, they are in flight.
    ///
    /// # Panics
    /// As [`shared_bytes`](crate::shared_bytes), or if `wgmma` may still read the bytes.
    #[track_caller]
    pub(crate) fn to(&self, address: u32, bytes: u32, align: u32) -> *mut u8 {
        let (block, offset) = locate(address, bytes, align);
        self.access.check(block, offset, bytes);
        check_not_read(block, offset, bytes);
        self.access.check_overwrites(block, offset, bytes);
        let shared = &block.shared;
        shared.set_written(offset, bytes);
        shared
            .in_flight
            .set(shared.bytes(), offset, bytes, self.arrival);
        shared.at(offset)
    }
}
