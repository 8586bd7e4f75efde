//! Asynchronous copies to shared memory, which complete with a phase of an mbarrier.

use super::{mbarrier, wgmma};
use crate::access::{Access, thread_in_message};
use crate::context::current;
use crate::in_flight::Arrival;
use crate::shared::{SharedAddress, locate};

/// A copy to shared memory that the running thread issues.
pub(super) struct AsyncCopy {
    arrival: Arrival,
    access: Access,
}

impl AsyncCopy {
    /// A copy whose bytes count in the current phase of the mbarrier at `barrier`.
    ///
    /// # Panics
    /// If there is no mbarrier.
    #[track_caller]
    pub(super) fn begin(barrier: u32) -> Self {
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
    pub(super) fn to(&self, address: u32, bytes: u32, align: u32) -> *mut u8 {
        let (block, offset) = locate(address, bytes, align);
        self.access.check(block, offset, bytes);
        let thread = current();
        if let Some(warpgroup) = wgmma::unknown_reader(block, offset, bytes, &thread.clock.borrow())
        {
            panic!(
                "shared memory at address {} is overwritten too early, or was read too early: warpgroup {warpgroup} \
                 of its block has read it by wgmma, and {} has not synchronised since with a thread that waited for \
                 these products; a consumer waits until its stage is full, waits for the products, and releases the \
                 stage, and the producer waits for that release",
                SharedAddress::of(block, offset),
                thread_in_message(thread.linear)
            );
        }
        let shared = &block.shared;
        shared
            .in_flight
            .set(shared.bytes(), offset, bytes, self.arrival);
        shared.at(offset)
    }
}
