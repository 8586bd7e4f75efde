//! Operands as TMA needs them: rows that start at multiples of 16 bytes.

use cutlet_device::DeviceData;
use cutlet_host::{Scratch, Stream};
use cutlet_kernels::repack::{self, Tile, repack_16};
use cutlet_layout_core::tiles;

use crate::matrix::{Extents, pointer, pointer_mut};
use crate::{Matrix, Order, Result};

/// Bytes that TMA needs rows to start at a multiple of.
pub const UNIT: usize = 16;
/// Bytes of a line of the cache.
pub const LINE: usize = 128;

/// An operand of 16-bit elements, or a copy of it where TMA could not read it.
#[derive(Debug)]
pub enum TmaOperand<'a, T: DeviceData> {
    /// As the caller has it.
    AsItIs(Matrix<'a, T>),
    /// With its rows at other distances.
    Copied {
        /// Its elements.
        elements: Scratch<T>,
        /// Where they are.
        extents: Extents,
    },
}

impl<'a, T: DeviceData> TmaOperand<'a, T> {
    /// The operand, copied if need be. One without elements becomes a few zeros.
    pub fn of(stream: &Stream, operand: Matrix<'a, T>) -> Result<Self> {
        if operand.rows() == 0 || operand.columns() == 0 {
            zeros(stream, operand.order())
        } else if operand.starts_runs_at(UNIT) {
            Ok(TmaOperand::AsItIs(operand))
        } else {
            copy(stream, &operand)
        }
    }

    /// The matrix that TMA reads.
    pub fn matrix(&self) -> Matrix<'_, T> {
        match self {
            TmaOperand::AsItIs(matrix) => *matrix,
            TmaOperand::Copied { elements, extents } => Matrix {
                view: elements.view(),
                extents: *extents,
            },
        }
    }
}

/// A run of zeros; what lies outside a matrix is zero, too.
fn zeros<T: DeviceData>(stream: &Stream, order: Order) -> Result<TmaOperand<'static, T>> {
    let run = UNIT / size_of::<T>();
    let mut elements = stream.scratch(run)?;
    stream.fill_bytes(elements.view_mut(), 0)?;
    let (rows, columns) = match order {
        Order::RowMajor => (1, run),
        Order::ColMajor => (run, 1),
    };
    let extents = Extents {
        rows,
        columns,
        ld: run,
        order,
    };
    Ok(TmaOperand::Copied { elements, extents })
}

/// Bytes from one row of so many bytes to the next in a copy. Where a row has whole lines of the cache, it
/// starts with one: a step's 128 bytes would lie in two lines otherwise.
const fn distance(row: usize) -> usize {
    row.next_multiple_of(if row < LINE { UNIT } else { LINE })
}

fn copy<T: DeviceData>(stream: &Stream, operand: &Matrix<'_, T>) -> Result<TmaOperand<'static, T>> {
    const { assert!(size_of::<T>() == 2, "the kernel copies elements of 16 bits") };
    let (run, count) = operand.extents.run_and_count();
    let ld = distance(run * size_of::<T>()) / size_of::<T>();
    let elements = stream.scratch(ld * count)?;
    let extents = repack::Extents {
        ld_source: operand.ld() as i64,
        ld_destination: ld as i64,
        rows: count as i32,
        columns: run as i32,
    };
    let [rows, columns] = tiles::<Tile>([extents.rows, extents.columns]);
    let source = pointer::<u16>(operand.view);
    let destination = pointer_mut::<u16>(elements.view().address());
    let function = stream.device().load(&cutlet_kernels::PTX, &repack_16)?;
    // SAFETY: the operand was checked against the memory behind it, and the scratch is as large as
    // its extents say; both are there until the stream has got past the launch.
    unsafe {
        stream.launch(&function, rows * columns, (source, destination, extents))?;
    }
    let extents = Extents {
        ld,
        ..operand.extents
    };
    Ok(TmaOperand::Copied { elements, extents })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_copy_start_lines_if_they_are_as_long() {
        assert_eq!([1, 16, 126].map(distance), [16, 16, 128]);
        assert_eq!([128, 130, 2038].map(distance), [128, 256, 2048]);
    }
}
