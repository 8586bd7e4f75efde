//! Scatter-add: each row of a source is added to the row of a table that an index names, by the additions of the L2
//! cache.

use cutlet_device::{Global, GlobalMut, RedAdd, RedAddElement};
use half::{bf16, f16};

use super::scatter::store_rows;
use super::{RowArgs, Shape, row_instances};

/// Adds row `r` of the source to row `indices[r]` of the table. Numbers of 16 bits are added in pairs if rows are
/// aligned for it.
///
/// # Safety
/// As [`store_rows`].
#[inline(always)]
unsafe fn scatter_add<S: Shape, T: RedAddElement + Default>(
    source: Global<T>,
    indices: Global<i32>,
    table: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: RowArgs,
) {
    // SAFETY: as promised by the caller. Several threads may add to one element, which the engine allows.
    unsafe { store_rows::<S, _>(source, indices, RedAdd::to(table), first_miss, args) };
}

row_instances! { scatter_add:
    /// f32 in 16-byte accesses, rows of 2 KiB and more.
    scatter_add_f32_long16 = Long16, f32;
    /// f32 in 16-byte accesses, rows from 256 bytes.
    scatter_add_f32_medium16 = Medium16, f32;
    /// f32 in 16-byte accesses, short rows.
    scatter_add_f32_short16 = Short16, f32;
    /// f32 one by one, long rows.
    scatter_add_f32_long = Long, f32;
    /// f32 one by one, short rows.
    scatter_add_f32_short = Short, f32;
    /// bf16 in 16-byte accesses, rows of 2 KiB and more.
    scatter_add_bf16_long16 = Long16, [bf16; 2];
    /// bf16 in 16-byte accesses, rows from 256 bytes.
    scatter_add_bf16_medium16 = Medium16, [bf16; 2];
    /// bf16 in 16-byte accesses, short rows.
    scatter_add_bf16_short16 = Short16, [bf16; 2];
    /// bf16 one by one, long rows.
    scatter_add_bf16_long = Long, bf16;
    /// bf16 one by one, short rows.
    scatter_add_bf16_short = Short, bf16;
    /// f16 in 16-byte accesses, rows of 2 KiB and more.
    scatter_add_f16_long16 = Long16, [f16; 2];
    /// f16 in 16-byte accesses, rows from 256 bytes.
    scatter_add_f16_medium16 = Medium16, [f16; 2];
    /// f16 in 16-byte accesses, short rows.
    scatter_add_f16_short16 = Short16, [f16; 2];
    /// f16 one by one, long rows.
    scatter_add_f16_long = Long, f16;
    /// f16 one by one, short rows.
    scatter_add_f16_short = Short, f16;
}
