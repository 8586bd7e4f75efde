//! Matrices of small whole numbers that begin anywhere in a buffer.

use crate::convert::Convert;

/// Where a matrix lies in its buffer, which ends with the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Elements before the first one.
    pub offset: usize,
    /// Elements between two runs.
    pub padding: usize,
}

/// At the beginning, packed.
pub const ALIGNED: Place = Place {
    offset: 0,
    padding: 0,
};

impl Place {
    /// The buffer of a matrix of `count` runs of `run` elements. Products and sums of the numbers are exact.
    pub fn small<T: Convert>(self, [count, run]: [usize; 2], seed: u64) -> Vec<T> {
        let mut random = crate::random::generator(seed);
        let len = match count {
            0 => 0,
            _ => self.offset + (count - 1) * (run + self.padding) + run,
        };
        (0..len).map(|_| T::of(random.i8(-2..=2).into())).collect()
    }
}
