//! repack: copies a matrix so that its rows start at multiples of 16 bytes, which TMA needs.

use cutlet_device::{DeviceData, Global, GlobalMut, block_idx, kernel, thread_idx};
use cutlet_layout_core::{L, Raster, RowMajor, Tensor, Tv, tiles};

/// The tile of a block.
pub type Tile = L!((8, 512):(1@0, 1@1));
/// A warp accesses neighbours in a row, which are consecutive at any alignment. A thread has all its reads in flight
/// before it writes.
type Threads = Tv<L!((32, 8):(1@1, 1@0)), L!(16:32@1)>;

/// Extents of a matrix.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Extents {
    /// Elements from one row of the source to the next.
    pub ld_source: i64,
    /// Elements from one row of the destination to the next.
    pub ld_destination: i64,
    /// Rows.
    pub rows: i32,
    /// Columns.
    pub columns: i32,
}

/// Copies a matrix of 16-bit elements. Each block copies one tile.
///
/// # Safety
/// Source and destination must have these extents.
#[kernel(threads = 256)]
pub unsafe fn repack_16(source: Global<u16>, destination: GlobalMut<u16>, extents: Extents) {
    let extent = [extents.rows, extents.columns];
    let tile = Raster::new(tiles::<Tile>(extent), 1).tile(block_idx().x);
    // SAFETY: the launcher promises the extents.
    unsafe {
        let values = Tensor::new(source, RowMajor::new(extent, extents.ld_source))
            .local_tile::<Tile>(tile)
            .partition::<Threads>(thread_idx())
            .load(0);
        Tensor::new(destination, RowMajor::new(extent, extents.ld_destination))
            .local_tile::<Tile>(tile)
            .partition::<Threads>(thread_idx())
            .store(&values);
    }
}
