//! Row gather: each row of the output is the row of a table that an index names.

use cutlet_device::{
    DeviceData, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, grid_dependency_wait,
    launch_dependents,
};
use cutlet_layout_core::{Bound, Tensor};

use super::args::report_misses;
use super::{RowArgs, Shape, row_instances};

/// Copies row `indices[r]` of the table to row `r` of the output. Each block copies one tile.
///
/// # Safety
/// Table, indices and output must have these extents, and `first_miss` one element.
#[inline(always)]
unsafe fn gather<S: Shape, T: DeviceData + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    table: Global<T>,
    indices: Global<i32>,
    output: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    // SAFETY: the launcher promises the extents.
    let (table, output) = unsafe {
        (
            Tensor::new(table, args.named_rows(indices, args.ld_from)),
            Tensor::new(output, args.plain_rows(args.ld_to)),
        )
    };
    let tile = args.tiles.tile(block_idx().x);
    let from = table
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);
    let to = output
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);

    let values = from.load(T::default());
    to.store_if(&values, |v| {
        from.bound().holds(v) || !args.out_of_range.skips()
    });
    // SAFETY: the launcher promises one element.
    unsafe { report_misses(args.out_of_range, from.bound(), first_miss) };
}

row_instances! { gather:
    /// 16-byte accesses, rows of 2 KiB and more.
    gather_long16 = Long16, u32;
    /// 16-byte accesses, rows of 4 KiB, each in one tile.
    gather_page16 = Page16, u32;
    /// 16-byte accesses, rows of 1 KiB, each in one tile.
    gather_kilo16 = Kilo16, u32;
    /// 16-byte accesses, rows from 256 bytes.
    gather_medium16 = Medium16, u32;
    /// 16-byte accesses, short rows.
    gather_short16 = Short16, u32;
    /// 4-byte accesses, long rows.
    gather_long4 = Long, u32;
    /// 4-byte accesses, short rows.
    gather_short4 = Short, u32;
    /// 2-byte accesses, long rows.
    gather_long2 = Long, u16;
    /// 2-byte accesses, short rows.
    gather_short2 = Short, u16;
    /// 1-byte accesses, long rows.
    gather_long1 = Long, u8;
    /// 1-byte accesses, short rows.
    gather_short1 = Short, u8;
}
