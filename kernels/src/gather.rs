//! gather: rows of a table by an index, through a tensor whose inner transform is the index.

// A build for the GPU without the family has no instances, which use these.
#![cfg_attr(not(gather), allow(unused_imports, unused_macros))]

use cutlet_device::{
    DeviceData, Global, GlobalMut, atomic_min, block_idx, instantiate, thread_idx,
};
use cutlet_layout_core::{
    Gather, L, RowIndex, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, each,
};

/// Extents of a gather. Rows are counted in units of the kernel's unit type.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Extents {
    /// Rows of the table.
    pub table_rows: i64,
    /// Units from one row of the table to the next.
    pub ld_table: i64,
    /// Units from one row of the output to the next.
    pub ld_output: i64,
    /// Rows to gather.
    pub rows: i32,
    /// Units in a row.
    pub columns: i32,
}

/// How a block of 256 threads covers a tile of rows.
pub trait Shape {
    /// The block's tile: (rows, units).
    type Tile: StaticLayout;
    /// Thread-value layout of the tile.
    type Threads: ThreadValue;
}

/// Copies row `indices[r]` of the table to row `r` of the output. Each block copies one tile, and the grid's x counts
/// tiles of rows. If an index is not in the table, its row becomes zero. The smallest such `r` is kept in `first_miss`.
///
/// # Safety
/// Table, indices and output must have these extents, and `first_miss` one element.
#[inline(always)]
unsafe fn gather<S: Shape, T: DeviceData + Default, X: DeviceData + RowIndex>(
    table: Global<T>,
    indices: Global<X>,
    output: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    extents: Extents,
) {
    let extent = [extents.rows, extents.columns];
    // SAFETY: the launcher promises the extents.
    let (table, output) = unsafe {
        let rows = Gather::new(indices, extent, extents.table_rows, extents.ld_table);
        (
            Tensor::new(table, rows),
            Tensor::new(output, RowMajor::new(extent, extents.ld_output)),
        )
    };
    let tile = (block_idx().x, block_idx().y);
    let from = table
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());
    let to = output
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread_idx());

    to.store(&from.load(T::default()));
    each::<<S::Threads as ThreadValue>::Val>(|v| {
        if let Some(row) = from.bound().missing_row(v) {
            // SAFETY: the launcher promises one u64 there.
            unsafe { atomic_min(first_miss, 0, row as u64) };
        }
    });
}

/// Shapes for each width of an access, and for long and short rows. With all of them, a thread has all its loads in
/// flight before its first store.
pub mod shapes {
    use super::*;

    macro_rules! shape {
        ($(#[$doc:meta])* $name:ident: $tile:ty, $thr:ty, $val:ty, $width:literal) => {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;
            impl Shape for $name {
                type Tile = $tile;
                type Threads = Tv<$thr, $val, $width>;
            }
        };
    }
    shape! {
        /// Rows of 2 KiB and more, in 16-byte accesses: 16 rows by 512 words.
        Long16: L!((16, 512):(1@0, 1@1)), L!((128, 2):(4@1, 1@0)), L!((4, 8):(1@1, 2@0)), 4
    }
    shape! {
        /// Rows from 256 bytes, in 16-byte accesses: 128 rows by 64 words.
        Medium16: L!((128, 64):(1@0, 1@1)), L!((16, 16):(4@1, 1@0)), L!((4, 8):(1@1, 16@0)), 4
    }
    shape! {
        /// Short rows, in 16-byte accesses: 256 rows by 16 words.
        Short16: L!((256, 16):(1@0, 1@1)), L!((4, 64):(4@1, 1@0)), L!((4, 4):(1@1, 64@0)), 4
    }
    shape! {
        /// Rows of 128 units and more, one unit an access: 16 rows by 128 units.
        Long: L!((16, 128):(1@0, 1@1)), L!((128, 2):(1@1, 1@0)), L!(8:2@0), 1
    }
    shape! {
        /// Short rows, one unit an access: 256 rows by 8 units.
        Short: L!((256, 8):(1@0, 1@1)), L!((8, 32):(1@1, 1@0)), L!(8:32@0), 1
    }
}

macro_rules! instances {
    ($index:ty: $($(#[$doc:meta])* $name:ident = $shape:ident, $unit:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256)]
            pub unsafe fn $name(
                table: Global<$unit>,
                indices: Global<$index>,
                output: GlobalMut<$unit>,
                first_miss: GlobalMut<u64>,
                extents: Extents,
            ) = gather::<shapes::$shape, $unit, $index>;
        )+}
    };
}

/// Instances for 32-bit indices.
#[cfg(any(not(target_arch = "nvptx64"), gather))]
pub mod i32 {
    use super::*;

    instances! { i32:
        /// 16-byte accesses, rows of 2 KiB and more.
        gather_i32_long16 = Long16, u32;
        /// 16-byte accesses, rows from 256 bytes.
        gather_i32_medium16 = Medium16, u32;
        /// 16-byte accesses, short rows.
        gather_i32_short16 = Short16, u32;
        /// 4-byte accesses, long rows.
        gather_i32_long4 = Long, u32;
        /// 4-byte accesses, short rows.
        gather_i32_short4 = Short, u32;
        /// 2-byte accesses, long rows.
        gather_i32_long2 = Long, u16;
        /// 2-byte accesses, short rows.
        gather_i32_short2 = Short, u16;
        /// 1-byte accesses, long rows.
        gather_i32_long1 = Long, u8;
        /// 1-byte accesses, short rows.
        gather_i32_short1 = Short, u8;
    }
}

/// Instances for 64-bit indices.
#[cfg(any(not(target_arch = "nvptx64"), gather))]
pub mod i64 {
    use super::*;

    instances! { i64:
        /// 16-byte accesses, rows of 2 KiB and more.
        gather_i64_long16 = Long16, u32;
        /// 16-byte accesses, rows from 256 bytes.
        gather_i64_medium16 = Medium16, u32;
        /// 16-byte accesses, short rows.
        gather_i64_short16 = Short16, u32;
        /// 4-byte accesses, long rows.
        gather_i64_long4 = Long, u32;
        /// 4-byte accesses, short rows.
        gather_i64_short4 = Short, u32;
        /// 2-byte accesses, long rows.
        gather_i64_long2 = Long, u16;
        /// 2-byte accesses, short rows.
        gather_i64_short2 = Short, u16;
        /// 1-byte accesses, long rows.
        gather_i64_long1 = Long, u8;
        /// 1-byte accesses, short rows.
        gather_i64_short1 = Short, u8;
    }
}
