//! Packed matrices on the host, whose elements are looked up by row and column.

use crate::convert::Convert;
use cutlet::Order::{self, ColMajor, RowMajor};

/// A packed matrix.
pub struct HostMatrix<T> {
    pub elements: Vec<T>,
    pub extents: [usize; 2],
    pub order: Order,
}

impl<T: Convert> HostMatrix<T> {
    /// The matrix of these extents (rows, columns), of elements in the order of memory.
    pub fn new(extents: [usize; 2], order: Order, mut element: impl FnMut() -> f64) -> Self {
        let [rows, columns] = extents;
        let elements = (0..rows * columns).map(|_| T::of(element()));
        HostMatrix {
            elements: elements.collect(),
            extents,
            order,
        }
    }

    /// The element of a row and a column.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        let [rows, columns] = self.extents;
        let place = match self.order {
            RowMajor => row * columns + column,
            ColMajor => column * rows + row,
        };
        self.elements[place].number()
    }
}
