//! Where the matrices of an operand lie: sets of one matrix, or of those of a batch, one after the other in a buffer,
//! each with the alignment of a key.

use std::ops::Range;

use cutlet::{Order, ProblemKey};

/// Matrices begin at multiples of this many elements, and so do buffers.
const APART: usize = 256;
/// The widest alignment that keys tell apart, in bytes.
const WIDEST: usize = ProblemKey::WIDEST_ALIGNMENT;
/// Elements after each set, which must not be written.
pub const GUARD: usize = 256;

/// The place of an operand's matrices in its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub rows: usize,
    pub columns: usize,
    pub order: Order,
    pub ld: usize,
    /// Elements before the first matrix.
    offset: usize,
    /// Matrices of a set.
    pub count: usize,
    /// Elements from one matrix of a set to the next.
    pub apart: usize,
    /// Elements from one set to the next.
    pub stride: usize,
}

impl Operand {
    /// Sets of `count` matrices of these extents, each run of which starts at multiples of `alignment` bytes, and of no
    /// larger power of two. Elements have `bytes` bytes.
    pub fn new(
        count: usize,
        [rows, columns]: [usize; 2],
        order: Order,
        alignment: usize,
        bytes: usize,
    ) -> Self {
        let (run, runs) = match order {
            Order::RowMajor => (columns, rows),
            Order::ColMajor => (rows, columns),
        };
        let unit = (alignment / bytes).max(1);
        let is_exact = |ld: usize| ProblemKey::alignment(ld * bytes) == alignment;
        let aligned = run.next_multiple_of(unit);
        let (ld, offset) = match runs {
            // A single run has any leading dimension. Its start alone is aligned.
            1 if alignment < WIDEST => (run, unit),
            1 => (run, 0),
            // An odd multiple has no larger power of two.
            _ if is_exact(aligned) => (aligned, 0),
            _ => (aligned + unit, 0),
        };
        let len = (runs - 1) * ld + run;
        let apart = len.next_multiple_of(unit);
        Operand {
            rows,
            columns,
            order,
            ld,
            offset,
            count,
            apart,
            stride: (offset + (count - 1) * apart + len + GUARD).next_multiple_of(APART),
        }
    }

    /// The elements of the set number `set`, from its first matrix to its last.
    pub fn elements(&self, set: usize) -> Range<usize> {
        let first = set * self.stride + self.offset;
        first..first + (self.count - 1) * self.apart + self.len()
    }

    /// The elements of the last matrix of a set.
    pub fn last(&self, set: usize) -> Range<usize> {
        let Range { end, .. } = self.elements(set);
        end - self.len()..end
    }

    /// Elements from the first of a matrix to its last.
    fn len(&self) -> usize {
        let (run, runs) = match self.order {
            Order::RowMajor => (self.columns, self.rows),
            Order::ColMajor => (self.rows, self.columns),
        };
        (runs - 1) * self.ld + run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_the_alignment_that_was_asked_for() {
        for bytes in [1, 2, 4, 8] {
            for alignment in [1, 2, 4, 8, 16, 32, 64, 128] {
                if alignment < bytes {
                    continue;
                }
                for (rows, columns) in [(3, 64), (5, 37), (1, 64), (7, 1), (4096, 4096)] {
                    for count in [1, 3] {
                        let extents = [rows, columns];
                        let of = Operand::new(count, extents, Order::RowMajor, alignment, bytes);
                        assert!(of.ld >= columns);
                        let set = of.elements(1);
                        assert!(set.end + GUARD <= 2 * of.stride && set.start >= of.stride);
                        assert_eq!(of.last(1).start, set.start + (count - 1) * of.apart);
                        let ld = if rows == 1 { 0 } else { of.ld };
                        let apart = if count == 1 { 0 } else { of.apart };
                        let all = (set.start * bytes) | (ld * bytes) | (apart * bytes);
                        assert_eq!(ProblemKey::alignment(all), alignment, "{of:?}");
                    }
                }
            }
        }
        let packed = Operand::new(1, [3, 4096], Order::RowMajor, 128, 2);
        assert_eq!(packed.ld, 4096);
    }
}
