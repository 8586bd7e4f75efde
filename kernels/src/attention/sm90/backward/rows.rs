//! A warpgroup's accumulators become rows of a tensor.

use cutlet_device::sm90::{StoredAccumulator, WgmmaInstruction, store_accumulator};
use cutlet_device::tile::{SharedTile, TmaLayout};
use cutlet_device::warpgroup::WarpgroupThread;
use cutlet_device::{GlobalMut, fence_async_shared, sync_warp};
use cutlet_layout_core::{Fragment, RowMajor, Tensor, ThreadValue, TileIndex, TileShape};

/// Rounds 64 rows of accumulators, and stores them as tile `place` of `to`, by way of a tile in shared memory. TMA may
/// fill that tile again after the warpgroup's threads have met. Of the tile, a thread stores the elements `S`, which are
/// of its warp's 16 rows.
///
/// # Safety
/// The tile in shared memory must be the warpgroup's. `to` must have the memory that it describes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn store_rows<I, T, L, S>(
    tile: SharedTile<T, L, L::Swizzle>,
    (to, rows): (GlobalMut<T>, RowMajor),
    place: (impl TileIndex, impl TileIndex),
    values: &Fragment<T::Acc, I::Values>,
    thread: WarpgroupThread,
) where
    I: WgmmaInstruction,
    T: StoredAccumulator,
    L: TmaLayout + TileShape,
    S: ThreadValue,
{
    // SAFETY: as promised by the caller. A warp reads the rows that it has written.
    unsafe {
        store_accumulator::<I, _, _, _>(tile, 0u32, 0, thread, values);
        sync_warp();
        let from = tile.tensor().partition::<S>(thread);
        let to = Tensor::new(to, rows)
            .local_tile::<L::Extents>(place)
            .partition::<S>(thread);
        to.store(&from.load(T::default()));
    }
    fence_async_shared();
}
