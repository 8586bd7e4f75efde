//! The warps of a block. A block with fewer has more shared memory for each: two blocks fit into the 99 KB that most GPUs
//! since Ampere have for one.

use cutlet_device::collective::{StageCount, Stages};

/// Stages of a warp. While one is multiplied, the others arrive.
pub(super) const STAGES: u32 = 3;

/// The most warps of a block.
pub(super) const MOST_WARPS: u32 = 4;

/// How many warps a block has: as [`Stages`], a stage for each. Each warp has the tiles of keys whose numbers leave the
/// same remainder.
pub trait Warps: StageCount {
    /// The number.
    const WARPS: u32 = Self::STAGES as u32;
    /// The stages of all warps.
    type Stages: StageCount;
}

impl Warps for Stages<2> {
    type Stages = Stages<6>;
}

impl Warps for Stages<4> {
    type Stages = Stages<12>;
}

const _: () = assert!(<Stages<2> as Warps>::Stages::STAGES as u32 == 2 * STAGES);
const _: () = assert!(<Stages<4> as Warps>::Stages::STAGES as u32 == 4 * STAGES);
