//! Pictures of layouts: tables as CuTe prints them, LaTeX and SVG.
//!
//! Each function returns a value that implements `Display`, so a picture goes wherever text goes
//! and needs no heap:
//!
//! ```
//! use cutlet_layout_core::{layout, picture};
//!
//! print!("{}", picture::table(&layout!((2, 3):(3, 1))));
//! ```

mod annotated;
mod color;
mod coordinates;
mod grid;
mod latex;
mod svg;
mod table;
mod thread_value;

use core::fmt;

use crate::{ComposedLayout, IntTuple, Layout, Transform};

pub use annotated::{AnnotatedTable, annotated_table};
pub use color::Color;
pub use coordinates::{CoordinateList, CoordinatesOf, coordinate_list, coordinates_of};
pub use grid::Grid;
pub use latex::{Latex, ThreadValueLatex, latex, thread_value_latex};
pub use svg::{
    Figure, LayoutPanel, Panel, Svg, ThreadValuePanel, ThreadValueSvg, TiledPanel, TiledSvg, svg,
    thread_value_svg, tiled_svg,
};
pub use table::{Table, table};
pub use thread_value::{ThreadValueTable, ThreadValues, thread_value_table};

/// A function of coordinates that can be drawn, with its text as the title.
pub trait Draw: fmt::Display {
    /// The shape of the coordinates that are drawn.
    fn shape(&self) -> IntTuple;

    /// The result for a 1-D coordinate within the shape.
    fn element(&self, c: i64) -> IntTuple;
}

impl Draw for Layout {
    fn shape(&self) -> IntTuple {
        Layout::shape(self)
    }

    fn element(&self, c: i64) -> IntTuple {
        self.call(&c.into()).to_dynamic()
    }
}

impl<I: Transform + fmt::Display> Draw for ComposedLayout<I> {
    fn shape(&self) -> IntTuple {
        ComposedLayout::shape(self)
    }

    fn element(&self, c: i64) -> IntTuple {
        self.call(&c.into()).to_dynamic()
    }
}

/// The width of a value's text, in characters.
fn width_of(shown: &impl fmt::Display) -> usize {
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }
    let mut count = Count(0);
    match fmt::Write::write_fmt(&mut count, format_args!("{shown}")) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

/// Writes a value in a field, with spaces to the left.
fn right_aligned(
    f: &mut fmt::Formatter<'_>,
    shown: &impl fmt::Display,
    width: usize,
) -> fmt::Result {
    for _ in width_of(shown)..width {
        f.write_str(" ")?;
    }
    write!(f, "{shown}")
}

/// Writes a value in the middle of a field. An odd space goes to the left.
fn centred(f: &mut fmt::Formatter<'_>, shown: &impl fmt::Display, width: usize) -> fmt::Result {
    let spare = width.saturating_sub(width_of(shown));
    let left = spare.div_ceil(2);
    write!(f, "{:left$}{shown}{:right$}", "", "", right = spare - left)
}
