//! Arrays that are made of others: a part along a dimension, one of several matrices, and an array like another one
//! elsewhere.

use std::ops::Range;

use super::{Array, MAX_RANK};

/// Bytes of a cache line, within which alignments are told apart.
const LINE: u64 = 128;

impl Array {
    /// The elements of a range along a dimension.
    pub fn part(&self, dimension: usize, range: Range<usize>) -> Array {
        let mut part = self.clone();
        let stride = self.dimensions.strides[dimension];
        part.address += (range.start * stride * self.data_type.size()) as u64;
        part.dimensions.shape[dimension] = range.len();
        if range.len() <= 1 {
            part.dimensions.strides[dimension] = 0;
        }
        part
    }

    /// The `nth` matrix of an array of three dimensions.
    pub fn nth(&self, nth: usize) -> Array {
        let mut matrix = self.part(0, nth..nth + 1);
        let dimensions = &mut matrix.dimensions;
        dimensions.rank -= 1;
        dimensions.shape.copy_within(1..MAX_RANK, 0);
        dimensions.strides.copy_within(1..MAX_RANK, 0);
        matrix
    }

    /// An array of this shape and these strides whose first element is at another address.
    pub fn at(&self, address: u64) -> Array {
        Array {
            address,
            ..self.clone()
        }
    }

    /// Elements from the first to the last, with gaps.
    pub fn span(&self) -> usize {
        self.dimensions.span().unwrap_or(0)
    }

    /// Elements that precede the first one in its cache line.
    pub fn offset_in_line(&self) -> usize {
        (self.address % LINE) as usize / self.data_type.size()
    }
}
