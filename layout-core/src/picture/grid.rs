//! The rows and columns of a picture, and the modes that run along them.

use crate::{IntTuple, idx2crd};

/// A shape as rows and columns: its first mode runs down, all others run across. A vector runs
/// across. A nested shape of rank 1, such as `((4,2))`, is drawn as the shape inside.
///
/// ```
/// use cutlet_layout_core::{picture::Grid, shape};
///
/// let grid = Grid::of(&shape!(((2, 3), 4)));
/// assert_eq!((grid.rows(), grid.columns()), (6, 4));
/// assert_eq!(grid.row_label(5).to_string(), "(1,2)");
/// assert_eq!((grid.row_ends(1), grid.row_ends(2)), (0, 1)); // a pair ends behind row 1
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    down: IntTuple,
    across: IntTuple,
}

impl Grid {
    /// The rows and columns of a shape.
    pub fn of(shape: &IntTuple) -> Grid {
        let mut inner = *shape;
        while inner.is_tuple() && inner.rank() == 1 {
            inner = inner.mode(0);
        }
        match inner.rank() {
            1 => Grid::row(&inner),
            2 => Grid {
                down: inner.mode(0),
                across: inner.mode(1),
            },
            rank => Grid {
                down: inner.mode(0),
                across: inner.take(1, rank),
            },
        }
    }

    /// A single row, in which the whole shape runs across.
    pub fn row(shape: &IntTuple) -> Grid {
        Grid {
            down: IntTuple::from(1),
            across: *shape,
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> i64 {
        self.down.size()
    }

    /// The number of columns.
    pub fn columns(&self) -> i64 {
        self.across.size()
    }

    /// The 1-D coordinate of a cell.
    pub fn coordinate(&self, row: i64, column: i64) -> i64 {
        row + column * self.rows()
    }

    /// The natural coordinate of a row.
    pub fn row_label(&self, row: i64) -> IntTuple {
        label(&self.down, row)
    }

    /// The natural coordinate of a column.
    pub fn column_label(&self, column: i64) -> IntTuple {
        label(&self.across, column)
    }

    /// How many modes end before a row: 0 inside the innermost mode.
    pub fn row_ends(&self, row: i64) -> usize {
        ends(&self.down, row)
    }

    /// How many modes end before a column.
    pub fn column_ends(&self, column: i64) -> usize {
        ends(&self.across, column)
    }
}

fn label(side: &IntTuple, c: i64) -> IntTuple {
    idx2crd(&IntTuple::from(c), side).to_dynamic()
}

fn ends(side: &IntTuple, line: i64) -> usize {
    let mut size: i64 = 1;
    let mut count = 0;
    for leaf in 0..side.num_leaves() {
        let extent = side.leaf(leaf).value();
        size = size.saturating_mul(extent);
        if extent > 1 && line % size == 0 {
            count += 1;
        }
    }
    count
}
