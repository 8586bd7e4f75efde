//! Lists of coordinates: all of a shape, and those of an index in all forms.

use core::fmt;

use crate::{CAPACITY, Int, IntTuple, Layout, linear_coordinate};

/// The natural coordinates of a shape, one per line; see [`coordinate_list`].
#[derive(Clone, Copy, Debug)]
pub struct CoordinateList<'a> {
    shape: &'a IntTuple,
}

/// Every 1-D coordinate of a shape with its natural coordinate: `005 |((1,0),(1,0))`.
///
/// ```
/// use cutlet_layout_core::{picture, shape};
///
/// let list = picture::coordinate_list(&shape!((2, (1, 2)))).to_string();
/// assert_eq!(list, "000 |(0,(0,0))\n001 |(1,(0,0))\n002 |(0,(0,1))\n003 |(1,(0,1))\n");
/// ```
pub const fn coordinate_list(shape: &IntTuple) -> CoordinateList<'_> {
    CoordinateList { shape }
}

impl fmt::Display for CoordinateList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in 0..self.shape.size() {
            writeln!(f, "{c:03} |{}", natural(c, self.shape))?;
        }
        Ok(())
    }
}

/// The coordinates that a layout maps to an index; see [`coordinates_of`].
#[derive(Clone, Debug)]
pub struct CoordinatesOf<'a> {
    layout: &'a Layout,
    index: i64,
    next: i64,
    form: usize,
}

/// Every coordinate that a layout maps to an index, in all of its forms: 1-D, one integer per mode,
/// and natural. Equal forms are given once. As text, each form is a line.
///
/// ```
/// use cutlet_layout_core::{layout, picture};
///
/// let a = layout!((3, (2, 3)):(3, (12, 1)));
/// let forms: Vec<String> = picture::coordinates_of(&a, 17).map(|c| c.to_string()).collect();
/// assert_eq!(forms, ["16", "(1,5)", "(1,(1,2))"]);
/// let text = picture::coordinates_of(&a, 17).to_string();
/// assert_eq!(text, "Coord: 16\nCoord: (1, 5)\nCoord: (1, (1, 2))\n");
/// ```
pub const fn coordinates_of(layout: &Layout, index: i64) -> CoordinatesOf<'_> {
    CoordinatesOf {
        layout,
        index,
        next: 0,
        form: 0,
    }
}

impl Iterator for CoordinatesOf<'_> {
    type Item = IntTuple;

    fn next(&mut self) -> Option<IntTuple> {
        if self.form == 0 {
            while self.next < self.layout.size()
                && self.layout.try_at(self.next) != Some(self.index)
            {
                self.next += 1;
            }
            if self.next == self.layout.size() {
                return None;
            }
        }
        let shape = self.layout.shape();
        let line = IntTuple::from(self.next);
        let natural = natural(self.next, &shape);
        let form = self.form;
        let last = match shape.depth() {
            0 => 0,
            1 => 1,
            _ => 2,
        };
        (self.form, self.next) = if form == last {
            (0, self.next + 1)
        } else {
            (form + 1, self.next)
        };
        Some(match form {
            0 => line,
            1 => by_mode(&natural, &shape),
            _ => natural,
        })
    }
}

/// The natural coordinate of a 1-D one, whatever the depth of the shape.
pub(super) fn natural(c: i64, shape: &IntTuple) -> IntTuple {
    let mut digits = [Int::dynamic(0); CAPACITY];
    let mut rest = c;
    for (leaf, digit) in digits[..shape.num_leaves()].iter_mut().enumerate() {
        let extent = shape.leaf(leaf).value();
        *digit = Int::dynamic(rest % extent);
        rest /= extent;
    }
    IntTuple::from_parts(digits, *shape.profile())
}

/// A natural coordinate as one integer per mode.
fn by_mode(natural: &IntTuple, shape: &IntTuple) -> IntTuple {
    let mut flat = *natural;
    for i in 0..shape.rank() {
        flat = flat.replace(i, &linear_coordinate(&natural.mode(i), &shape.mode(i)));
    }
    flat.to_dynamic()
}

impl fmt::Display for CoordinatesOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for coord in self.clone() {
            writeln!(f, "Coord: {}", Spaced(&coord))?;
        }
        Ok(())
    }
}

/// An int tuple with a space behind each comma: `(1, (1, 2))`.
pub(super) struct Spaced<'a>(pub(super) &'a IntTuple);

impl fmt::Display for Spaced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_tuple() {
            return write!(f, "{}", self.0);
        }
        f.write_str("(")?;
        for i in 0..self.0.rank() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            write!(f, "{}", Spaced(&self.0.mode(i)))?;
        }
        f.write_str(")")
    }
}
