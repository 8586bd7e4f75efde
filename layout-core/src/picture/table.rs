//! The tables that CuTe's `print_layout` prints.

use core::fmt;

use super::{Draw, Grid, right_aligned, width_of};

/// The table of a layout, or of a composed one; see [`table`].
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, D> {
    drawn: &'a D,
}

/// CuTe's `print_layout`: the layout's text, and under it a table with the index of each
/// coordinate. The first mode runs down, all others run across.
///
/// A layout of rank 1 is listed by coordinate and index. If it nests a matrix, a table of this
/// matrix comes first.
///
/// ```
/// use cutlet_layout_core::{layout, picture};
///
/// let table = picture::table(&layout!((2, 3):(1, 2))).to_string();
/// assert_eq!(table, concat!(
///     "(_2,_3):(_1,_2)\n",
///     "      0   1   2 \n",
///     "    +---+---+---+\n",
///     " 0  | 0 | 2 | 4 |\n",
///     "    +---+---+---+\n",
///     " 1  | 1 | 3 | 5 |\n",
///     "    +---+---+---+\n",
/// ));
/// ```
pub const fn table<D: Draw>(drawn: &D) -> Table<'_, D> {
    Table { drawn }
}

impl<D: Draw> fmt::Display for Table<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.drawn.shape();
        let grid = Grid::of(&shape);
        if shape.rank() > 1 {
            writeln!(f, "{}", self.drawn)?;
            return self.cells(f, grid);
        }
        writeln!(f, "Layout:  {}", self.drawn)?;
        if grid.rows() > 1 {
            self.cells(f, grid)?;
        }
        self.list(f, grid)
    }
}

impl<D: Draw> Table<'_, D> {
    /// The width of a cell. CuTe makes room for the cosize, one more than the last index.
    fn width(&self, grid: Grid) -> usize {
        let size = grid.rows() * grid.columns();
        let widest = (0..size).map(|c| width_of(&self.drawn.element(c))).max();
        let cosize = match self.drawn.element(size - 1).as_int() {
            Some(last) => width_of(&(last.value() + 1)),
            None => 1,
        };
        widest.unwrap_or(1).max(cosize)
    }

    fn cells(&self, f: &mut fmt::Formatter<'_>, grid: Grid) -> fmt::Result {
        let width = self.width(grid);
        f.write_str("    ")?;
        for column in 0..grid.columns() {
            write!(f, "  {column:width$} ")?;
        }
        writeln!(f)?;
        for row in 0..grid.rows() {
            rule(f, width, grid.columns())?;
            write!(f, "{row:2}  ")?;
            for column in 0..grid.columns() {
                f.write_str("| ")?;
                right_aligned(f, &self.drawn.element(grid.coordinate(row, column)), width)?;
                f.write_str(" ")?;
            }
            writeln!(f, "|")?;
        }
        rule(f, width, grid.columns())
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, grid: Grid) -> fmt::Result {
        let size = grid.rows() * grid.columns();
        let width = self.width(grid).max(width_of(&(size - 1))).max(2);
        f.write_str("Coord :")?;
        for c in 0..size {
            write!(f, " {c:width$}")?;
        }
        f.write_str("\nIndex :")?;
        for c in 0..size {
            f.write_str(" ")?;
            right_aligned(f, &self.drawn.element(c), width)?;
        }
        writeln!(f)
    }
}

/// The line between two rows.
pub(super) fn rule(f: &mut fmt::Formatter<'_>, width: usize, columns: i64) -> fmt::Result {
    f.write_str("    ")?;
    for _ in 0..columns {
        write!(f, "+{:-<1$}", "", width + 2)?;
    }
    writeln!(f, "+")
}
