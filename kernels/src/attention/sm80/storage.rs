//! What a block keeps in shared memory.

use cutlet_device::SharedStorage;
use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
use cutlet_layout_core::L;

use crate::attention::element::Element;

/// Warps of a block.
pub const WARPS: usize = 4;
/// Keys of a block of keys.
pub const KEYS: u32 = 64;

/// Keys or values of a block, and 64 of their features, which a line of 128 bytes holds.
pub(super) type TileOfKeys = L!((64, 64):(1@0, 1@1));
/// The stages of such tiles.
pub(super) type Ring<T, const STAGES: usize> =
    TileRing<T, OperandLayout<T, KMajor, 64, 64, 128>, SwizzleSpan<T, 128>, Stages<STAGES>>;
/// Tiles of 16 queries and 64 of their features, one for each warp.
pub(super) type TilesOfWarps<T> =
    TileRing<T, OperandLayout<T, KMajor, 16, 64, 128>, SwizzleSpan<T, 128>, Stages<WARPS>>;

/// What a block keeps in shared memory. Heads have up to 64 · `BLOCKS` features, and warps 16 · `ATOMS` queries.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage<T: Element, const BLOCKS: usize, const ATOMS: usize, const STAGES: usize> {
    /// The queries. The output leaves by the same memory.
    pub(super) queries: [[TilesOfWarps<T>; BLOCKS]; ATOMS],
    /// Stages of keys and values by turns.
    pub(super) stages: [Ring<T, STAGES>; BLOCKS],
}
