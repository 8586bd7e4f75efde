//! The timelines of a cluster, numbered as they are made.

use std::cell::RefCell;

use crate::context::{Block, current};
use crate::shared::SharedAddress;
use crate::vector_clock::Timeline;

/// For each timeline of a cluster, the mbarrier whose phases it counts; `None` if it counts other events. Those of
/// the block with rank 0 are used.
#[derive(Default)]
pub(crate) struct Timelines(RefCell<Vec<Option<SharedAddress>>>);

impl Timelines {
    fn of_cluster(block: &Block) -> &Self {
        block.first_of_cluster().models.get_or_default()
    }

    /// A new timeline of a block's cluster.
    pub(crate) fn add(block: &Block, mbarrier: Option<SharedAddress>) -> Timeline {
        let mut all = Self::of_cluster(block).0.borrow_mut();
        all.push(mbarrier);
        Timeline(all.len() as u32 - 1)
    }

    /// The mbarrier whose phases a timeline of the running cluster counts.
    pub(crate) fn mbarrier_of(timeline: Timeline) -> SharedAddress {
        let all = Self::of_cluster(current().block()).0.borrow();
        let mbarrier = all.get(timeline.0 as usize).copied().flatten();
        // Arrivals are phases of mbarriers, whose timelines have an address.
        mbarrier.unwrap_or(SharedAddress(0))
    }
}
