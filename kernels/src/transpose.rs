//! transpose: through a swizzled tile in shared memory, so that reads and writes are coalesced.

use cutlet_device::tile::SharedTile;
use cutlet_device::{Global, GlobalMut, block_idx, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{ColMajor, L, RowMajor, Sw, Tensor, Tv};

/// The tile of a block, in coordinates of the source.
pub type Tile = L!((64, 64):(1@0, 1@1));
/// The tile in shared memory: rows of 64. Columns are xored with their row's number, so that a warp has no bank
/// conflicts along a row or along a column.
type Stored = SharedTile<f32, L!((64, 64):(64, 1)), Sw<5, 0, 6>>;
/// For reads: a warp is along a row of the source.
type AlongRows = Tv<L!((64, 4):(1@1, 1@0)), L!(16:4@0)>;
/// For writes: a warp is along a column of the source, which is a row of the destination.
type AlongColumns = Tv<L!((64, 4):(1@0, 1@1)), L!(16:4@1)>;

/// `destination[c][r] = source[r][c]` for a source of `rows` × `columns`. Leading dimensions are in elements. Each
/// block covers one [`Tile`], and the grid's x counts tiles along a row.
///
/// # Safety
/// `source` must have `rows` rows, `ld_source ≥ columns` elements apart. `destination` must have `columns` rows,
/// `ld_destination ≥ rows` elements apart.
#[kernel(threads = 256, cpu = crate::cpu::BODY)]
pub unsafe fn transpose_f32(
    rows: i32,
    columns: i32,
    source: Global<f32>,
    ld_source: i64,
    destination: GlobalMut<f32>,
    ld_destination: i64,
    #[shared] tile: Stored,
) {
    let extent = [rows, columns];
    // SAFETY: the launcher promises the extents. A barrier is between writes and reads of the tile.
    let (source, destination, tile) = unsafe {
        (
            Tensor::new(source, RowMajor::new(extent, ld_source)),
            Tensor::new(destination, ColMajor::new(extent, ld_destination)),
            tile.tensor(),
        )
    };
    let at = (block_idx().y, block_idx().x);

    let values = source
        .local_tile::<Tile>(at)
        .partition::<AlongRows>(thread_idx())
        .load(0.0);
    tile.partition::<AlongRows>(thread_idx()).store(&values);
    sync_threads();
    let values = tile.partition::<AlongColumns>(thread_idx()).load(0.0);
    destination
        .local_tile::<Tile>(at)
        .partition::<AlongColumns>(thread_idx())
        .store(&values);
}
