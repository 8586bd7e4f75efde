//! Operands that TMA and `wgmma` can read: their rows start at multiples of 16 bytes, and elements that are not of 16
//! bits lie K-major.

use std::ptr;

use cutlet_device::{DeviceData, Global, GlobalMut};
use cutlet_host::{LaunchConfig, Scratch, Stream};
use cutlet_kernels::repack::{Repack, repack_16};

use crate::gemm::choice::cost::{CACHE_LINE, TMA_UNIT};
use crate::gemm::operand::Operand;
use crate::gemm::problem::Problem;
use crate::matrix::{Extents, pointer, pointer_mut};
use crate::{Matrix, MatrixMut, Order, Result, permute};

/// Clocks that a copy takes at least. The product begins while it ends.
const COPY: f64 = 1500.0;
/// Bytes that a multiprocessor copies in a clock.
const COPY_RATE: f64 = 8.0;

/// An operand that a kernel can read, or a copy that it can read.
#[derive(Debug)]
pub enum TmaOperand<'a, T: DeviceData> {
    /// The caller's matrix.
    AsItIs(Matrix<'a, T>),
    /// A copy with another leading dimension or order.
    Copied {
        /// The elements.
        elements: Scratch<'a, T>,
        /// Their layout.
        extents: Extents,
    },
}

impl<'a, T: DeviceData> TmaOperand<'a, T> {
    /// The problem's A and B. One launch copies those of 16-bit elements that TMA cannot read.
    pub fn both<D: DeviceData>(stream: &'a Stream, problem: &Problem<'a, T, D>) -> Result<[Self; 2]>
    where
        T: Operand,
    {
        let mut copies = [NOTHING; 2];
        let [of_a, of_b] = &mut copies;
        let operands = [
            Self::of(stream, problem.a, Order::RowMajor, of_a)?,
            Self::of(stream, problem.b, Order::ColMajor, of_b)?,
        ];
        copy(stream, copies)?;
        Ok(operands)
    }

    /// The estimated time to copy the problem's operands that TMA cannot read, in clocks of a multiprocessor.
    pub fn copying<D: DeviceData>(stream: &Stream, problem: &Problem<'_, T, D>) -> f64
    where
        T: Operand,
    {
        let rate = COPY_RATE * f64::from(stream.device().multiprocessors());
        let operands = [(&problem.a, Order::RowMajor), (&problem.b, Order::ColMajor)];
        let copied = operands.map(|(operand, k_major)| match is_read(operand, k_major) {
            true => 0,
            false => operand.rows() * operand.columns() * size_of::<T>(),
        });
        match copied.iter().sum() {
            0 => 0.0,
            bytes => COPY + bytes as f64 / rate,
        }
    }

    /// The operand, which is K-major in the order `k_major`, or room for a copy that TMA can read, with the copy to
    /// make. A few zeros replace an operand without elements.
    fn of(
        stream: &'a Stream,
        operand: Matrix<'a, T>,
        k_major: Order,
        copying: &mut Repack,
    ) -> Result<Self> {
        if operand.rows() == 0 || operand.columns() == 0 {
            let order = match is_16_bit::<T>() {
                true => operand.order(),
                false => k_major,
            };
            zeros(stream, order)
        } else if is_16_bit::<T>() && !is_read(&operand, k_major) {
            room(stream, &operand, copying)
        } else {
            Self::in_order(stream, operand, k_major)
        }
    }

    /// The matrix, or a copy in the order `k_major` that TMA can read.
    pub fn in_order(stream: &'a Stream, matrix: Matrix<'a, T>, k_major: Order) -> Result<Self> {
        match is_read(&matrix, k_major) {
            true => Ok(TmaOperand::AsItIs(matrix)),
            false => k_major_copy(stream, &matrix, k_major),
        }
    }

    /// Cache lines that 128 bytes of a row lie in, in the memory that TMA reads: 1, or 2 if rows do not start at cache
    /// lines.
    pub fn cache_lines(operand: &Matrix<'_, T>) -> usize {
        let (run, _) = operand.extents.run_and_count();
        if !is_16_bit::<T>() && !operand.starts_runs_at(TMA_UNIT) {
            return 1;
        }
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

/// Whether elements have 16 bits: `wgmma` reads them in either order.
const fn is_16_bit<T>() -> bool {
    size_of::<T>() == 2
}

/// Whether TMA and `wgmma` can read the operand, which is K-major in the order `k_major`.
fn is_read<T: DeviceData>(operand: &Matrix<'_, T>, k_major: Order) -> bool {
    operand.starts_runs_at(TMA_UNIT) && (is_16_bit::<T>() || operand.order() == k_major)
}

/// A copy in the order `k_major`, whose rows start at cache lines.
fn k_major_copy<'s, T: DeviceData>(
    stream: &'s Stream,
    operand: &Matrix<'_, T>,
    k_major: Order,
) -> Result<TmaOperand<'s, T>> {
    let (rows, columns) = (operand.rows(), operand.columns());
    let (run, count) = match k_major {
        Order::RowMajor => (columns, rows),
        Order::ColMajor => (rows, columns),
    };
    let ld = distance(run * size_of::<T>()) / size_of::<T>();
    let extents = Extents {
        rows,
        columns,
        ld,
        order: k_major,
    };
    let mut elements = stream.scratch::<T>(ld * count)?;
    let copy = MatrixMut {
        view: elements.view_mut(),
        extents,
    };
    permute(stream, *operand, copy.in_part())?;
    Ok(TmaOperand::Copied { elements, extents })
}

/// A run of zeros. TMA reads zeros out of bounds, too.
fn zeros<T: DeviceData>(stream: &Stream, order: Order) -> Result<TmaOperand<'_, T>> {
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

/// Copies no matrix.
const NOTHING: Repack = Repack {
    source: Global::from_ptr(ptr::null()),
    destination: GlobalMut::from_ptr(ptr::null_mut()),
    ld_source: 0,
    ld_destination: 0,
    extent: [0, 0],
};

/// Room for a copy of the operand, and in `copying` what the kernel needs to make it.
fn room<'s, T: DeviceData>(
    stream: &'s Stream,
    operand: &Matrix<'_, T>,
    copying: &mut Repack,
) -> Result<TmaOperand<'s, T>> {
    assert!(is_16_bit::<T>(), "the kernel copies elements of 16 bits");
    let (run, count) = operand.extents.run_and_count();
    let ld = distance(run * size_of::<T>()) / size_of::<T>();
    let elements = stream.scratch(ld * count)?;
    *copying = Repack {
        source: pointer::<u16>(operand.view),
        destination: pointer_mut::<u16>(elements.view().address()),
        ld_source: operand.ld() as i64,
        ld_destination: ld as i64,
        extent: [count as i32, run as i32],
    };
    let extents = Extents {
        ld,
        ..operand.extents
    };
    Ok(TmaOperand::Copied { elements, extents })
}

/// Makes the copies, if there are any.
fn copy(stream: &Stream, copies: [Repack; 2]) -> Result<()> {
    let blocks = copies[0].blocks() + copies[1].blocks();
    if blocks == 0 {
        return Ok(());
    }
    let function = stream.device().load(&cutlet_kernels::PTX, &repack_16)?;
    let config = LaunchConfig::dependent(blocks);
    let [first, second] = copies;
    // SAFETY: the operands were checked against their memory, and the copies have room for all rows, whose bytes are
    // multiples of 16. All of it lives until the stream has got past the launch.
    unsafe { stream.launch(&function, config, (first, second))? };
    Ok(())
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
