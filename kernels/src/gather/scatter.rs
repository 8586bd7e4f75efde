//! Row scatter: each row of a source is stored to the rows of a table that indices name: to one, or to several.

use cutlet_device::{DeviceData, Global, GlobalMut, Relaxed, block_idx, thread_idx};
use cutlet_layout_core::{MatrixInner, Tensor};

use super::args::report_misses;
use super::{RowArgs, Shape, row_instances};

/// Copies row `r` of the source to row `indices[r]` of the table. If several rows have the same index, each element of
/// the table comes from one of them. Each block stores one tile, and the grid's x counts tiles of rows.
///
/// # Safety
/// Source, indices and table must have these extents, and `first_miss` one element.
#[inline(always)]
unsafe fn scatter<S: Shape, T: DeviceData + Default>(
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let source = Tensor::new(source, args.plain_rows(args.ld_from));
        store_rows::<S, T, _>(source, indices, table, first_miss, args);
    }
}

/// Copies row `r / repeats` of the source to row `indices[r]` of the table, and else does what [`scatter`] does. Memory
/// brings the rows of a block once: a thread finds those that it reads again in the L1 cache.
///
/// # Safety
/// The source must have a row for each `repeats` indices. The rest is as for [`scatter`].
#[inline(always)]
unsafe fn scatter_repeated<S: Shape, T: DeviceData + Default>(
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let source = Tensor::new(source, args.repeated_rows());
        store_rows::<S, T, _>(source, indices, table, first_miss, args);
    }
}

/// Stores the block's tile of the source's rows to the rows of the table that the indices name.
///
/// # Safety
/// As [`scatter`].
#[inline(always)]
unsafe fn store_rows<S: Shape, T: DeviceData + Default, I: MatrixInner>(
    source: Tensor<Global<T>, I>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    // SAFETY: as promised by the caller. Several threads may store to one element, which the engine allows.
    let table = unsafe {
        let rows = args.named_rows(indices, args.ld_to);
        Tensor::new(Relaxed::of(table), rows)
    };
    let tile = args.tiles.tile(block_idx().x);
    let from = source
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());
    let to = table
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());

    to.store(&from.load(T::default()));
    // SAFETY: the caller promises one element.
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

row_instances! { scatter_repeated:
    /// 16-byte accesses, rows of 2 KiB and more.
    scatter_repeated_long16 = Long16, u32;
    /// 16-byte accesses, rows from 256 bytes.
    scatter_repeated_medium16 = Medium16, u32;
    /// 16-byte accesses, short rows.
    scatter_repeated_short16 = Short16, u32;
    /// 4-byte accesses, long rows.
    scatter_repeated_long4 = Long, u32;
    /// 4-byte accesses, short rows.
    scatter_repeated_short4 = Short, u32;
    /// 2-byte accesses, long rows.
    scatter_repeated_long2 = Long, u16;
    /// 2-byte accesses, short rows.
    scatter_repeated_short2 = Short, u16;
    /// 1-byte accesses, long rows.
    scatter_repeated_long1 = Long, u8;
    /// 1-byte accesses, short rows.
    scatter_repeated_short1 = Short, u8;
}
