//! Dispatch: the kernel instance for rows of a given alignment and length.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_kernels::gather::{Extents, Shape, i32 as by_i32, i64 as by_i64, shapes};
use cutlet_layout_core::{RowIndex, tile_extent};

use crate::{Matrix, MatrixMut};

/// A gather kernel for units `U` and indices `X`.
pub type Instance<U, X> = Kernel<(Global<U>, Global<X>, GlobalMut<U>, GlobalMut<u64>, Extents)>;

/// An index type of [`gather`](fn@crate::gather): `i32` or `i64`.
pub trait Index: DeviceData + RowIndex + sealed::Instances {}
impl Index for i32 {}
impl Index for i64 {}

/// The unit that a kernel copies rows in: words of 4 bytes, halves of 2, or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Words,
    Halves,
    Bytes,
}

/// How threads access rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// 16-byte accesses, for rows of 2 KiB or more.
    Long16,
    /// 16-byte accesses, for rows from 256 bytes to 2 KiB.
    Medium16,
    /// 16-byte accesses, for shorter rows.
    Short16,
    /// Accesses of one unit, for rows of 128 units or more.
    Long,
    /// Accesses of one unit, for shorter rows.
    Short,
}

/// The unit of a gather's rows, and how threads access the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub unit: Unit,
    reach: Reach,
}

impl Access {
    /// The widest access that the alignment of all rows of table and output allows.
    pub fn of<T: DeviceData>(table: &Matrix<'_, T>, output: &MatrixMut<'_, T>) -> Self {
        let bytes = |elements: usize| (elements * size_of::<T>()) as u64;
        let row = bytes(output.columns());
        let bits = table.view.address()
            | output.view.address()
            | bytes(to_next_row(table.rows(), table.ld()))
            | bytes(to_next_row(output.rows(), output.ld()))
            | row;
        let by_unit = |unit: u64| {
            if row / unit >= 128 {
                Reach::Long
            } else {
                Reach::Short
            }
        };
        let (unit, reach) = match 1u64 << bits.trailing_zeros().min(4) {
            16 if row >= 2048 => (Unit::Words, Reach::Long16),
            16 if row >= 256 => (Unit::Words, Reach::Medium16),
            16 => (Unit::Words, Reach::Short16),
            4 | 8 => (Unit::Words, by_unit(4)),
            2 => (Unit::Halves, by_unit(2)),
            _ => (Unit::Bytes, by_unit(1)),
        };
        Access { unit, reach }
    }

    /// Rows and units of a block's tile.
    pub fn tile(&self) -> [usize; 2] {
        match self.reach {
            Reach::Long16 => tile::<shapes::Long16>(),
            Reach::Medium16 => tile::<shapes::Medium16>(),
            Reach::Short16 => tile::<shapes::Short16>(),
            Reach::Long => tile::<shapes::Long>(),
            Reach::Short => tile::<shapes::Short>(),
        }
    }
}

/// Elements from one row to the next; 0 for a single row, whose leading dimension may be any number.
pub fn to_next_row(rows: usize, ld: usize) -> usize {
    if rows > 1 { ld } else { 0 }
}

fn tile<S: Shape>() -> [usize; 2] {
    tile_extent::<S::Tile>().map(|extent| extent as usize)
}

mod sealed {
    use super::{Access, DeviceData, Instance, RowIndex};

    /// The kernels for an index type, by unit.
    pub trait Instances: DeviceData + RowIndex {
        fn words(access: &Access) -> &'static Instance<u32, Self>;
        fn halves(access: &Access) -> &'static Instance<u16, Self>;
        fn bytes(access: &Access) -> &'static Instance<u8, Self>;
    }
}

macro_rules! instances {
    ($index:ty, $module:ident: $long16:ident $medium16:ident $short16:ident
        $long4:ident $short4:ident $long2:ident $short2:ident $long1:ident $short1:ident) => {
        impl sealed::Instances for $index {
            fn words(access: &Access) -> &'static Instance<u32, Self> {
                match access.reach {
                    Reach::Long16 => &$module::$long16,
                    Reach::Medium16 => &$module::$medium16,
                    Reach::Short16 => &$module::$short16,
                    Reach::Long => &$module::$long4,
                    Reach::Short => &$module::$short4,
                }
            }

            fn halves(access: &Access) -> &'static Instance<u16, Self> {
                match access.reach {
                    Reach::Short => &$module::$short2,
                    _ => &$module::$long2,
                }
            }

            fn bytes(access: &Access) -> &'static Instance<u8, Self> {
                match access.reach {
                    Reach::Short => &$module::$short1,
                    _ => &$module::$long1,
                }
            }
        }
    };
}
instances!(i32, by_i32: gather_i32_long16 gather_i32_medium16 gather_i32_short16
    gather_i32_long4 gather_i32_short4 gather_i32_long2 gather_i32_short2
    gather_i32_long1 gather_i32_short1);
instances!(i64, by_i64: gather_i64_long16 gather_i64_medium16 gather_i64_short16
    gather_i64_long4 gather_i64_short4 gather_i64_long2 gather_i64_short2
    gather_i64_long1 gather_i64_short1);
