//! Rows of a table that indices name, in place of the rows of A or of C: the arguments of a gathered or scattered
//! product.

use cutlet_device::{DeviceData, Global, GlobalMut};
#[cfg(not(target_arch = "nvptx64"))]
use cutlet_layout_core::Line;
use cutlet_layout_core::{BoundGather, Coord, Engine, FragmentLayout, Gather};

use crate::gather::{Indices, OutOfRange, report_miss};

/// Which rows of a table stand for the rows of a matrix of the product.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct NamedRows {
    /// An index for each row of the matrix, of 32 or 64 bits. Null if each row stands for itself, where a kernel allows
    /// it.
    pub indices: Global<i32>,
    /// Where the smallest row is kept whose index is no row of the table, if such a row is an error.
    pub first_miss: GlobalMut<u64>,
    /// Rows of the table.
    pub table_rows: i64,
    /// Elements from one row of the table to the next.
    pub ld: i64,
    /// Not 0 if an index has 64 bits.
    pub wide_indices: u32,
    /// What an index outside of the table means: a row of zeros of A, and a row of C that is not stored, unless it
    /// stands for the nearest row.
    pub out_of_range: OutOfRange,
}

impl NamedRows {
    /// No rows.
    pub const NONE: Self = Self {
        indices: Global::from_ptr(core::ptr::null()),
        first_miss: GlobalMut::from_ptr(core::ptr::null_mut()),
        table_rows: 0,
        ld: 0,
        wide_indices: 0,
        out_of_range: OutOfRange::SKIP,
    };

    /// The matrix of `extent` = (rows, columns) whose row `r` is the table's row with the index number `first + r`.
    ///
    /// # Safety
    /// There must be an index for each row.
    #[inline(always)]
    pub unsafe fn matrix(&self, first: i32, extent: Coord) -> Gather<Indices> {
        let word = i64::from(first) << self.wide_indices;
        let indices = Indices::new(self.indices.offset(word), self.wide_indices != 0);
        // SAFETY: as promised by the caller.
        unsafe { Gather::new(indices, extent, self.table_rows, self.ld) }
            .clamped(self.out_of_range.clamps())
    }

    /// [`matrix`](Self::matrix), in which each row stands for itself if there are no indices.
    ///
    /// # Safety
    /// There must be an index for each row, or none.
    #[inline(always)]
    pub unsafe fn matrix_of_any(&self, first: i32, extent: Coord) -> Gather<RowNumbers> {
        let numbers = RowNumbers {
            indices: Indices::new(self.indices, self.wide_indices != 0),
            are_named: !self.indices.as_ptr().is_null(),
            first: i64::from(first),
        };
        // SAFETY: as promised by the caller.
        unsafe { Gather::new(numbers, extent, self.table_rows, self.ld) }
            .clamped(self.out_of_range.clamps())
    }

    /// Reports the rows of a thread's values whose indices are no rows of the table, if such rows are errors. The
    /// matrix begins with the index number `first`.
    ///
    /// # Safety
    /// `first_miss` must have an element, which other threads access by atomic operations only.
    #[inline(always)]
    pub unsafe fn report_misses<L: FragmentLayout>(&self, first: i32, rows: &BoundGather<L>) {
        if self.out_of_range.is_error() {
            rows.each_missing_row(|row| {
                // SAFETY: as promised by the caller.
                unsafe { report_miss(self.first_miss, i64::from(first) + row) };
            });
        }
    }
}

/// The numbers of the rows that indices name, or all rows in their order where there are no indices.
#[derive(Clone, Copy, Debug)]
pub struct RowNumbers {
    indices: Indices,
    are_named: bool,
    /// The first index, or row.
    first: i64,
}

impl Engine for RowNumbers {
    type Element = i64;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            first: self.first + index,
            ..self
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn attribute_to(self, line: Line) -> Line {
        self.indices.attribute_to(line)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(self, index: i64) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.load_if(index, true) }.unwrap_or(-1)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_if(self, index: i64, condition: bool) -> Option<i64> {
        let row = self.first + index;
        // SAFETY: as promised by the caller.
        let named = unsafe { self.indices.load_if(row, condition && self.are_named) };
        match self.are_named {
            true => named,
            false => condition.then_some(row),
        }
    }
}
