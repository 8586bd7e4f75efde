//! repack: copies matrices so that their rows start at multiples of 16 bytes, which TMA needs.
//!
//! One launch copies both operands of a product. It begins while the kernel before it ends, and lets the product begin
//! while it ends.

use cutlet_device::{
    DeviceData, Global, GlobalMut, block_idx, grid_dependency_wait, kernel, launch_dependents,
    thread_idx,
};
use cutlet_layout_core::{Coord, L, Raster, RowMajor, Tensor, Tv, tiles};

/// The tile of a block.
pub type Tile = L!((8, 512):(1@0, 1@1));
/// A warp accesses neighbouring pairs of a row. A pair of the source may begin at any element, so its elements are read
/// one by one. A thread has all its reads in flight before it writes.
type Threads<const WIDTH: usize> = Tv<L!((32, 8):(2@1, 1@0)), L!((2, 8):(1@1, 64@1)), WIDTH>;

/// A matrix of 16-bit elements, and room for its copy.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Repack {
    /// The matrix.
    pub source: Global<u16>,
    /// The copy.
    pub destination: GlobalMut<u16>,
    /// Elements from one row of the source to the next.
    pub ld_source: i64,
    /// Elements from one row of the destination to the next.
    pub ld_destination: i64,
    /// Rows and columns.
    pub extent: Coord,
}

impl Repack {
    /// Rows and columns of tiles.
    pub fn tiles(&self) -> [u32; 2] {
        tiles::<Tile>(self.extent)
    }

    /// The number of blocks that copy the matrix.
    pub fn blocks(&self) -> u32 {
        let [rows, columns] = self.tiles();
        rows * columns
    }
}

/// Copies two matrices. Each block copies one tile: the first blocks those of the first matrix.
///
/// # Safety
/// Sources and destinations must have the extents. The rows of the destinations must start at multiples of 4 bytes, and
/// have room for an even number of elements.
#[kernel(threads = 256, cpu = crate::cpu::BODY)]
pub unsafe fn repack_16(first: Repack, second: Repack) {
    launch_dependents();
    let (block, of_first) = (block_idx().x, first.blocks());
    let (matrix, block) = match block.is_below(of_first) {
        true => (first, block),
        false => (second, block.after(of_first)),
    };
    let tile = Raster::new(matrix.tiles(), 1).tile(block);
    let Repack {
        source,
        destination,
        extent,
        ..
    } = matrix;
    // The kernel before may write the source, and the product before may read the destination.
    grid_dependency_wait();
    // SAFETY: the launcher promises the extents.
    unsafe {
        let values = Tensor::new(source, RowMajor::new(extent, matrix.ld_source))
            .local_tile::<Tile>(tile)
            .partition::<Threads<1>>(thread_idx())
            .load(0);
        Tensor::new(destination, RowMajor::new(extent, matrix.ld_destination))
            .local_tile::<Tile>(tile)
            .partition::<Threads<2>>(thread_idx())
            .store(&values);
    }
}
