//! A copy through a swizzled tile in shared memory by `cp.async`: by a `TiledCopy`, and indexed by hand.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait};
use cutlet_device::tile::KMajorTile;
use cutlet_device::tiled::{CpAsync, copy};
use cutlet_device::{Global, GlobalMut, block_idx, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{L, RowMajor, Tensor, TiledCopy, Width};
use half::bf16;

type Tile = L!((64, 64):(1@0, 1@1));
/// Lines of 128 bytes, whose units of 16 bytes are swizzled.
type Stored = KMajorTile<bf16, 64, 64>;
/// 16 bytes of a row a thread.
type Load = TiledCopy<CpAsync<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
type Store = TiledCopy<Width<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;

/// `destination = source`, a block for each tile of 64×64.
///
/// # Safety
/// Both matrices have rows of `columns` elements, `ld` apart. Rows begin at multiples of 16 bytes, and `columns` is a
/// multiple of 8.
#[kernel(threads = 128)]
pub unsafe fn copy_by_layout(
    rows: i32,
    columns: i32,
    ld: i64,
    source: Global<bf16>,
    destination: GlobalMut<bf16>,
    #[shared] tile: Stored,
) {
    // SAFETY: the launcher promises the matrices. The barrier orders the accesses to the tile.
    let (source, destination, tile) = unsafe {
        (
            Tensor::new(source, RowMajor::new([rows, columns], ld)),
            Tensor::new(destination, RowMajor::new([rows, columns], ld)),
            tile.tensor(),
        )
    };
    let at = (block_idx().y, block_idx().x);
    let load = Load::thread_slice(thread_idx());
    copy(
        &load.partition(source.local_tile::<Tile>(at)),
        &load.partition(tile),
    );
    cp_async_commit();
    cp_async_wait::<0>();
    sync_threads();
    let store = Store::thread_slice(thread_idx());
    copy(
        &store.partition(tile),
        &store.partition(destination.local_tile::<Tile>(at)),
    );
}

/// [`copy_by_layout`], indexed by hand.
///
/// # Safety
/// As [`copy_by_layout`].
#[kernel(threads = 128)]
pub unsafe fn copy_by_hand(
    rows: i32,
    columns: i32,
    ld: i64,
    source: Global<bf16>,
    destination: GlobalMut<bf16>,
    #[shared] tile: Stored,
) {
    let thread = thread_idx().get() as i32;
    let tile = tile.start();
    // Eight threads have a row of 64 elements, and the block 16 rows at a time.
    let (line, unit) = (thread / 8, thread % 8);
    let row = block_idx().y.get() as i32 * 64 + line;
    let column = block_idx().x.get() as i32 * 64 + 8 * unit;
    // How many rows are left, and elements of a row.
    let (rest, inside) = (rows - row, (columns - column).clamp(0, 8) as u32);
    let (first, step) = (row as i64 * ld + column as i64, 16 * ld);
    // The swizzle is the same for rows 16 apart.
    let place = 64 * line + 8 * (unit ^ (line % 8));
    let mut i = 0;
    while i < 4 {
        let count = if 16 * i < rest { inside } else { 0 };
        // SAFETY: the first `count` elements are inside the source, and the others are not read.
        unsafe {
            cp_async::<bf16, 8>(
                tile.offset((place + 16 * 64 * i) as i64),
                source.offset(first + i as i64 * step),
                count,
            );
        }
        i += 1;
    }
    cp_async_commit();
    cp_async_wait::<0>();
    sync_threads();
    let mut i = 0;
    while i < 4 {
        if 16 * i < rest && inside > 0 {
            // SAFETY: the elements are inside the destination, and were written to the tile before the barrier.
            unsafe {
                let elements = tile.load_vec::<8>((place + 16 * 64 * i) as i64);
                destination.store_vec::<8>(first + i as i64 * step, elements);
            }
        }
        i += 1;
    }
}
