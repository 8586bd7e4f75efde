//! What a block keeps in shared memory.

use cutlet_device::collective::TileRing;
use cutlet_device::tile::{KMajor, OperandLayout, OperandTile, SharedTile, SwizzleSpan};
use cutlet_device::{DeviceData, SharedArray, SharedStorage, SharedUnion};

use super::args::ROWS;
use super::warps::{MOST_WARPS, Warps};

/// The stages of all warps: tiles of 16 keys or values of `D` features.
pub(super) type Ring<T, W, const D: usize> =
    TileRing<T, OperandLayout<T, KMajor, 16, D, 128>, SwizzleSpan<T, 128>, <W as Warps>::Stages>;
/// Stages of keys and of values.
pub(super) type Cache<T, W, const D: usize> = (Ring<T, W, D>, Ring<T, W, D>);

/// Outputs of the warps, and the logarithms of the sums of their rows.
#[derive(Clone, Copy, SharedStorage)]
pub struct Outputs<W: Warps, const D: usize> {
    /// A tile of a warp's rows for each.
    pub(super) values:
        TileRing<f32, OperandLayout<f32, KMajor, 16, D, 128>, SwizzleSpan<f32, 128>, W>,
    /// The rows of each warp.
    pub(super) logarithms: SharedArray<f32, { (MOST_WARPS * ROWS) as usize }>,
}

/// What a block keeps in shared memory: stages first, outputs in the end.
pub type Storage<T, W, const D: usize> = SharedUnion<Cache<T, W, D>, Outputs<W, D>>;

/// A block of 64 features of a tile of 16 rows, which has such blocks one after the other.
#[inline(always)]
pub(super) fn block_of<T: DeviceData, const D: usize>(
    tile: SharedTile<T, OperandLayout<T, KMajor, 16, D, 128>, SwizzleSpan<T, 128>>,
    block: usize,
) -> OperandTile<T, KMajor, 16, 64> {
    let elements = const { 16 * 64 };
    SharedTile::from_shared(tile.start().offset((elements * block) as i64))
}
