//! Owners: how threads share sums of rows. A few lanes own the sum of some rows, each lane some columns of it, and go
//! through the rows in order. So the sum does not depend on the order in which blocks run.

use core::marker::PhantomData;

use cutlet_device::{DeviceData, Float, Global};
use cutlet_layout_core::{
    Bound, Gather, Inner, L, Partition, RowMajor, StaticLayout, Tensor, ThreadValue, Tv,
    covers_exactly, each, tile_extent,
};

use super::Indices;

/// How a block of 256 threads covers a tile of owners.
pub trait Owners {
    /// The block's tile: (owners, columns).
    type Tile: StaticLayout;
    /// Thread-value layout of the tile: a thread has consecutive columns of one owner.
    type Columns: ThreadValue;
    /// The thread's columns of one row.
    type Row: ThreadValue;
    /// How numbers are read: one by one, or in pairs.
    type Word<T: Float + Default>: Word<T>;
    /// The words of the thread's columns of the rows that it has in flight at a time.
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

/// Numbers of a row that are read together.
pub trait Word<T>: DeviceData + Default {
    /// How many there are.
    const NUMBERS: usize;
    /// Number `nth` as `f32`.
    fn number(self, nth: usize) -> f32;
}

impl<T: Float + Default> Word<T> for T {
    const NUMBERS: usize = 1;

    #[inline(always)]
    fn number(self, _: usize) -> f32 {
        self.to_f32()
    }
}

/// Two numbers of 16 bits. As single numbers, the compiler would unpack them where they are read, and wait for each row
/// before it reads the next one.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Pair<T> {
    bits: u32,
    of: PhantomData<T>,
}

// SAFETY: the only field that is not empty is device data.
unsafe impl<T: Float> DeviceData for Pair<T> {}

impl<T> Default for Pair<T> {
    #[inline(always)]
    fn default() -> Self {
        Self {
            bits: 0,
            of: PhantomData,
        }
    }
}

impl<T: Float + Default> Word<T> for Pair<T> {
    const NUMBERS: usize = 2;

    #[inline(always)]
    fn number(self, nth: usize) -> f32 {
        const { assert!(size_of::<T>() == 2, "a pair has numbers of 16 bits") };
        T::from_low_bits(self.bits >> (16 * nth)).to_f32()
    }
}

macro_rules! owners {
    ($(#[$doc:meta])* $name:ident: $tile:ty, $thr:ty, $columns:literal of $words:literal $word:ident, $access_of_f32:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Owners for $name {
            type Tile = $tile;
            type Columns = Tv<$thr, L!($columns:1@1), $columns>;
            type Row = Tv<L!(1:1@0), L!($columns:1@1), $columns>;
            type Word<T: Float + Default> = owners!(@word $word T);
            type Rows = Tv<L!(1:1@0), L!(($words, 4):(1@1, 1@0)), $words>;
            type Sum = Tv<L!(1:1@0), L!($columns:1@1), $access_of_f32>;
            type Sums = Tv<L!(1:1@0), L!(($columns, 8):(1@1, 1@0)), $access_of_f32>;
        }
        const _: () = assert!(covers_exactly::<<$name as Owners>::Columns>(tile_extent::<$tile>()));
    };
    (@word One $number:ident) => { $number };
    (@word Pair $number:ident) => { Pair<$number> };
}
owners! {
    /// Rows from 256 bytes, in accesses of four numbers: 8 owners by 128 columns.
    Long4: L!((8, 128):(1@0, 1@1)), L!((32, 8):(4@1, 1@0)), 4 of 4 One, 4
}
owners! {
    /// Short rows, in accesses of four numbers: 64 owners by 16 columns.
    Short4: L!((64, 16):(1@0, 1@1)), L!((4, 64):(4@1, 1@0)), 4 of 4 One, 4
}
owners! {
    /// Rows from 256 bytes, in accesses of eight numbers: 8 owners by 256 columns.
    Long8: L!((8, 256):(1@0, 1@1)), L!((32, 8):(8@1, 1@0)), 8 of 4 Pair, 4
}
owners! {
    /// Short rows, in accesses of eight numbers: 64 owners by 32 columns.
    Short8: L!((64, 32):(1@0, 1@1)), L!((4, 64):(8@1, 1@0)), 8 of 4 Pair, 4
}
owners! {
    /// Rows of any alignment, one number an access: 8 owners by 32 columns.
    Single: L!((8, 32):(1@0, 1@1)), L!((32, 8):(1@1, 1@0)), 1 of 1 One, 1
}

/// Rows of `T` that indices name, in words, from a thread's first column on.
pub type NamedRows<S, T> = Tensor<Global<<S as Owners>::Word<T>>, Gather<Indices>>;

/// The columns from `column` on of the rows of a table that indices name. `ld` is the distance of its rows in numbers.
///
/// # Safety
/// The table must have so many rows and columns, and be there. There must be so many indices. If numbers are read in
/// pairs, rows must begin at multiples of a pair, and `column` and the columns must be even.
#[inline(always)]
pub unsafe fn named_rows<S: Owners, T: Float + Default>(
    table: Global<T>,
    (table_rows, ld): (i64, i64),
    (indices, count): (Indices, i32),
    (column, columns): (i32, i32),
    clamps: bool,
) -> NamedRows<S, T> {
    let words = const { <S::Word<T> as Word<T>>::NUMBERS as i32 };
    let extent = [count, (columns - column) / words];
    let table = table.offset(i64::from(column)).as_ptr();
    // SAFETY: as promised by the caller.
    unsafe {
        let rows = Gather::new(indices, extent, table_rows, ld / i64::from(words)).clamped(clamps);
        Tensor::new(Global::from_ptr(table.cast()), rows)
    }
}

/// Calls `f(column, nth, value)` for each value of a batch of rows that exists: for the thread's column `column` of the
/// batch's row `nth`. All rows are in flight before the first call.
#[inline(always)]
pub fn each_value<T, W: Word<T>, I: Inner, R: ThreadValue>(
    rows: &Partition<Global<W>, I, R>,
    mut f: impl FnMut(usize, usize, f32),
) {
    let words = rows.load(W::default());
    let along = const { R::Val::LAYOUT.mode(0).size() as usize };
    each::<R::Val>(|v| {
        if rows.bound().holds(v) {
            for nth in 0..W::NUMBERS {
                let column = v % along * W::NUMBERS + nth;
                f(column, v / along, words.get(v).number(nth));
            }
        }
    });
}

/// The thread's columns of batch number `nth` of some rows.
#[inline(always)]
pub fn batch<S: Owners, T: Float + Default>(
    rows: &NamedRows<S, T>,
    nth: u32,
) -> Partition<Global<S::Word<T>>, Gather<Indices>, S::Rows> {
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
