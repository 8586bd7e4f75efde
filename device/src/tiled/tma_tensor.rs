//! Tensors of several modes whose tiles TMA copies: matrices by a layout of coordinates.

use core::marker::PhantomData;

use cutlet_layout_core::{CoordinateLayout, StaticSwizzle, TileIndex, TileShape, tile_origin};

use super::tma::{TmaCopy, TmaLoad, TmaStore, TmaStorePart};
use crate::DeviceData;
use crate::tile::{SharedTile, TmaLayout};
use crate::tma::TensorMap;

/// A tensor of rank `R` in global memory, seen as a matrix: its tensor map, and a layout that says at which coordinate
/// of the tensor the element (row, column) is. Rows have `M` leaves and columns `N`. Coordinates are those of the map,
/// innermost first.
///
/// The layout may visit an element of the tensor in several places, as windows that overlap do. A tile's boxes are
/// boxes of the tensor: `cutlet-host`'s `TensorMapSpec::encode_tensor` derives them of the layout, and makes the value.
/// A kernel takes it as `#[grid_constant] tensor: &TmaTensor<…>`.
///
/// ```
/// use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::tiled::{TmaLoad, TmaTensor, copy_tile};
/// use cutlet_device::{kernel, thread_idx};
/// use cutlet_layout_core::{CoordinateLayout, L, layout};
/// use half::bf16;
///
/// /// 32 pixels with 64 channels each.
/// type Tile = L!((32, 64):(1@0, 1@1));
/// type Stored = KMajorTile<bf16, 32, 64>;
/// /// Of (channel, x, y). Rows are ((x, y) in a tile, (x, y) of the tile), and columns are channels.
/// type Image = TmaTensor<3, 4, 1>;
///
/// /// # Safety
/// /// The image exists, and its boxes are of 64×8×4.
/// #[kernel(threads = 32, arch = "sm_90a")]
/// unsafe fn load(#[grid_constant] image: &Image, #[shared] (tile, full): (Stored, Mbarrier)) {
///     if thread_idx().is_first() {
///         // SAFETY: the launcher promises the image. One thread uses the tile.
///         unsafe {
///             full.init(1);
///             fence_mbarrier_init();
///             full.arrive_expect_tx(Stored::BYTES);
///             copy_tile(TmaLoad::with(full), image.local_tile::<Tile>((7u32, 0u32)), tile);
///             full.wait(0);
///         }
///     }
/// }
/// assert_eq!(load.bounds().threads(), 32);
///
/// // An image of 56×56 pixels has 7×14 tiles of 8×4.
/// let pixels = layout!((((8, 4), (7, 14)), 64):(((1@1, 1@2), (8@1, 4@2)), 1@0));
/// let pixels = CoordinateLayout::<3, 4, 1>::new(&pixels, [0; 3]);
/// // The seventh tile is below the first one.
/// assert_eq!(pixels.at(7 * 32, 0), [0, 0, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TmaTensor<const R: usize, const M: usize, const N: usize> {
    map: TensorMap,
    layout: CoordinateLayout<R, M, N>,
}

// SAFETY: a `repr(C)` struct of device data. The layout has a multiple of 32 bytes, so there is no padding.
#[diagnostic::do_not_recommend]
unsafe impl<const R: usize, const M: usize, const N: usize> DeviceData for TmaTensor<R, M, N> {
    const PARAM_ALIGN: usize = TensorMap::PARAM_ALIGN;
    const IN_PLACE: bool = TensorMap::IN_PLACE;
    const CHECK: () = assert!(
        size_of::<Self>() == size_of::<TensorMap>() + size_of::<CoordinateLayout<R, M, N>>(),
        "a tensor map and a layout have no padding between them"
    );
}

impl<const R: usize, const M: usize, const N: usize> TmaTensor<R, M, N> {
    /// The tensor of a map of rank `R`, by this layout.
    pub const fn new(map: TensorMap, layout: CoordinateLayout<R, M, N>) -> Self {
        Self { map, layout }
    }

    /// The layout.
    pub const fn layout(&self) -> &CoordinateLayout<R, M, N> {
        &self.layout
    }

    /// The tile at (row, column) in units of tiles of `Tile`'s extents, which may reach beyond the tensor: as
    /// [`Tensor::local_tile`](cutlet_layout_core::Tensor::local_tile). It computes the tile's coordinate.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn local_tile<Tile: TileShape>(
        &self,
        tile: (impl TileIndex, impl TileIndex),
    ) -> TmaTensorTile<'_, Tile, R, M, N> {
        let at = tile_origin::<Tile::Extents>(tile);
        let row = self.layout.row(at[0] as u32);
        TmaTensorTile {
            tensor: self,
            at,
            row,
            first: self.layout.along_row(row, at[1] as u32),
            tile: PhantomData,
        }
    }
}

/// A tile of a [`TmaTensor`]. `Tile` has its extents.
#[derive(Clone, Copy, Debug)]
pub struct TmaTensorTile<'a, Tile, const R: usize, const M: usize, const N: usize> {
    tensor: &'a TmaTensor<R, M, N>,
    /// Its first (row, column).
    at: [i32; 2],
    /// The coordinate of its first row.
    row: [i32; R],
    /// The coordinate of its first element.
    first: [i32; R],
    tile: PhantomData<Tile>,
}

impl<Tile, const R: usize, const M: usize, const N: usize> TmaTensorTile<'_, Tile, R, M, N> {
    /// The tensor's coordinates in a row of the tile, by the column in the tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn row(&self, row: i32) -> impl Fn(i32) -> [i32; R] {
        let [first_row, first_column] = self.at;
        let layout = &self.tensor.layout;
        let (at, known) = match row {
            0 => (self.row, Some(self.first)),
            _ => (layout.row((first_row + row) as u32), None),
        };
        move |column| match (column, known) {
            (0, Some(first)) => first,
            _ => layout.along_row(at, (first_column + column) as u32),
        }
    }
}

impl<T, L, W, Tile, const R: usize, const M: usize, const N: usize>
    TmaCopy<TmaTensorTile<'_, Tile, R, M, N>, SharedTile<T, L, W>> for TmaLoad
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: TmaTensorTile<'_, Tile, R, M, N>, to: SharedTile<T, L, W>) {
        let at = |row| from.row(row);
        let (share, load) = ((self.blocks, self.block, 0), (self.barrier, self.options));
        // SAFETY: as promised by the caller.
        unsafe { to.load_boxes(share, &from.tensor.map, at, load) };
    }
}

impl<T, L, W, Tile, const R: usize, const M: usize, const N: usize>
    TmaCopy<SharedTile<T, L, W>, TmaTensorTile<'_, Tile, R, M, N>> for TmaStore
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: SharedTile<T, L, W>, to: TmaTensorTile<'_, Tile, R, M, N>) {
        // SAFETY: as promised by the caller.
        unsafe { TmaStore::part::<1>(0u32).copy(from, to) };
    }
}

impl<T, L, W, Tile, const R: usize, const M: usize, const N: usize, const PARTS: usize>
    TmaCopy<SharedTile<T, L, W>, TmaTensorTile<'_, Tile, R, M, N>> for TmaStorePart<PARTS>
where
    T: DeviceData,
    L: TmaLayout<Swizzle = W> + TileShape,
    W: StaticSwizzle,
    Tile: TileShape<Rows = L::Rows, Columns = L::Columns>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(self, from: SharedTile<T, L, W>, to: TmaTensorTile<'_, Tile, R, M, N>) {
        let at = |row| to.row(row);
        // SAFETY: as promised by the caller.
        unsafe { from.store_boxes::<PARTS, R, _>(self.0, &to.tensor.map, at) };
    }
}
