//! Scatter-add: each row of a source is added to the row of a table that an index names, by the additions of the L2
//! cache. Those of a block with equal indices are [combined](super::combined) before.
//!
//! Numbers of 16 bits are added in pairs if rows are aligned for it.

use cutlet_device::{Global, GlobalMut, instantiate, thread_idx};
use half::{bf16, f16};

use super::RowArgs;
use super::combined::{add_combined, bytes};
use super::sets::{Long, Long16, Medium16, Short, Short16};

/// Declares the instances.
///
/// Two blocks on a multiprocessor allow 128 registers. Instances for Hopper need at most 64, so that four blocks fit.
/// Told so, the assembler would spill those of bf16 for older GPUs.
macro_rules! instances {
    ($($(#[$doc:meta])* $name:ident = $set:ident, $unit:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256, min_blocks = 2, shared = bytes::<$set, $unit>(), cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                source: Global<$unit>,
                indices: Global<i32>,
                table: GlobalMut<$unit>,
                first_miss: GlobalMut<u64>,
                args: RowArgs,
            ) = add_combined::<$set, $unit>(thread_idx(), ..);
        )+}
    };
}
instances! {
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
