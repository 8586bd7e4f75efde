//! Access: how threads access rows of a given alignment and length.

use cutlet_device::DeviceData;
use cutlet_kernels::gather::sets::{self, Set};
use cutlet_kernels::gather::{Shape, shapes};
use cutlet_layout_core::tile_extent;

use crate::{Matrix, MatrixMut};

/// The unit in which a kernel copies rows of any type: words of 4 bytes, halves of 2, or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Words,
    Halves,
    Bytes,
}

/// How threads reach the units of a row.
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

/// The unit of the rows, and how threads reach the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub unit: Unit,
    pub reach: Reach,
}

impl Access {
    /// The widest access that the alignment of all rows of both matrices allows.
    pub fn of<T: DeviceData>(from: &Matrix<'_, T>, to: &MatrixMut<'_, T>) -> Self {
        let row = to.columns() * size_of::<T>();
        let (unit, bytes) = match alignment(from, to) {
            4.. => (Unit::Words, 4),
            2 => (Unit::Halves, 2),
            _ => (Unit::Bytes, 1),
        };
        let reach = Reach::of(alignment(from, to), row, bytes);
        Access { unit, reach }
    }
}

impl Reach {
    /// The reach in rows of numbers that a kernel takes one by one, or in accesses of 16 bytes.
    pub fn of_numbers<T: DeviceData>(from: &Matrix<'_, T>, to: &MatrixMut<'_, T>) -> Self {
        let row = to.columns() * size_of::<T>();
        Reach::of(alignment(from, to), row, size_of::<T>())
    }

    /// The reach in rows of this many bytes.
    fn of(alignment: u64, row: usize, unit: usize) -> Self {
        match (alignment, row) {
            (16, 2048..) => Reach::Long16,
            (16, 256..) => Reach::Medium16,
            (16, _) => Reach::Short16,
            _ if row / unit >= 128 => Reach::Long,
            _ => Reach::Short,
        }
    }

    /// Whether an access has 16 bytes.
    pub fn is_wide(self) -> bool {
        matches!(self, Reach::Long16 | Reach::Medium16 | Reach::Short16)
    }

    /// Rows and units of the tile of a block that combines rows.
    pub fn set(self) -> [usize; 2] {
        match self {
            Reach::Long16 => set_of::<sets::Long16>(),
            Reach::Medium16 => set_of::<sets::Medium16>(),
            Reach::Short16 => set_of::<sets::Short16>(),
            Reach::Long => set_of::<sets::Long>(),
            Reach::Short => set_of::<sets::Short>(),
        }
    }

    /// Rows and units of a block's tile.
    pub fn tile(self) -> [usize; 2] {
        match self {
            Reach::Long16 => tile_of::<shapes::Long16>(),
            Reach::Medium16 => tile_of::<shapes::Medium16>(),
            Reach::Short16 => tile_of::<shapes::Short16>(),
            Reach::Long => tile_of::<shapes::Long>(),
            Reach::Short => tile_of::<shapes::Short>(),
        }
    }
}

/// The alignment of all rows of both matrices in bytes, at most that of the widest access. A row's length counts, too:
/// a wide access must not reach beyond it.
pub(super) fn alignment<T: DeviceData>(from: &Matrix<'_, T>, to: &MatrixMut<'_, T>) -> u64 {
    let bytes = |elements: usize| (elements * size_of::<T>()) as u64;
    crate::matrix::alignment(
        from.view.address()
            | to.view.address()
            | bytes(to_next_row(from.rows(), from.ld()))
            | bytes(to_next_row(to.rows(), to.ld()))
            | bytes(to.columns()),
    )
}

/// Elements from one row to the next; 0 for a single row, whose leading dimension may be any number.
pub fn to_next_row(rows: usize, ld: usize) -> usize {
    if rows > 1 { ld } else { 0 }
}

/// Rows and units of a set's tile.
fn set_of<S: Set>() -> [usize; 2] {
    tile_extent::<S::Tile>().map(|extent| extent as usize)
}

/// Rows and units of a shape's tile.
pub fn tile_of<S: Shape>() -> [usize; 2] {
    tile_extent::<S::Tile>().map(|extent| extent as usize)
}
