//! Ordered scatter-add: each row of a table gets the rows of a source that name it, in the order of the source. The sum
//! is in f32, and the same in every run.

use cutlet_device::{DeviceData, Float, Global, GlobalMut, block_idx, instantiate, thread_idx};
use cutlet_layout_core::{Engine, Gather, RowMajor, Tensor};
use half::{bf16, f16};

use super::Indices;
use super::owners::{BATCH, Long4, Long8, Owners, Short4, Short8, Single, batch, each_value};

/// Extents of an ordered scatter-add.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OrderedAddArgs {
    /// Elements from one row of the source to the next.
    pub ld_source: i64,
    /// Elements from one row of the table to the next.
    pub ld_table: i64,
    /// Rows of the source, each with a key.
    pub rows: i32,
    /// Rows of the table.
    pub table_rows: i32,
    /// Elements of a row.
    pub columns: i32,
    /// Unused.
    pub padding: u32,
}

/// Adds row `order[p]` of the source to row `keys[p]` of the table, for all sorted positions `p` whose key is a row.
/// The owner of a row is the first position with its key.
///
/// # Safety
/// Source, keys, order and table must have these extents. The keys are sorted.
#[inline(always)]
unsafe fn ordered_add<S: Owners, T: Float + Default>(
    source: Global<T>,
    keys: Global<u32>,
    order: Global<i32>,
    table: GlobalMut<T>,
    args: OrderedAddArgs,
) {
    let positions = RowMajor::new([args.rows, args.columns], 0);
    // SAFETY: nothing is read through this tensor. It places the thread.
    let [first, column] = unsafe { Tensor::new(source, positions) }
        .local_tile::<S::Tile>((block_idx().x, block_idx().y))
        .partition::<S::Columns>(thread_idx())
        .bound()
        .coordinate(0);
    if first >= args.rows || column >= args.columns {
        return;
    }
    // SAFETY: the launcher promises the keys.
    let (key, is_owner) = unsafe {
        let key = keys.load(i64::from(first));
        let before = first == 0 || keys.load(i64::from(first) - 1) != key;
        (key, before && key < args.table_rows as u32)
    };
    if !is_owner {
        return;
    }
    let columns = args.columns - column;
    let at = i64::from(key) * args.ld_table + i64::from(column);
    // SAFETY: the key is a row of the table, which belongs to this owner.
    let sum = unsafe { Tensor::new(table.offset(at), RowMajor::new([1, columns], 0)) }
        // The other columns after the thread's own are those of other threads.
        .partition_partial::<S::Row>(0u32);
    let mut sums = sum.load(T::default()).map(|_, value| value.to_f32());

    let mut begin = first;
    loop {
        // SAFETY: the launcher promises the keys, and a row of the source for each position.
        let (count, rows) = unsafe {
            let count = count_of_key(keys, key, begin, args.rows);
            let of_owner = Indices::new(order, false).offset(i64::from(begin));
            let rows = Gather::new(
                of_owner,
                [count, columns],
                i64::from(args.rows),
                args.ld_source,
            );
            (count, Tensor::new(source.offset(i64::from(column)), rows))
        };
        each_value::<S, _, _>(&batch::<S, _, _>(&rows, 0), |column, _, value| {
            sums.set(column, sums.get(column) + value);
        });
        if count < BATCH {
            break;
        }
        begin += BATCH;
    }
    sum.store_with(|column| T::from_f32(sums.get(column)));
}

/// How many of the next positions have this key, at most a batch.
///
/// # Safety
/// There must be a key at each position below `end`.
#[inline(always)]
unsafe fn count_of_key(keys: Global<u32>, key: u32, begin: i32, end: i32) -> i32 {
    let mut count = 0;
    let mut all = true;
    let mut nth = 0;
    while nth < BATCH {
        let inside = begin + nth < end;
        // SAFETY: as promised by the caller.
        let next = unsafe { keys.load_if(i64::from(begin + nth), inside) };
        all &= inside && next == key;
        count += i32::from(all);
        nth += 1;
    }
    count
}

macro_rules! instances {
    ($($(#[$doc:meta])* $name:ident = $owners:ident, $element:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256)]
            pub unsafe fn $name(
                source: Global<$element>,
                keys: Global<u32>,
                order: Global<i32>,
                table: GlobalMut<$element>,
                args: OrderedAddArgs,
            ) = ordered_add::<$owners, $element>;
        )+}
    };
}
instances! {
    /// f32 in 16-byte accesses, rows from 256 bytes.
    ordered_add_f32_long = Long4, f32;
    /// f32 in 16-byte accesses, short rows.
    ordered_add_f32_short = Short4, f32;
    /// f32 one by one.
    ordered_add_f32_single = Single, f32;
    /// bf16 in 16-byte accesses, rows from 256 bytes.
    ordered_add_bf16_long = Long8, bf16;
    /// bf16 in 16-byte accesses, short rows.
    ordered_add_bf16_short = Short8, bf16;
    /// bf16 one by one.
    ordered_add_bf16_single = Single, bf16;
    /// f16 in 16-byte accesses, rows from 256 bytes.
    ordered_add_f16_long = Long8, f16;
    /// f16 in 16-byte accesses, short rows.
    ordered_add_f16_short = Short8, f16;
    /// f16 one by one.
    ordered_add_f16_single = Single, f16;
}
