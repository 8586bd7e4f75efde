//! Accumulators that TMA stores, from a tile in shared memory.

use cutlet_layout_core::{
    Arrangement, Fixed, InOrder, Mma, StaticSwizzle, Tensor, ThreadMma, TileShape, TiledMma,
};

use super::store::Values;
use super::{StMatrix, StoreC, TileOfC, TmaCopy, store_c};
use crate::tile::SharedTile;
use crate::tma::{tma_store_commit, tma_store_wait_read};
use crate::warpgroup::{ThreadOfWarpgroups, warpgroup_sync};
use crate::{DeviceData, Shared, fence_async_shared};

/// The tensor of a tile in shared memory.
type TensorOf<T, L, W> = Tensor<Shared<T>, Fixed<L, W>>;

/// Stores a thread's accumulators to a tile of 16-bit elements in shared memory, from where TMA stores the rows of the
/// thread's warpgroup to `to` while the warpgroup goes on. The warpgroups of the tiled MMA call it. They lie below one
/// another, and `store` is [`TmaStore::part`](super::TmaStore::part) of the warpgroup.
///
/// It waits until TMA has read what the warpgroup's store before left there. Before the block ends, the first thread of
/// each warpgroup calls [`tma_store_wait`](crate::tma::tma_store_wait).
///
/// # Safety
/// As [`copy_tile`](super::copy_tile). The warpgroup's rows of the tile are for these stores alone.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_c_tile<I, W, V, T, L, Z, Store, To, const WARPGROUPS: u32>(
    store: Store,
    mma: ThreadMma<TiledMma<I, W>, ThreadOfWarpgroups<WARPGROUPS>>,
    values: &Values<V, I, W, InOrder, TensorOf<T, L, Z>>,
    tile: SharedTile<T, L, Z>,
    to: To,
) where
    I: Mma,
    W: Arrangement,
    V: Copy,
    T: DeviceData,
    L: TileShape,
    Z: StaticSwizzle,
    TensorOf<T, L, Z>: TileOfC<I, W>,
    StMatrix: StoreC<V, TensorOf<T, L, Z>>,
    Store: TmaCopy<SharedTile<T, L, Z>, To>,
{
    let (warpgroup, thread) = (mma.thread().warpgroup_idx(), mma.thread().in_warpgroup());
    // By all threads: only the first one has stores. Around a branch, LLVM has duplicated the barrier after it, and a
    // GPU waits for ever at a barrier that the threads of a warp meet in two places.
    tma_store_wait_read::<0>();
    warpgroup_sync(warpgroup);
    // SAFETY: barriers order the stores, and what TMA reads.
    store_c(StMatrix, mma, unsafe { tile.tensor() }, values);
    fence_async_shared();
    warpgroup_sync(warpgroup);
    if thread.is_first() {
        // SAFETY: the caller promises the map, and the rows are written.
        unsafe { store.copy(tile, to) };
        tma_store_commit();
    }
}
