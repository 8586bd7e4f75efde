//! The timelines of a cluster, numbered as they are made.

use std::cell::RefCell;

use crate::context::{Block, current, thread_in_message};
use crate::in_flight::Arrival;
use crate::shared::SharedAddress;
use crate::vector_clock::Timeline;

/// What the events of a timeline are.
#[derive(Clone, Copy)]
pub(crate) enum Events {
    /// The phases of the mbarrier at a shared address.
    MbarrierPhases(SharedAddress),
    /// The `cp.async` groups of a thread.
    CopyGroups {
        /// The thread's block.
        rank: u32,
        /// The thread's index in its block.
        thread: u32,
    },
    /// The `wgmma` groups of a warpgroup. No copy arrives by them.
    WgmmaGroups,
}

/// The events of each timeline of a cluster. Those of the block with rank 0 are used.
#[derive(Default)]
pub(crate) struct Timelines(RefCell<Vec<Events>>);

impl Timelines {
    fn of_cluster(block: &Block) -> &Self {
        block.first_of_cluster().models.get_or_default()
    }

    /// A new timeline of a block's cluster.
    pub(crate) fn add(block: &Block, events: Events) -> Timeline {
        let mut all = Self::of_cluster(block).0.borrow_mut();
        all.push(events);
        Timeline(all.len() as u32 - 1)
    }

    /// Says with which event of the running cluster a copy arrives, that `thread` of the running block does not know of
    /// it, and what to do.
    pub(crate) fn not_known(arrival: Arrival, thread: u32) -> String {
        let block = current().block();
        let user = thread_in_message(block, thread);
        // Events are counted from 1. Phases and groups are counted from 0.
        let number = arrival.event - 1;
        let all = Self::of_cluster(block).0.borrow();
        match all.get(arrival.timeline.0 as usize) {
            Some(Events::MbarrierPhases(mbarrier)) => format!(
                "the bytes on their way there count in phase {number} of the mbarrier at shared address {mbarrier}, \
                 and {user} has not waited for the end of that phase (parity {}), nor synchronised with a thread that \
                 has: wait for the phase before the access",
                number % 2
            ),
            Some(&Events::CopyGroups {
                rank,
                thread: issuer,
            }) if (rank, issuer) == (block.rank, thread) => format!(
                "{user} copies to it by cp.async in its group {number} (counted from 0), and has not waited for that \
                 group: commit the group, and wait for it by cp_async_wait before the access"
            ),
            Some(&Events::CopyGroups {
                rank,
                thread: issuer,
            }) => format!(
                "{} copies to it by cp.async in its group {number} (counted from 0), and {user} has not synchronised \
                 with a thread that knows the group to be complete: let the issuing thread wait for the group by \
                 cp_async_wait, and let the threads meet at a barrier before the access",
                thread_in_message(&block.all_of_cluster()[rank as usize], issuer),
            ),
            // No copy arrives with other events.
            Some(Events::WgmmaGroups) | None => String::new(),
        }
    }
}
