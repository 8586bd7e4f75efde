//! Tiles of a matrix: their extents, where each begins, and how many cover the matrix.

use crate::static_layout::DIRECTIONS;
use crate::{Layout, StaticLayout};

/// A matrix coordinate, or extents: (row, column). Each has 32 bits, so that a thread's bounds take
/// few registers; element indices in memory have 64.
pub type Coord = [i32; 2];

/// Extents, or a coordinate, in all directions that static layouts may have.
pub(crate) type Extents = [i64; DIRECTIONS];

/// The extents of a matrix in all directions.
pub(crate) const fn matrix_extents(extent: Coord) -> Extents {
    [extent[0] as i64, extent[1] as i64, 1, 1]
}

/// What the compiler knows of a [`Tensor`](crate::Tensor)'s extents: those of a tile, or nothing of a [`Whole`] matrix.
///
/// Every static layout of coordinates is the tile that it covers.
pub trait KnownExtent: Copy + 'static {
    /// (rows, columns), if they are known.
    const EXTENT: Option<Coord>;
}

impl<T: StaticLayout> KnownExtent for T {
    const EXTENT: Option<Coord> = Some(tile_extent::<T>());
}

/// A whole tensor, of which no tile was taken.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

impl KnownExtent for Whole {
    const EXTENT: Option<Coord> = None;
}

/// The index of a tile along one direction of a matrix: a block's index, or a loop's counter.
pub trait TileIndex: Copy {
    /// The index as a number.
    fn index(self) -> u32;
}

impl TileIndex for u32 {
    #[inline(always)]
    fn index(self) -> u32 {
        self
    }
}

/// The extents of a tile that a coordinate layout covers: (rows, columns).
///
/// # Panics
/// If the layout reaches in a direction other than rows and columns, or a stride is negative.
#[track_caller]
pub const fn tile_extent<L: StaticLayout>() -> Coord {
    let extent = [reach(&L::LAYOUT, 0) + 1, reach(&L::LAYOUT, 1) + 1];
    let mut n = 0;
    while n < L::LAYOUT.num_leaves() {
        let stride = L::LAYOUT.leaf_stride(n);
        assert!(
            stride.component(2) == 0 && stride.component(3) == 0,
            "tile_extent: the layout steps in a direction beyond rows (@0) and columns (@1): a tile has only these two"
        );
        n += 1;
    }
    assert!(
        extent[0] <= i32::MAX as i64 && extent[1] <= i32::MAX as i64,
        "tile_extent: an extent is not below 2^31: use smaller tiles"
    );
    [extent[0] as i32, extent[1] as i32]
}

/// The largest component `b` of what a coordinate layout maps to.
///
/// Bounds checks do not look for coordinates before a tile's beginning, so a layout must not step
/// there.
#[track_caller]
pub(crate) const fn reach(layout: &Layout, b: usize) -> i64 {
    let mut reach = 0;
    let mut n = 0;
    while n < layout.num_leaves() {
        let step = layout.leaf_stride(n).component(b);
        assert!(
            step >= 0,
            "the layout of a tile or of its threads and values has a negative stride: use a positive \
             one, to stay inside the tile"
        );
        reach += (layout.leaf_shape(n).value() - 1) * step;
        n += 1;
    }
    reach
}

/// The coordinate at which tile (row, column) begins, counted in tiles of `T`.
///
/// # Panics
/// If a coordinate is not below 2^31. A GPU does not check it.
///
/// ```
/// use cutlet_layout_core::{L, tile_origin};
///
/// assert_eq!(tile_origin::<L!((128, 64):(1@0, 1@1))>((2, 3)), [256, 192]);
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn tile_origin<T: StaticLayout>(tile: (impl TileIndex, impl TileIndex)) -> Coord {
    let extent = const { tile_extent::<T>() };
    [
        origin_along(tile.0.index(), extent[0], "rows"),
        origin_along(tile.1.index(), extent[1], "columns"),
    ]
}

/// Where a tile of `extent` rows or columns begins.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn origin_along(index: u32, extent: i32, _: &str) -> i32 {
    index as i32 * extent
}

/// Where a tile of `extent` rows or columns begins.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
#[track_caller]
fn origin_along(index: u32, extent: i32, what: &str) -> i32 {
    match i32::try_from(i64::from(index) * i64::from(extent)) {
        Ok(origin) => origin,
        Err(_) => begins_too_far(index, extent, what),
    }
}

#[cfg(not(target_arch = "nvptx64"))]
#[cold]
#[track_caller]
fn begins_too_far(index: u32, extent: i32, what: &str) -> ! {
    panic!(
        "tile {index} of {extent} {what} begins after {index} * {extent} = {} {what}: coordinates are below 2^31; take \
         tiles of a `LongVector`, or make the tensor of memory that begins nearer, by an offset of 64 bits",
        u64::from(index) * extent as u64
    )
}

/// The number of tiles of `T` that cover a matrix of `extent`: (rows, columns) of tiles.
///
/// ```
/// use cutlet_layout_core::{L, tiles};
///
/// assert_eq!(tiles::<L!((128, 64):(1@0, 1@1))>([129, 64]), [2, 1]);
/// ```
#[inline(always)]
pub fn tiles<T: StaticLayout>(extent: Coord) -> [u32; 2] {
    let tile = const { tile_extent::<T>() };
    [
        (extent[0] as u32).div_ceil(tile[0] as u32),
        (extent[1] as u32).div_ceil(tile[1] as u32),
    ]
}
