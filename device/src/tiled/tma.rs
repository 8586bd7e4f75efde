//! Tiles that TMA copies as a whole, between a matrix in global memory and shared memory.

use core::marker::PhantomData;

use cutlet_layout_core::{Coord, StaticSwizzle, TileIndex, TileShape, tile_origin};

use crate::DeviceData;
use crate::cluster::Multicast;
use crate::mbarrier::Mbarrier;
use crate::tile::{SharedTile, TmaLayout};
use crate::tma::{CacheHint, LoadOptions, TensorMap};

/// A matrix in global memory that TMA copies, as its tensor map describes it: of (m, k), (n, k) or (m, n).
#[derive(Clone, Copy, Debug)]
pub struct TmaMatrix<'a> {
    map: &'a TensorMap,
}

impl<'a> TmaMatrix<'a> {
    /// The matrix of a map.
    ///
    /// # Safety
    /// On a GPU, the map must be a `#[grid_constant] map: &TensorMap` parameter or in global memory
    /// ([`TensorMap::in_global`]). It is of rank 2. For as long as tiles of the matrix are copied, the matrix must
    /// exist.
    #[inline(always)]
    pub const unsafe fn new(map: &'a TensorMap) -> Self {
        Self { map }
    }

    /// The tile at (row, column) in units of tiles of `Tile`'s extents, which may reach beyond the matrix: as
    /// [`Tensor::local_tile`](cutlet_layout_core::Tensor::local_tile).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn local_tile<Tile: TileShape>(
        self,
        tile: (impl TileIndex, impl TileIndex),
    ) -> TmaTile<'a, Tile> {
        TmaTile {
            map: self.map,
            at: tile_origin::<Tile>(tile),
            tile: PhantomData,
        }
    }
}

/// A tile of a [`TmaMatrix`]. `Tile` has its extents.
#[derive(Clone, Copy, Debug)]
pub struct TmaTile<'a, Tile> {
    map: &'a TensorMap,
    at: Coord,
    tile: PhantomData<Tile>,
}

/// A load by TMA, whose bytes count at a barrier.
#[derive(Clone, Copy, Debug)]
pub struct TmaLoad {
    pub(super) barrier: Mbarrier,
    pub(super) options: LoadOptions,
    pub(super) blocks: usize,
    pub(super) block: u32,
}

impl TmaLoad {
    /// The load whose bytes count at `barrier`: CuTe's `tma.with(barrier)`.
    #[inline(always)]
    pub const fn with(barrier: Mbarrier) -> Self {
        Self {
            barrier,
            options: LoadOptions::DEFAULT,
            blocks: 1,
            block: 0,
        }
    }

    /// With this hint to the L2 cache.
    #[inline(always)]
    pub const fn hint(self, hint: CacheHint) -> Self {
        Self {
            options: self.options.hint(hint),
            ..self
        }
    }

    /// Block `block`'s part of a load by the `blocks` first blocks of a cluster, a power of two. Each multicasts its
    /// part of the tile's rows to all of them. The map must be made for
    /// [`multicast_box`](SharedTile::multicast_box)`(blocks)`. If no box has such a part, the first block loads the
    /// tile for all.
    #[inline(always)]
    pub const fn part_of_cluster(self, blocks: usize, block: u32) -> Self {
        Self {
            options: self.options.multicast(Multicast::first(blocks as u32)),
            blocks,
            block,
            ..self
        }
    }
}

/// A store by TMA, as part of the thread's open group, which [`tma_store_commit`](crate::tma::tma_store_commit) closes.
#[derive(Clone, Copy, Debug)]
pub struct TmaStore;

impl TmaStore {
    /// The store of part `part` of `PARTS` equal parts of a tile's rows: those that one warpgroup wrote, for instance.
    /// The map must be made for [`tile_box`](SharedTile::tile_box)`(PARTS)`.
    #[inline(always)]
    pub fn part<const PARTS: usize>(part: impl TileIndex) -> TmaStorePart<PARTS> {
        TmaStorePart(part.index())
    }
}

/// The store of a part of a tile: see [`TmaStore::part`].
#[derive(Clone, Copy, Debug)]
pub struct TmaStorePart<const PARTS: usize>(pub(super) u32);

/// An instruction of TMA that copies a tile `From` somewhere `To` somewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not copy from `{From}` to `{To}`",
    note = "`TmaLoad` copies from a `TmaTile` to a `SharedTile`, and `TmaStore` from a `SharedTile` to a `TmaTile`, \
            or a `TmaTensorTile`; both have the same extents, and the tile in shared memory an `OperandLayout`"
)]
pub trait TmaCopy<From, To>: Copy {
    /// See [`copy_tile`].
    ///
    /// # Safety
    /// As [`copy_tile`].
    unsafe fn copy(self, from: From, to: To);
}

impl<T, L, W, Tile> TmaCopy<TmaTile<'_, Tile>, SharedTile<T, L, W>> for TmaLoad
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: TmaTile<'_, Tile>, to: SharedTile<T, L, W>) {
        // SAFETY: as promised by the caller.
        unsafe {
            to.load_multicast(
                self.blocks,
                self.block,
                0,
                from.map,
                from.at,
                self.barrier,
                self.options,
            );
        }
    }
}

impl<T, L, W, Tile> TmaCopy<SharedTile<T, L, W>, TmaTile<'_, Tile>> for TmaStore
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: SharedTile<T, L, W>, to: TmaTile<'_, Tile>) {
        // SAFETY: as promised by the caller.
        unsafe { from.store(to.map, to.at) };
    }
}

impl<T, L, W, Tile, const PARTS: usize> TmaCopy<SharedTile<T, L, W>, TmaTile<'_, Tile>>
    for TmaStorePart<PARTS>
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: SharedTile<T, L, W>, to: TmaTile<'_, Tile>) {
        // SAFETY: as promised by the caller.
        unsafe { from.store_part::<PARTS, 2>(self.0, to.map, to.at) };
    }
}

/// Starts to copy a whole tile by TMA: to shared memory by [`TmaLoad`], from it by [`TmaStore`]. One thread calls it.
/// What is outside of the matrix is loaded as zeros, and not stored.
///
/// ```
/// use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::tiled::{TmaLoad, TmaMatrix, TmaStore, copy_tile};
/// use cutlet_device::tma::{TensorMap, tma_store_commit, tma_store_wait};
/// use cutlet_device::{kernel, sync_threads, thread_idx};
/// use cutlet_layout_core::L;
/// use half::bf16;
///
/// type Tile = L!((64, 64):(1@0, 1@1));
/// type Stored = KMajorTile<bf16, 64, 64>;
///
/// /// # Safety
/// /// The maps are of matrices with boxes of [`Stored`].
/// #[kernel(threads = 32, arch = "sm_90a")]
/// unsafe fn copy(
///     #[grid_constant] from: &TensorMap,
///     #[grid_constant] to: &TensorMap,
///     #[shared] (tile, full): (Stored, Mbarrier),
/// ) {
///     // SAFETY: the launcher promises the maps. One thread uses the tile.
///     unsafe {
///         let (from, to) = (TmaMatrix::new(from), TmaMatrix::new(to));
///         if thread_idx().is_first() {
///             full.init(1);
///             fence_mbarrier_init();
///             full.arrive_expect_tx(Stored::BYTES);
///             copy_tile(TmaLoad::with(full), from.local_tile::<Tile>((0, 0)), tile);
///             full.wait(0);
///             copy_tile(TmaStore, tile, to.local_tile::<Tile>((0, 0)));
///             tma_store_commit();
///             tma_store_wait::<0>();
///         }
///     }
/// }
/// assert_eq!(copy.bounds().threads(), 32);
/// ```
///
/// A tile in shared memory with other extents does not compile:
///
/// ```compile_fail,E0271
/// # use cutlet_device::mbarrier::Mbarrier;
/// # use cutlet_device::tile::KMajorTile;
/// # use cutlet_device::tiled::{TmaLoad, TmaMatrix, copy_tile};
/// # use cutlet_layout_core::L;
/// # use half::bf16;
/// unsafe fn load(from: TmaMatrix<'_>, tile: KMajorTile<bf16, 64, 64>, full: Mbarrier) {
///     let of_64_rows_too_many = from.local_tile::<L!((128, 64):(1@0, 1@1))>((0, 0));
///     unsafe { copy_tile(TmaLoad::with(full), of_64_rows_too_many, tile) };
/// }
/// ```
///
/// # Safety
/// The map must have been made for the boxes of the tile in shared memory: [`tile_box`](SharedTile::tile_box)`(1)`.
///
/// - A load's tile must not be used before the barrier's phase has ended.
/// - A [`TmaTensor`](super::TmaTensor) must be a `#[grid_constant]` parameter on a GPU, and its tensor must exist.
/// - Before a store, the threads that wrote the tile call [`fence_async_shared`](crate::fence_async_shared) and meet
///   this thread at a barrier. The tile must not change before
///   [`tma_store_wait_read`](crate::tma::tma_store_wait_read). No other thread may use the matrix's elements, or
///   elements that share 16 bytes with them. The tile's coordinates are not negative.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn copy_tile<Atom: TmaCopy<From, To>, From, To>(atom: Atom, from: From, to: To) {
    // SAFETY: as promised by the caller.
    unsafe { atom.copy(from, to) };
}
