//! Arguments of an operation on rows: extents, the type of the indices, and what an index outside of the table means.

use cutlet_device::{DeviceData, Global, GlobalMut, atomic_min};
use cutlet_layout_core::{BoundGather, Divisor, FragmentLayout, Gather, Raster, RowMajor};

use super::Indices;

/// Extents of an operation on rows, which are counted in units of the kernel's unit type.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct RowArgs {
    /// Rows of the table, which the indices name.
    pub table_rows: i64,
    /// Units from one row to the next of the matrix that is read.
    pub ld_from: i64,
    /// Units from one row to the next of the matrix that is written.
    pub ld_to: i64,
    /// The tiles of these rows, one for each block: those of a row follow each other, so that blocks that run at the
    /// same time access whole rows.
    pub tiles: Raster<Divisor>,
    /// Rows of the matrix that is not the table: one for each index.
    pub rows: i32,
    /// Units in a row.
    pub columns: i32,
    /// Not 0 if an index has 64 bits.
    pub wide_indices: u32,
    /// What an index outside of the table means.
    pub out_of_range: OutOfRange,
    /// Unused.
    pub padding: u32,
}

/// What becomes of a row whose index is no row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceData)]
#[repr(C)]
pub struct OutOfRange {
    policy: u32,
}

impl OutOfRange {
    /// A gathered row becomes zero, and a scattered row is left out. The first such row is reported.
    pub const ERROR: OutOfRange = OutOfRange { policy: 0 };
    /// The index stands for the nearest row of the table.
    pub const CLAMP: OutOfRange = OutOfRange { policy: 1 };
    /// Nothing is written for the row.
    pub const SKIP: OutOfRange = OutOfRange { policy: 2 };

    /// Whether the index stands for the nearest row.
    #[inline(always)]
    pub fn clamps(self) -> bool {
        self == Self::CLAMP
    }

    /// Whether nothing is written for the row.
    #[inline(always)]
    pub fn skips(self) -> bool {
        self == Self::SKIP
    }

    /// Whether the row is reported.
    #[inline(always)]
    pub fn is_error(self) -> bool {
        self == Self::ERROR
    }
}

/// Keeps the smallest row that it was called with in `first_miss`, which holds `u64::MAX` before.
///
/// # Safety
/// `first_miss` must have an element, which other threads access by atomic operations only.
#[inline(always)]
pub unsafe fn report_miss(first_miss: GlobalMut<u64>, row: i64) {
    // SAFETY: as promised by the caller.
    unsafe { atomic_min(first_miss, 0, row as u64) };
}

/// Reports the rows of a thread's values whose indices are no rows of the table, if such rows are errors.
///
/// # Safety
/// As [`report_miss`].
#[inline(always)]
pub unsafe fn report_misses<L: FragmentLayout>(
    out_of_range: OutOfRange,
    rows: &BoundGather<L>,
    first_miss: GlobalMut<u64>,
) {
    if out_of_range.is_error() {
        // SAFETY: as promised by the caller.
        rows.each_missing_row(|row| unsafe { report_miss(first_miss, row) });
    }
}

impl RowArgs {
    /// The rows of the table that the indices name, `ld` units apart.
    ///
    /// # Safety
    /// There must be an index for each row.
    #[inline(always)]
    pub unsafe fn named_rows(&self, indices: Global<i32>, ld: i64) -> Gather<Indices> {
        let indices = Indices::new(indices, self.wide_indices != 0);
        // SAFETY: as promised by the caller.
        unsafe { Gather::new(indices, [self.rows, self.columns], self.table_rows, ld) }
            .clamped(self.out_of_range.clamps())
    }

    /// The rows of the matrix that is not the table, `ld` units apart.
    #[inline(always)]
    pub fn plain_rows(&self, ld: i64) -> RowMajor {
        RowMajor::new([self.rows, self.columns], ld)
    }
}
