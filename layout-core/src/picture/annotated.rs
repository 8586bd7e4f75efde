//! A table whose columns show their 1-D and their natural coordinates.

use core::fmt;

use super::coordinates::{Spaced, natural};
use super::table::rule;
use super::{Draw, Grid, centred, width_of};
use crate::{IntTuple, Layout};

/// The names of the integers of a natural coordinate, from the first on.
const NAMES: [char; 18] = [
    'i', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', '…',
];

/// The annotated table of a layout; see [`annotated_table`].
#[derive(Clone, Copy, Debug)]
pub struct AnnotatedTable<'a> {
    layout: &'a Layout,
}

/// The table of a layout with each column's 1-D coordinate above it. If columns are nested, their
/// natural coordinates are above them too. Nested rows have theirs beside them.
///
/// ```
/// use cutlet_layout_core::{layout, picture};
///
/// let table = picture::annotated_table(&layout!((2, (2, 2)):(1, (4, 2)))).to_string();
/// assert_eq!(table, "\
/// Layout (2, (2, 2)):(1, (4, 2))
///        0     1     2     3     <== 1-D col coord
///      (0,0) (1,0) (0,1) (1,1)   <== 2-D col coord (j,k)
///     +-----+-----+-----+-----+
///  0  |  0  |  4  |  2  |  6  |
///     +-----+-----+-----+-----+
///  1  |  1  |  5  |  3  |  7  |
///     +-----+-----+-----+-----+
/// ");
/// ```
pub const fn annotated_table(layout: &Layout) -> AnnotatedTable<'_> {
    AnnotatedTable { layout }
}

impl fmt::Display for AnnotatedTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.layout;
        let (shape, stride) = (layout.shape().to_dynamic(), layout.stride().to_dynamic());
        writeln!(f, "Layout {}:{}", Spaced(&shape), Spaced(&stride))?;
        let grid = Grid::of(&shape);
        let across = across(&shape);
        let down = if shape.rank() > 1 {
            shape.mode(0)
        } else {
            IntTuple::from(1)
        };
        let natural_column = |column: i64| natural(column, &across);
        let width = (0..layout.size())
            .map(|c| width_of(&layout.element(c)))
            .max()
            .unwrap_or(1)
            .max(if across.is_tuple() {
                width_of(&natural_column(0)) - 2
            } else {
                1
            });
        let width = width.max(width_of(&(grid.columns() - 1)));

        f.write_str("     ")?;
        for column in 0..grid.columns() {
            centred(f, &column, width + 2)?;
            f.write_str(" ")?;
        }
        writeln!(f, "  <== 1-D col coord")?;
        if across.is_tuple() {
            f.write_str("     ")?;
            for column in 0..grid.columns() {
                centred(f, &natural_column(column), width + 2)?;
                f.write_str(" ")?;
            }
            write!(f, "  <== {}-D col coord ", across.num_leaves())?;
            writeln!(f, "{}", Named(&across, down.num_leaves()))?;
        }
        for row in 0..grid.rows() {
            rule(f, width, grid.columns())?;
            write!(f, "{row:2}  ")?;
            for column in 0..grid.columns() {
                f.write_str("|")?;
                centred(f, &layout.element(grid.coordinate(row, column)), width + 2)?;
            }
            f.write_str("|")?;
            if down.is_tuple() {
                write!(f, " {}", natural(row, &down))?;
            }
            writeln!(f)?;
        }
        rule(f, width, grid.columns())
    }
}

/// The shape that runs across.
fn across(shape: &IntTuple) -> IntTuple {
    match shape.rank() {
        1 => *shape,
        2 => shape.mode(1),
        rank => shape.take(1, rank),
    }
}

/// A shape with a name for each of its integers: `(j,k)`.
struct Named<'a>(&'a IntTuple, usize);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named(shape, first) = self;
        if !shape.is_tuple() {
            return write!(f, "{}", NAMES[(*first).min(NAMES.len() - 1)]);
        }
        f.write_str("(")?;
        let mut next = *first;
        for i in 0..shape.rank() {
            if i > 0 {
                f.write_str(",")?;
            }
            let mode = shape.mode(i);
            write!(f, "{}", Named(&mode, next))?;
            next += mode.num_leaves();
        }
        f.write_str(")")
    }
}
