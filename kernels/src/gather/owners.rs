//! Owners: how threads share sums of rows. A few lanes own the sum of some rows, each lane some columns of it, and go
//! through the rows in order. So the sum does not depend on the order in which blocks run.

use cutlet_device::{Float, Global};
use cutlet_layout_core::{
    Bound, Engine, Gather, Inner, L, Partition, RowIndex, RowMajor, StaticLayout, Tensor,
    ThreadValue, Tv, covers_exactly, each, tile_extent,
};

/// How a block of 256 threads covers a tile of owners.
pub trait Owners {
    /// The block's tile: (owners, columns).
    type Tile: StaticLayout;
    /// Thread-value layout of the tile: a thread has consecutive columns of one owner.
    type Columns: ThreadValue;
    /// The thread's columns of one row.
    type Row: ThreadValue;
    /// The thread's columns of the rows that it has in flight at a time.
    type Rows: ThreadValue;
    /// The thread's columns of one row of sums in f32.
    type Sum: ThreadValue;
    /// The thread's columns of the rows of sums that it has in flight at a time.
    type Sums: ThreadValue;
}

/// Rows that a thread has in flight at a time.
pub type Batch = L!((4, 1):(1@0, 1@1));
/// Their number.
pub const BATCH: i32 = 4;
/// Rows of sums that a thread has in flight at a time.
pub type BatchOfSums = L!((8, 1):(1@0, 1@1));

macro_rules! owners {
    ($(#[$doc:meta])* $name:ident: $tile:ty, $thr:ty, $columns:literal, $access_of_f32:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Owners for $name {
            type Tile = $tile;
            type Columns = Tv<$thr, L!($columns:1@1), $columns>;
            type Row = Tv<L!(1:1@0), L!($columns:1@1), $columns>;
            type Rows = Tv<L!(1:1@0), L!(($columns, 4):(1@1, 1@0)), $columns>;
            type Sum = Tv<L!(1:1@0), L!($columns:1@1), $access_of_f32>;
            type Sums = Tv<L!(1:1@0), L!(($columns, 8):(1@1, 1@0)), $access_of_f32>;
        }
        const _: () = assert!(covers_exactly::<<$name as Owners>::Columns>(tile_extent::<$tile>()));
    };
}
owners! {
    /// Rows from 256 bytes, in accesses of four numbers: 8 owners by 128 columns.
    Long4: L!((8, 128):(1@0, 1@1)), L!((32, 8):(4@1, 1@0)), 4, 4
}
owners! {
    /// Short rows, in accesses of four numbers: 64 owners by 16 columns.
    Short4: L!((64, 16):(1@0, 1@1)), L!((4, 64):(4@1, 1@0)), 4, 4
}
owners! {
    /// Rows from 256 bytes, in accesses of eight numbers: 8 owners by 256 columns.
    Long8: L!((8, 256):(1@0, 1@1)), L!((32, 8):(8@1, 1@0)), 8, 4
}
owners! {
    /// Short rows, in accesses of eight numbers: 64 owners by 32 columns.
    Short8: L!((64, 32):(1@0, 1@1)), L!((4, 64):(8@1, 1@0)), 8, 4
}
owners! {
    /// Rows of any alignment, one number an access: 8 owners by 32 columns.
    Single: L!((8, 32):(1@0, 1@1)), L!((32, 8):(1@1, 1@0)), 1, 1
}

/// Calls `f(column, nth, value)` for each value of a batch of rows that exists: for the thread's column `column` of the
/// batch's row `nth`. All rows are in flight before the first call.
#[inline(always)]
pub fn each_value<S: Owners, T: Float + Default, I: Inner, R: ThreadValue>(
    rows: &Partition<Global<T>, I, R>,
    mut f: impl FnMut(usize, usize, f32),
) {
    let values = rows.load(T::default());
    let columns = const { <S::Row as ThreadValue>::Val::SIZE };
    each::<R::Val>(|v| {
        if rows.bound().holds(v) {
            f(v % columns, v / columns, values.get(v).to_f32());
        }
    });
}

/// The thread's columns of batch number `nth` of some rows.
#[inline(always)]
pub fn batch<S: Owners, T: Float, X: Engine<Element: RowIndex>>(
    rows: &Tensor<Global<T>, Gather<X>>,
    nth: u32,
) -> Partition<Global<T>, Gather<X>, S::Rows> {
    // A batch is tiled by rows alone: the columns are those of the thread, and of no tile.
    rows.local_tile::<Batch>((nth, 0u32))
        .partition_partial::<S::Rows>(0u32)
}

/// The thread's columns of batch number `nth` of some sums.
#[inline(always)]
pub fn batch_of_sums<S: Owners>(
    sums: &Tensor<Global<f32>, RowMajor>,
    nth: u32,
) -> Partition<Global<f32>, RowMajor, S::Sums> {
    sums.local_tile::<BatchOfSums>((nth, 0u32))
        .partition_partial::<S::Sums>(0u32)
}
