//! Ordered scatter-add: each row of a table gets the rows of a source that name it, in an order that depends on the
//! indices alone. Sums are in f32, and the same in every run and on every device.
//!
//! The rows of the source are sorted by the row of the table that they name, its *key*. The rows of a key are cut into
//! *pieces* of 2^[`piece_bits`](OrderedAddArgs::piece_bits) rows; the last piece may be shorter. The first piece is
//! added to the table's row, row after row. Each later piece is summed by owners of its own, row after row. Its sum is
//! added to the table's row after the pieces before it. So a key with most of the rows keeps many threads busy. Three
//! kernels do it:
//!
//! | kernel | rows |
//! |---|---|
//! | `ordered_sum_…` | sums of later pieces |
//! | `ordered_fold_…` | first pieces that later ones follow, then the sums of those |
//! | `ordered_add_…` | keys of a single piece |
//!
//! Later pieces begin at least as many positions apart as a piece has rows. So at most one begins in each *chunk* of as
//! many sorted positions, and the number of the chunk is the place of the piece's sum.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, instantiate,
    thread_idx,
};
use cutlet_layout_core::{Engine, Fragment, Partition, RowMajor, Tensor, ThreadValue};
use half::{bf16, f16};

use super::Indices;
use super::owners::{
    BATCH, BatchOfSums, Long4, Long8, Owners, Short4, Short8, Single, batch, batch_of_sums,
    each_value, named_rows,
};
use super::sorting::keys_below;

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
    /// The binary logarithm of the rows of a piece, which are the positions of a chunk.
    pub piece_bits: u32,
}

/// Columns of the rows of a source, which are sorted by key.
struct SortedRows<T: Float> {
    source: Global<T>,
    keys: Global<u32>,
    order: Global<i32>,
    args: OrderedAddArgs,
    /// The thread's first column.
    column: i32,
}

/// The thread's sums of its columns.
type Sums<S> = Fragment<f32, <<S as Owners>::Row as ThreadValue>::Val>;

impl<T: Float + Default> SortedRows<T> {
    /// The thread's owner among `owners`, with the thread's columns of the rows; nothing if there is no such owner or
    /// column.
    #[inline(always)]
    fn of_owner<S: Owners>(
        thread: ThreadIdx<impl ThreadGroup>,
        source: Global<T>,
        keys: Global<u32>,
        order: Global<i32>,
        args: OrderedAddArgs,
        owners: i32,
    ) -> Option<(i32, Self)> {
        // SAFETY: nothing is read through this tensor. It places the thread.
        let [owner, column] =
            unsafe { Tensor::new(keys, RowMajor::new([owners, args.columns], 0)) }
                .local_tile::<S::Tile>((block_idx().x, block_idx().y))
                .partition::<S::Columns>(thread)
                .bound()
                .coordinate(0);
        let rows = SortedRows {
            source,
            keys,
            order,
            args,
            column,
        };
        (owner < owners && column < args.columns).then_some((owner, rows))
    }

    /// The thread's columns of a row of the table.
    ///
    /// # Safety
    /// The table must have this row, which no other thread accesses.
    #[inline(always)]
    unsafe fn row_of_table<S: Owners>(
        &self,
        table: GlobalMut<T>,
        key: u32,
    ) -> Partition<GlobalMut<T>, RowMajor, S::Row> {
        let at = i64::from(key) * self.args.ld_table + i64::from(self.column);
        // SAFETY: as promised by the caller.
        unsafe { Tensor::new(table.offset(at), RowMajor::new([1, self.columns()], 0)) }
            // The other columns after the thread's own are those of other threads.
            .partition_partial::<S::Row>(0u32)
    }

    /// Columns from the thread's first one on.
    #[inline(always)]
    fn columns(&self) -> i32 {
        self.args.columns - self.column
    }

    /// Whether the key of a position is this one. The position may lie behind the last one.
    ///
    /// # Safety
    /// There must be a key for each row.
    #[inline(always)]
    unsafe fn has_key(&self, position: i64, key: u32) -> bool {
        let exists = position < i64::from(self.args.rows);
        // SAFETY: as promised by the caller.
        unsafe { self.keys.load_if(position, exists) == key && exists }
    }

    /// Adds the rows of one piece to the sums, one after the other.
    ///
    /// # Safety
    /// There must be a key and a row of the source for each position.
    #[inline(always)]
    unsafe fn add_piece<S: Owners>(&self, sums: &mut Sums<S>, key: u32, piece_begin: i32) {
        let left = self.args.rows - piece_begin;
        let mut len = left.min(self.args.piece());
        let mut begin = piece_begin;
        loop {
            // SAFETY: as promised by the caller.
            let (count, rows) = unsafe {
                let count = self.count_of_key(key, begin, len);
                let of_owner = Indices::new(self.order, false).offset(i64::from(begin));
                let rows = named_rows::<S, T>(
                    self.source,
                    (i64::from(self.args.rows), self.args.ld_source),
                    (of_owner, count),
                    (self.column, self.args.columns),
                    false,
                );
                (count, rows)
            };
            each_value::<T, _, _, _>(&batch::<S, T>(&rows, 0), |column, _, value| {
                sums.set(column, sums.get(column) + value);
            });
            if count < BATCH {
                break;
            }
            begin += BATCH;
            len -= BATCH;
        }
    }

    /// How many of the next `len` positions have this key, at most a batch.
    ///
    /// # Safety
    /// There must be a key at each of these positions.
    #[inline(always)]
    unsafe fn count_of_key(&self, key: u32, begin: i32, len: i32) -> i32 {
        let mut count = 0;
        let mut all = true;
        let mut nth = 0;
        while nth < BATCH {
            let inside = nth < len;
            // SAFETY: as promised by the caller.
            let next = unsafe { self.keys.load_if(i64::from(begin) + i64::from(nth), inside) };
            all &= inside && next == key;
            count += i32::from(all);
            nth += 1;
        }
        count
    }

    /// The later piece that begins in a chunk.
    ///
    /// # Safety
    /// There must be a key for each row, and the chunk must have a position.
    #[inline(always)]
    unsafe fn later_piece(&self, chunk: i32) -> Option<LaterPiece> {
        let start = chunk << self.args.piece_bits;
        // SAFETY: as promised by the caller.
        unsafe {
            let key = self.keys.load(i64::from(start));
            let goes_on = start > 0 && self.keys.load(i64::from(start) - 1) == key;
            if !goes_on || key >= self.args.table_rows as u32 {
                return None;
            }
            let first = keys_below(self.keys, start, key);
            let before = ((start - first - 1) >> self.args.piece_bits) + 1;
            let begin = i64::from(first) + (i64::from(before) << self.args.piece_bits);
            self.has_key(begin, key).then_some(LaterPiece {
                key,
                first,
                begin: begin as i32,
                before,
            })
        }
    }
}

/// A piece that is not the first one of its key.
struct LaterPiece {
    key: u32,
    /// The first position of the key.
    first: i32,
    /// The first position of the piece.
    begin: i32,
    /// Pieces of the key before this one.
    before: i32,
}

/// Adds the rows of each key that has a single piece. The owner of a row of the table is the first position of its key.
///
/// # Safety
/// Source, keys, order and table must have these extents. The keys are sorted.
#[inline(always)]
unsafe fn ordered_add<S: Owners, T: Float + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    keys: Global<u32>,
    order: Global<i32>,
    table: GlobalMut<T>,
    args: OrderedAddArgs,
) {
    let Some((first, rows)) =
        SortedRows::of_owner::<S>(thread, source, keys, order, args, args.rows)
    else {
        return;
    };
    // SAFETY: the launcher promises the keys.
    let (key, is_owner) = unsafe {
        let key = keys.load(i64::from(first));
        let begins = first == 0 || keys.load(i64::from(first) - 1) != key;
        let is_long = rows.has_key(i64::from(first) + i64::from(args.piece()), key);
        (key, begins && !is_long && key < args.table_rows as u32)
    };
    if !is_owner {
        return;
    }
    // SAFETY: the key is a row of the table, which belongs to this owner. The launcher promises the rows.
    unsafe {
        let row = rows.row_of_table::<S>(table, key);
        let mut sums = row.load(T::default()).map(|_, value| value.to_f32());
        rows.add_piece::<S>(&mut sums, key, first);
        row.store_with(|column| T::from_f32(sums.get(column)));
    }
}

/// Writes the sum of the later piece that begins in a chunk to the chunk's row of `partials`.
///
/// # Safety
/// As [`ordered_add`]. There must be a row of `partials` for each chunk.
#[inline(always)]
unsafe fn ordered_sum<S: Owners, T: Float + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    keys: Global<u32>,
    order: Global<i32>,
    partials: GlobalMut<f32>,
    args: OrderedAddArgs,
) {
    let chunks = args.chunks();
    let Some((chunk, rows)) = SortedRows::of_owner::<S>(thread, source, keys, order, args, chunks)
    else {
        return;
    };
    // SAFETY: the launcher promises the keys and the rows. The chunk's row of the sums belongs to this owner.
    unsafe {
        let Some(piece) = rows.later_piece(chunk) else {
            return;
        };
        let mut sums = Sums::<S>::filled(0.0);
        rows.add_piece::<S>(&mut sums, piece.key, piece.begin);
        let at = i64::from(chunk) * i64::from(args.columns) + i64::from(rows.column);
        Tensor::new(partials.offset(at), RowMajor::new([1, rows.columns()], 0))
            .partition_partial::<S::Sum>(0u32)
            .store_with(|column| sums.get(column));
    }
}

/// Adds the first piece of each key that has several, and then the sums of the later pieces. The owner is the chunk in
/// which the key's second piece begins.
///
/// # Safety
/// As [`ordered_sum`], which wrote the sums.
#[inline(always)]
unsafe fn ordered_fold<S: Owners, T: Float + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    keys: Global<u32>,
    order: Global<i32>,
    sums_of_pieces: Global<f32>,
    table: GlobalMut<T>,
    args: OrderedAddArgs,
) {
    let chunks = args.chunks();
    let Some((chunk, rows)) = SortedRows::of_owner::<S>(thread, source, keys, order, args, chunks)
    else {
        return;
    };
    // SAFETY: the launcher promises the keys, the rows and the sums. The key is a row of the table, which belongs to
    // this owner.
    unsafe {
        let Some(piece) = rows.later_piece(chunk) else {
            return;
        };
        if piece.before > 1 {
            return;
        }
        let row = rows.row_of_table::<S>(table, piece.key);
        let mut sums = row.load(T::default()).map(|_, value| value.to_f32());
        rows.add_piece::<S>(&mut sums, piece.key, piece.first);

        // The later pieces begin in successive chunks.
        let left = keys_below(keys, args.rows, piece.key + 1) - piece.begin;
        let later = ((left - 1) >> args.piece_bits) + 1;
        let at = i64::from(chunk) * i64::from(args.columns) + i64::from(rows.column);
        let extent = [later, rows.columns()];
        let partials = RowMajor::new(extent, i64::from(args.columns));
        let partials = Tensor::new(sums_of_pieces.offset(at), partials);
        for nth in 0..partials.tiles::<BatchOfSums>()[0] {
            each_value::<f32, _, _, _>(&batch_of_sums::<S>(&partials, nth), |column, _, sum| {
                sums.set(column, sums.get(column) + sum);
            });
        }
        row.store_with(|column| T::from_f32(sums.get(column)));
    }
}

impl OrderedAddArgs {
    /// Chunks of the sorted positions.
    #[inline(always)]
    fn chunks(&self) -> i32 {
        ((self.rows - 1) >> self.piece_bits) + 1
    }

    /// Rows of a piece, and positions of a chunk.
    #[inline(always)]
    fn piece(&self) -> i32 {
        1 << self.piece_bits
    }
}

/// The third kernel may have 128 registers. It needs fewer, but told so, the assembler does not spill to have more
/// blocks.
macro_rules! instances {
    ($($(#[$doc:meta])* $add:ident $sum:ident $fold:ident = $owners:ident, $element:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $add(
                source: Global<$element>,
                keys: Global<u32>,
                order: Global<i32>,
                table: GlobalMut<$element>,
                args: OrderedAddArgs,
            ) = ordered_add::<$owners, $element>(thread_idx(), ..);

            $(#[$doc])*
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $sum(
                source: Global<$element>,
                keys: Global<u32>,
                order: Global<i32>,
                partials: GlobalMut<f32>,
                args: OrderedAddArgs,
            ) = ordered_sum::<$owners, $element>(thread_idx(), ..);

            $(#[$doc])*
            #[kernel(threads = 256, min_blocks = 2, cpu = crate::cpu::BODY)]
            pub unsafe fn $fold(
                source: Global<$element>,
                keys: Global<u32>,
                order: Global<i32>,
                partials: Global<f32>,
                table: GlobalMut<$element>,
                args: OrderedAddArgs,
            ) = ordered_fold::<$owners, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    /// f32 in 16-byte accesses, rows from 256 bytes.
    ordered_add_f32_long ordered_sum_f32_long ordered_fold_f32_long = Long4, f32;
    /// f32 in 16-byte accesses, short rows.
    ordered_add_f32_short ordered_sum_f32_short ordered_fold_f32_short = Short4, f32;
    /// f32 one by one.
    ordered_add_f32_single ordered_sum_f32_single ordered_fold_f32_single = Single, f32;
    /// bf16 in 16-byte accesses, rows from 256 bytes.
    ordered_add_bf16_long ordered_sum_bf16_long ordered_fold_bf16_long = Long8, bf16;
    /// bf16 in 16-byte accesses, short rows.
    ordered_add_bf16_short ordered_sum_bf16_short ordered_fold_bf16_short = Short8, bf16;
    /// bf16 one by one.
    ordered_add_bf16_single ordered_sum_bf16_single ordered_fold_bf16_single = Single, bf16;
    /// f16 in 16-byte accesses, rows from 256 bytes.
    ordered_add_f16_long ordered_sum_f16_long ordered_fold_f16_long = Long8, f16;
    /// f16 in 16-byte accesses, short rows.
    ordered_add_f16_short ordered_sum_f16_short ordered_fold_f16_short = Short8, f16;
    /// f16 one by one.
    ordered_add_f16_single ordered_sum_f16_single ordered_fold_f16_single = Single, f16;
}
