//! Embedding bag: the sum, the mean or the maximum of the rows of a table that each bag of indices names.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, instantiate, max_nan,
    thread_idx,
};
use cutlet_layout_core::{Engine, Fragment, RowMajor, Tensor, ThreadValue};
use half::{bf16, f16};

use super::args::report_miss;
use super::owners::{
    BATCH, Batch, Long4, Long8, Owners, Short4, Short8, Single, batch, each_value, named_rows,
};
use super::{Indices, OutOfRange};

/// Extents of bags, and what becomes of their rows.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct BagArgs {
    /// Rows of the table.
    pub table_rows: i64,
    /// Elements from one row of the table to the next.
    pub ld_table: i64,
    /// Elements from one row of the output to the next.
    pub ld_output: i64,
    /// Indices of all bags together.
    pub indices: i32,
    /// Bags, each a row of the output.
    pub bags: i32,
    /// Elements of a row.
    pub columns: i32,
    /// Indices of each bag, or a negative number if offsets say where bags begin.
    pub bag_len: i32,
    /// Not 0 if an index has 64 bits.
    pub wide_indices: u32,
    /// Not 0 if an offset has 64 bits.
    pub wide_offsets: u32,
    /// Not 0 if each row is multiplied by a weight.
    pub weighted: u32,
    /// What becomes of the rows of a bag.
    pub pooling: Pooling,
    /// What an index outside of the table means. Such a row counts in no bag.
    pub out_of_range: OutOfRange,
    /// Unused.
    pub padding: u32,
}

/// What becomes of the rows of a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceData)]
#[repr(C)]
pub struct Pooling {
    kind: u32,
}

impl Pooling {
    /// The sum of the rows.
    pub const SUM: Pooling = Pooling { kind: 0 };
    /// The sum over the number of rows.
    pub const MEAN: Pooling = Pooling { kind: 1 };
    /// The maximum in each column.
    pub const MAX: Pooling = Pooling { kind: 2 };
}

impl BagArgs {
    /// The positions of a bag's first index and of the one after its last. Offsets that do not increase make empty
    /// bags.
    ///
    /// # Safety
    /// There must be an offset for each bag and one for the end of the last, unless bags have a fixed length.
    #[inline(always)]
    unsafe fn bag(&self, offsets: Global<i32>, bag: i32) -> (i64, i64) {
        let (bag, all) = (i64::from(bag), i64::from(self.indices));
        let (begin, end) = match self.bag_len {
            ..0 => {
                let offsets = Indices::new(offsets, self.wide_offsets != 0);
                // SAFETY: as promised by the caller.
                unsafe { (offsets.load(bag), offsets.load(bag + 1)) }
            }
            len => (bag * i64::from(len), (bag + 1) * i64::from(len)),
        };
        let begin = begin.max(0).min(all);
        (begin, end.max(begin).min(all))
    }
}

/// `output[b]` = the pooled rows `table[indices[p]]`, for all positions `p` of bag `b`. An empty bag becomes zero.
///
/// # Safety
/// All operands must have these extents, and `first_miss` one element. There must be a weight for each index if rows
/// are weighted.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
unsafe fn embedding_bag<S: Owners, T: Float + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    table: Global<T>,
    indices: Global<i32>,
    offsets: Global<i32>,
    weights: Global<f32>,
    output: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: BagArgs,
) {
    let bags = RowMajor::new([args.bags, args.columns], args.ld_output);
    // SAFETY: the launcher promises the extents.
    let to = unsafe { Tensor::new(output, bags) }
        .local_tile::<S::Tile>((block_idx().x, block_idx().y))
        .partition::<S::Columns>(thread);
    let [bag, column] = to.bound().coordinate(0);
    if bag >= args.bags || column >= args.columns {
        return;
    }
    // SAFETY: the launcher promises the offsets, and an index for each position of the bag.
    let (begin, len, rows) = unsafe {
        let (begin, end) = args.bag(offsets, bag);
        let len = (end - begin) as i32;
        let of_bag = Indices::new(indices, args.wide_indices != 0).offset(begin);
        let rows = named_rows::<S, T>(
            table,
            (args.table_rows, args.ld_table),
            (of_bag, len),
            (column, args.columns),
            args.out_of_range.clamps(),
        );
        (begin, len, rows)
    };

    let is_max = args.pooling == Pooling::MAX;
    let start = if is_max { f32::NEG_INFINITY } else { 0.0 };
    let mut pooled = Fragment::<f32, <S::Row as ThreadValue>::Val>::filled(start);
    let mut counted = 0;
    for nth in 0..(len as u32).div_ceil(BATCH as u32) {
        let rows = batch::<S, T>(&rows, nth);
        // On their way together with the rows.
        let first = nth as i32 * BATCH;
        let weights = Fragment::<f32, Batch>::from_fn(|nth| {
            let position = first + nth as i32;
            match args.weighted != 0 && position < len {
                false => 1.0,
                // SAFETY: the launcher promises a weight for each position.
                true => unsafe { weights.load(begin + i64::from(position)) },
            }
        });
        each_value::<T, _, _, _>(&rows, |column, nth, value| {
            let old = pooled.get(column);
            pooled.set(
                column,
                match is_max {
                    true => max_nan(old, value),
                    false => old + weights.get(nth) * value,
                },
            );
            counted += u32::from(column == 0);
        });
        if args.out_of_range.is_error() && column == 0 {
            rows.bound().each_missing_row(|row| {
                // SAFETY: the launcher promises one element.
                unsafe { report_miss(first_miss, begin + row) };
            });
        }
    }
    to.store_with(|column| {
        T::from_f32(match (counted, args.pooling) {
            (0, _) => 0.0,
            (_, Pooling::MEAN) => pooled.get(column) / counted as f32,
            _ => pooled.get(column),
        })
    });
}

macro_rules! instances {
    ($($(#[$doc:meta])* $name:ident = $owners:ident, $element:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256, min_blocks = 4, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                table: Global<$element>,
                indices: Global<i32>,
                offsets: Global<i32>,
                weights: Global<f32>,
                output: GlobalMut<$element>,
                first_miss: GlobalMut<u64>,
                args: BagArgs,
            ) = embedding_bag::<$owners, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    /// f32 in 16-byte accesses, rows from 256 bytes.
    embedding_bag_f32_long = Long4, f32;
    /// f32 in 16-byte accesses, short rows.
    embedding_bag_f32_short = Short4, f32;
    /// f32 one by one.
    embedding_bag_f32_single = Single, f32;
    /// bf16 in 16-byte accesses, rows from 256 bytes.
    embedding_bag_bf16_long = Long8, bf16;
    /// bf16 in 16-byte accesses, short rows.
    embedding_bag_bf16_short = Short8, bf16;
    /// bf16 one by one.
    embedding_bag_bf16_single = Single, bf16;
    /// f16 in 16-byte accesses, rows from 256 bytes.
    embedding_bag_f16_long = Long8, f16;
    /// f16 in 16-byte accesses, short rows.
    embedding_bag_f16_short = Short8, f16;
    /// f16 one by one.
    embedding_bag_f16_single = Single, f16;
}
