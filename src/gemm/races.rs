//! Races: rows of C that several threads would write.
//!
//! Ends of groups that decrease, and indices that repeat where `beta` is not 0, make products write the same rows of C.
//! On a GPU, such rows get the numbers of some of the products, and nothing else happens. The threads of the CPU backend
//! are those of the operating system, for which this is a data race. So a launch before the product's refuses it there,
//! also when a graph replays both.

use std::collections::HashSet;

use cutlet_device::{DeviceData, Global, kernel};
use cutlet_host::{Backend, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::gather::{Indices, OutOfRange as Policy};
use cutlet_kernels::gemm::epilogue::Accumulator;
use cutlet_layout_core::Engine;

use super::indexed_rows::Rows;
use super::operand::Operand;
use super::problem::{Problem, Sizes};
use crate::Result;

impl<T: Operand, D: DeviceData> Problem<'_, T, D> {
    /// On the CPU backend, enqueues the checks that no row of C is written by several products.
    pub(super) fn expect_no_races(&self, stream: &Stream) -> Result<()> {
        if stream.device().backend() != Backend::Cpu {
            return Ok(());
        }
        if let Sizes::Ends(ends) = self.groups.sizes {
            let function = stream.device().load(&PTX, &expect_increasing_ends)?;
            let (rows, ..) = self.extents();
            // SAFETY: the ends were checked with the problem. There is one for each group.
            unsafe { stream.launch(&function, 1, (ends, ends.len(), rows as i64))? };
        }
        if let Rows::OfC(rows) = &self.rows
            && self.beta != T::Factor::ZERO
        {
            let function = stream.device().load(&PTX, &expect_different_rows)?;
            let named = NamedRows {
                indices: rows.len() as u64,
                table_rows: self.c.rows() as u64,
                wide: rows.indices().wide(),
                out_of_range: rows.out_of_range().policy(),
            };
            // SAFETY: the indices were checked with the problem, and there are as many.
            unsafe { stream.launch(&function, 1, (rows.indices().words(), named))? };
        }
        Ok(())
    }
}

/// Panics if an end is less than the one before. Ends are cut off at the product's rows, as kernels do.
///
/// # Safety
/// There must be so many ends.
#[kernel(threads = 1)]
unsafe fn expect_increasing_ends(ends: Global<i32>, count: usize, rows: i64) {
    let mut before = 0;
    for group in 0..count {
        // SAFETY: the launcher promises the ends.
        let end = i64::from(unsafe { ends.load(group as i64) }).clamp(0, rows);
        assert!(
            end >= before,
            "group {group} ends at row {end}, and the group before at row {before}: rows would be in two groups; give \
             ends that do not decrease"
        );
        before = end;
    }
}

/// The rows of a table that indices name.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
struct NamedRows {
    indices: u64,
    table_rows: u64,
    /// Not 0 if an index has 64 bits.
    wide: u32,
    out_of_range: Policy,
}

/// Panics if two indices stand for the same row of the table.
///
/// # Safety
/// There must be so many indices.
#[kernel(threads = 1)]
unsafe fn expect_different_rows(words: Global<i32>, named: NamedRows) {
    let indices = Indices::new(words, named.wide != 0);
    let last = named.table_rows as i64 - 1;
    let mut seen = HashSet::new();
    for position in 0..named.indices as i64 {
        // SAFETY: the launcher promises the indices.
        let index = unsafe { indices.load(position) };
        let row = match named.out_of_range.clamps() {
            true => index.clamp(0, last.max(0)),
            false => index,
        };
        if (0..=last).contains(&row) {
            assert!(
                seen.insert(row),
                "index {index} at position {position} names row {row} of the table, as one before it does, and beta is \
                 not 0: the products would not see each other's sums; give different indices, or let beta be 0"
            );
        }
    }
}
