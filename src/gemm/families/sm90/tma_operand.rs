//! Operands that TMA can read: their rows start at multiples of 16 bytes.

use cutlet_device::DeviceData;
use cutlet_host::{Scratch, Stream};
use cutlet_kernels::repack::{self, Tile, repack_16};
use cutlet_layout_core::tiles;

use crate::gemm::operand::Operand;
use crate::gemm::problem::Problem;
use crate::gemm::tune::model::{CACHE_LINE, TMA_UNIT};
use crate::matrix::{Extents, pointer, pointer_mut};
use crate::{Matrix, Order, Result};

/// Clocks that a copy takes at least, until the next kernel can begin.
const COPY: f64 = 5000.0;
/// Bytes that a multiprocessor copies in a clock.
const COPY_RATE: f64 = 8.0;

/// An operand of 16-bit elements that TMA can read, or a copy that it can read.
#[derive(Debug)]
pub enum TmaOperand<'a, T: DeviceData> {
    /// The caller's matrix.
    AsItIs(Matrix<'a, T>),
    /// A copy with another leading dimension.
    Copied {
        /// The elements.
        elements: Scratch<T>,
        /// Their layout.
        extents: Extents,
    },
}

impl<'a, T: DeviceData> TmaOperand<'a, T> {
    /// The problem's A and B.
    pub fn both<D: DeviceData>(stream: &Stream, problem: &Problem<'a, T, D>) -> Result<[Self; 2]>
    where
        T: Operand,
    {
        Ok([Self::of(stream, problem.a)?, Self::of(stream, problem.b)?])
    }

    /// The estimated time to copy the problem's operands that TMA cannot read, in clocks of a multiprocessor.
    pub fn copying<D: DeviceData>(stream: &Stream, problem: &Problem<'_, T, D>) -> f64
    where
        T: Operand,
    {
        let rate = COPY_RATE * f64::from(stream.device().multiprocessors());
        let copying = |operand: &Matrix<'_, T>| match operand.starts_runs_at(TMA_UNIT) {
            true => 0.0,
            false => COPY + (operand.rows() * operand.columns() * size_of::<T>()) as f64 / rate,
        };
        copying(&problem.a) + copying(&problem.b)
    }

    /// The operand, copied if TMA cannot read it. A few zeros replace an operand without elements.
    fn of(stream: &Stream, operand: Matrix<'a, T>) -> Result<Self> {
        if operand.rows() == 0 || operand.columns() == 0 {
            zeros(stream, operand.order())
        } else if operand.starts_runs_at(TMA_UNIT) {
            Ok(TmaOperand::AsItIs(operand))
        } else {
            copy(stream, &operand)
        }
    }

    /// Cache lines that 128 bytes of a row lie in, in the memory that TMA reads: 1, or 2 if rows do not start at cache
    /// lines.
    pub fn cache_lines(operand: &Matrix<'_, T>) -> usize {
        let (run, _) = operand.extents.run_and_count();
        let is_aligned = match operand.starts_runs_at(TMA_UNIT) {
            true => operand.starts_runs_at(CACHE_LINE),
            false => distance(run * size_of::<T>()).is_multiple_of(CACHE_LINE),
        };
        if is_aligned { 1 } else { 2 }
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

/// A run of zeros. TMA reads zeros out of bounds, too.
fn zeros<T: DeviceData>(stream: &Stream, order: Order) -> Result<TmaOperand<'static, T>> {
    let run = TMA_UNIT / size_of::<T>();
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

/// Bytes from one row of `row` bytes to the next in a copy. Rows of at least a cache line start at cache lines.
/// Otherwise the 128 bytes of a k-tile would lie in two lines.
const fn distance(row: usize) -> usize {
    row.next_multiple_of(if row < CACHE_LINE {
        TMA_UNIT
    } else {
        CACHE_LINE
    })
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
    // SAFETY: the operand was checked against its memory, and the copy has room for all rows. Both live until the
    // stream has got past the launch.
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
    fn rows_of_a_copy_start_at_cache_lines_unless_they_are_shorter() {
        assert_eq!([1, 16, 126].map(distance), [16, 16, 128]);
        assert_eq!([128, 130, 2038].map(distance), [128, 256, 2048]);
    }
}
