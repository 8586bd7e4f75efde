//! Row scatter: each row of a source is stored to the row of a table that an index names.

use cutlet_device::{
    DeviceData, Global, GlobalMut, Relaxed, ThreadGroup, ThreadIdx, block_idx,
    grid_dependency_wait, launch_dependents,
};
use cutlet_layout_core::Tensor;

use super::args::report_misses;
use super::{RowArgs, Shape, row_instances};

/// Copies row `r` of the source to row `indices[r]` of the table. If several rows have the same index, each element of
/// the table comes from one of them. Each block stores one tile, and the grid's x counts tiles of rows.
///
/// # Safety
/// Source, indices and table must have these extents, and `first_miss` one element.
#[inline(always)]
unsafe fn scatter<S: Shape, T: DeviceData + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    // SAFETY: the launcher promises the extents. Several threads may store to one element, which the engine allows.
    let (source, table) = unsafe {
        let table_rows = args.named_rows(indices, args.ld_to);
        (
            Tensor::new(source, args.plain_rows(args.ld_from)),
            Tensor::new(Relaxed::of(table), table_rows),
        )
    };
    let tile = args.tiles.tile(block_idx().x);
    let from = source
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);
    let to = table
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);

    to.store(&from.load(T::default()));
    // SAFETY: the launcher promises one element.
    unsafe { report_misses(args.out_of_range, to.bound(), first_miss) };
}

row_instances! { scatter:
    /// 16-byte accesses, rows of 2 KiB and more.
    scatter_long16 = Long16, u32;
    /// 16-byte accesses, rows from 256 bytes.
    scatter_medium16 = Medium16, u32;
    /// 16-byte accesses, short rows.
    scatter_short16 = Short16, u32;
    /// 4-byte accesses, long rows.
    scatter_long4 = Long, u32;
    /// 4-byte accesses, short rows.
    scatter_short4 = Short, u32;
    /// 2-byte accesses, long rows.
    scatter_long2 = Long, u16;
    /// 2-byte accesses, short rows.
    scatter_short2 = Short, u16;
    /// 1-byte accesses, long rows.
    scatter_long1 = Long, u8;
    /// 1-byte accesses, short rows.
    scatter_short1 = Short, u8;
}
