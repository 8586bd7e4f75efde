//! Thread-value tables: which thread holds each element of a tile, and as which of its values.

use core::fmt;

use super::table::rule;
use super::{centred, width_of};
use crate::error::tri;
use crate::text::Text;
use crate::{
    ErrorKind, IntTuple, Layout, LayoutError, filter_zeros, try_composition, try_right_inverse,
};

/// A thread-value layout over a tile, ready to be drawn.
///
/// The layout maps (thread, value) to elements of the tile: to colexicographic positions, as CuTe's
/// atoms do, or to coordinates, by strides in basis directions.
#[derive(Clone, Copy, Debug)]
pub struct ThreadValues {
    layout: Layout,
    to_element: Layout,
    /// From elements to the first (thread, value) that holds each, if no other value of that thread and no thread but
    /// those with all the same elements do.
    to_owner: Option<Layout>,
    rows: i64,
    columns: i64,
}

impl ThreadValues {
    /// The thread-value layout `layout` = (thread, value) → element over a tile of a shape
    /// (rows, columns).
    ///
    /// # Errors
    /// If the layout or the shape is not of rank 2, or the layout leaves the tile.
    pub const fn new(layout: &Layout, tile: &IntTuple) -> Result<ThreadValues, LayoutError> {
        if layout.rank() != 2 || tile.rank() != 2 {
            let why = "give a layout (thread, value) and a tile (rows, columns), both of rank 2";
            return Err(refused(layout, tile, why));
        }
        let positions = tri!(Layout::try_col_major(tile));
        let to_element = if layout.has_basis() {
            tri!(try_composition(&positions, layout))
        } else {
            *layout
        };
        if !inside(layout, tile) || to_element.cosize() > positions.size() {
            let why = "the layout maps to elements outside the tile: give a larger tile";
            return Err(refused(layout, tile, why));
        }
        let (rows, columns) = (tile.mode(0).size(), tile.mode(1).size());
        let different = filter_zeros(&to_element.mode(0)).size();
        let to_owner = match try_right_inverse(&to_element) {
            Ok(inverse)
                if inverse.size() == rows * columns
                    && different * to_element.mode(1).size() == rows * columns =>
            {
                Some(inverse)
            }
            _ => None,
        };
        Ok(ThreadValues {
            layout: *layout,
            to_element,
            to_owner,
            rows,
            columns,
        })
    }

    /// The number of rows of the tile.
    pub const fn rows(&self) -> i64 {
        self.rows
    }

    /// The number of columns of the tile.
    pub const fn columns(&self) -> i64 {
        self.columns
    }

    /// The number of threads.
    pub const fn threads(&self) -> i64 {
        self.to_element.mode(0).size()
    }

    /// The number of values of a thread.
    pub const fn values(&self) -> i64 {
        self.to_element.mode(1).size()
    }

    /// The first (thread, value) that holds an element, if there is one.
    pub fn owner(&self, row: i64, column: i64) -> Option<(i64, i64)> {
        self.holders(row, column).next()
    }

    /// All (thread, value) that hold an element, in the order of the layout's coordinates.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, picture::ThreadValues, shape};
    ///
    /// // Two threads share every element.
    /// let shared = ThreadValues::new(&layout!((2, 4):(0, 1)), &shape!((1, 4))).unwrap();
    /// assert_eq!(shared.holders(0, 3).collect::<Vec<_>>(), [(0, 3), (1, 3)]);
    /// ```
    pub fn holders(&self, row: i64, column: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let position = row + column * self.rows;
        let first = self.to_owner.map(|to_owner| to_owner.at(position));
        // With a first holder, the others are the threads that begin where its thread does.
        let (searched, wanted) = match first {
            Some(first) => (
                first..first - first % self.threads() + self.threads(),
                self.to_element.at(first),
            ),
            None => (0..self.to_element.size(), position),
        };
        let found = searched.filter(move |&c| self.to_element.at(c) == wanted);
        found.map(|c| (c % self.threads(), c / self.threads()))
    }
}

const fn refused(layout: &Layout, tile: &IntTuple, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str("thread-value table: ").layout(layout);
    text.str(" over ").tuple(tile).str(": ").str(why);
    LayoutError::new(ErrorKind::Mismatch, &text)
}

/// Whether a layout in basis directions stays inside a tile.
const fn inside(layout: &Layout, tile: &IntTuple) -> bool {
    if !layout.has_basis() {
        return !layout.maps_below_zero();
    }
    let mut direction = 0;
    while direction < 2 {
        let mut last = 0;
        let mut i = 0;
        while i < layout.num_leaves() {
            let stride = layout.leaf_stride(i);
            if stride.value() < 0 || (!stride.basis().is_none() && stride.basis().at(0) > 1) {
                return false;
            }
            last += (layout.leaf_shape(i).value() - 1) * stride.component(direction);
            i += 1;
        }
        if last >= tile.mode(direction).size() {
            return false;
        }
        direction += 1;
    }
    true
}

impl fmt::Display for ThreadValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over ({},{})", self.layout, self.rows, self.columns)
    }
}

/// The table of a thread-value layout; see [`thread_value_table`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadValueTable<'a> {
    drawn: &'a ThreadValues,
}

/// The tile as a table that names, for each element, the thread and which of its values it is:
/// `T3V1`. Elements that no thread holds are left empty. If several hold one, all are named.
///
/// ```
/// use cutlet_layout_core::{layout, picture, shape};
///
/// let tv = layout!(((2, 2), 2):((2, 1), 4));
/// let drawn = picture::ThreadValues::new(&tv, &shape!((2, 4))).unwrap();
/// assert_eq!(picture::thread_value_table(&drawn).to_string(), concat!(
///     "((_2,_2),_2):((_2,_1),_4) over (2,4)\n",
///     "        0      1      2      3  \n",
///     "    +------+------+------+------+\n",
///     " 0  | T0V0 | T1V0 | T0V1 | T1V1 |\n",
///     "    +------+------+------+------+\n",
///     " 1  | T2V0 | T3V0 | T2V1 | T3V1 |\n",
///     "    +------+------+------+------+\n",
/// ));
/// ```
pub const fn thread_value_table(drawn: &ThreadValues) -> ThreadValueTable<'_> {
    ThreadValueTable { drawn }
}

impl fmt::Display for ThreadValueTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawn = self.drawn;
        writeln!(f, "{drawn}")?;
        let places =
            (0..drawn.columns).flat_map(|column| (0..drawn.rows).map(move |row| (row, column)));
        let widest = places
            .map(|(row, column)| width_of(&Holders { drawn, row, column }))
            .max();
        let last = (drawn.threads() - 1, drawn.values() - 1);
        let width = width_of(&format_args!("T{}V{}", last.0, last.1))
            .max(widest.unwrap_or(0))
            .max(width_of(&(drawn.columns - 1)));
        f.write_str("    ")?;
        for column in 0..drawn.columns {
            f.write_str(" ")?;
            centred(f, &column, width + 2)?;
        }
        writeln!(f)?;
        for row in 0..drawn.rows {
            rule(f, width, drawn.columns)?;
            write!(f, "{row:2}  ")?;
            for column in 0..drawn.columns {
                f.write_str("|")?;
                centred(f, &Holders { drawn, row, column }, width + 2)?;
            }
            writeln!(f, "|")?;
        }
        rule(f, width, drawn.columns)
    }
}

/// The threads and values that hold an element, as text; empty if there are none.
struct Holders<'a> {
    drawn: &'a ThreadValues,
    row: i64,
    column: i64,
}

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (thread, value)) in self.drawn.holders(self.row, self.column).enumerate() {
            write!(f, "{}T{thread}V{value}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
