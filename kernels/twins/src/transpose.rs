//! The transpose, indexed by hand.

use cutlet_device::{Global, GlobalMut, SharedArray, block_idx, kernel, sync_threads, thread_idx};

/// Rows and columns of a block's tile.
const TILE: i32 = 64;

/// `destination[c][r] = source[r][c]`, like the layout-driven kernel of the same name.
///
/// # Safety
/// As for the layout-driven kernel.
#[kernel(threads = 256)]
pub unsafe fn transpose_f32(
    rows: i32,
    columns: i32,
    source: Global<f32>,
    ld_source: i64,
    destination: GlobalMut<f32>,
    ld_destination: i64,
    #[shared] shared: SharedArray<f32, { (TILE * TILE) as usize }>,
) {
    let thread = thread_idx().get() as i32;
    let row = block_idx().y.get() as i32 * TILE;
    let column = block_idx().x.get() as i32 * TILE;
    // Threads are along 64 columns of four rows for reads, and along 64 rows of four columns for writes.
    let (along, across) = (thread % TILE, thread / TILE);

    let mut values = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        let (r, c) = (row + across + 4 * i as i32, column + along);
        if r < rows && c < columns {
            // SAFETY: the element is inside the source.
            values[i] = unsafe { source.load(r as i64 * ld_source + c as i64) };
        }
        i += 1;
    }
    let mut i = 0;
    while i < 16 {
        let r = across + 4 * i as i32;
        // SAFETY: the element is inside the tile, and no other thread writes it.
        unsafe { shared.store((r * TILE + (along ^ (r % 32))) as i64, values[i]) };
        i += 1;
    }
    sync_threads();
    let mut i = 0;
    while i < 16 {
        let c = across + 4 * i as i32;
        // SAFETY: the element is inside the tile and was written before the barrier.
        values[i] = unsafe { shared.load((along * TILE + (c ^ (along % 32))) as i64) };
        i += 1;
    }
    let mut i = 0;
    while i < 16 {
        let (r, c) = (row + along, column + across + 4 * i as i32);
        if r < rows && c < columns {
            // SAFETY: the element is inside the destination, and no other thread writes it.
            unsafe { destination.store(c as i64 * ld_destination + r as i64, values[i]) };
        }
        i += 1;
    }
}
