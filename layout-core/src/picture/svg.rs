//! SVG pictures: tables with coloured cells, alone or several in a figure.

use core::fmt;

use super::{Color, Draw, Grid, ThreadValues};
use crate::error::tri;
use crate::{ErrorKind, IntTuple, Layout, LayoutError, Tiler, try_left_inverse, try_zipped_divide};

/// The side of a cell, in pixels.
const CELL: i64 = 40;
/// The height of a title and of the columns' labels, and the least width of the rows' labels.
const LINE: i64 = 24;
/// The width of a character of a title.
const CHARACTER: i64 = 9;
/// The width of a character of a label.
const LABEL_CHARACTER: i64 = 7;
/// The space around and between panels.
const MARGIN: i64 = 16;

/// A table in a figure: its cells' texts and colours.
pub trait Panel {
    /// Writes the line above the table.
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The table's rows and columns, and their modes.
    fn grid(&self) -> Grid;

    /// Writes line `line` of a cell's text: 0, or 1 if cells have two lines.
    fn text(&self, row: i64, column: i64, line: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Whether cells have two lines.
    fn has_two_lines(&self) -> bool {
        false
    }

    /// A cell's colour.
    fn color(&self, row: i64, column: i64) -> Color;
}

/// A layout as a panel, its cells coloured by a function of the index.
pub struct LayoutPanel<'a> {
    title: &'a dyn fmt::Display,
    drawn: &'a dyn Draw,
    color: &'a dyn Fn(i64) -> Color,
    grid: Grid,
}

impl<'a> LayoutPanel<'a> {
    /// A layout under a title, its cells coloured by index.
    pub fn new(
        title: &'a dyn fmt::Display,
        drawn: &'a dyn Draw,
        color: &'a dyn Fn(i64) -> Color,
    ) -> LayoutPanel<'a> {
        LayoutPanel {
            title,
            drawn,
            color,
            grid: Grid::of(&drawn.shape()),
        }
    }

    /// The same layout in a single row, by 1-D coordinate.
    pub fn in_a_row(self) -> LayoutPanel<'a> {
        let grid = Grid::row(&self.drawn.shape());
        LayoutPanel { grid, ..self }
    }
}

impl Panel for LayoutPanel<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.title)
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn text(&self, row: i64, column: i64, _: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}",
            self.drawn.element(self.grid.coordinate(row, column))
        )
    }

    fn color(&self, row: i64, column: i64) -> Color {
        match self
            .drawn
            .element(self.grid.coordinate(row, column))
            .as_int()
        {
            Some(index) => (self.color)(index.value()),
            None => Color::WHITE,
        }
    }
}

/// A thread-value layout as a panel: the tile, coloured by thread or by value.
#[derive(Clone, Copy, Debug)]
pub struct ThreadValuePanel<'a> {
    drawn: &'a ThreadValues,
    by_value: bool,
}

impl<'a> ThreadValuePanel<'a> {
    /// The tile of a thread-value layout, coloured by thread.
    pub const fn new(drawn: &'a ThreadValues) -> ThreadValuePanel<'a> {
        ThreadValuePanel {
            drawn,
            by_value: false,
        }
    }

    /// The same tile, coloured by value.
    pub const fn by_value(self) -> ThreadValuePanel<'a> {
        ThreadValuePanel {
            by_value: true,
            ..self
        }
    }
}

impl Panel for ThreadValuePanel<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.drawn)
    }

    fn grid(&self) -> Grid {
        Grid::of(&IntTuple::from((self.drawn.rows(), self.drawn.columns())))
    }

    fn text(&self, row: i64, column: i64, line: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letter, holders) = (["T", "V"][line.min(1)], self.drawn.holders(row, column));
        for (i, (thread, value)) in holders.enumerate() {
            let number = if line == 0 { thread } else { value };
            write!(f, "{}{letter}{number}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }

    fn has_two_lines(&self) -> bool {
        true
    }

    fn color(&self, row: i64, column: i64) -> Color {
        match self.drawn.owner(row, column) {
            Some((_, value)) if self.by_value => Color::of_thread(value),
            Some((thread, _)) => Color::of_thread(thread),
            None => Color::WHITE,
        }
    }
}

/// A layout as a panel, its cells coloured by the tile that they are in.
#[derive(Clone, Copy, Debug)]
pub struct TiledPanel<'a> {
    layout: &'a Layout,
    tiler: Tiler,
    /// From the 1-D coordinate of an element to that in the tiled layout.
    to_tiled: Layout,
    tile: i64,
}

impl<'a> TiledPanel<'a> {
    /// A layout with the tiles that a tiler divides it into.
    ///
    /// # Errors
    /// If [`try_zipped_divide`] returns an error, or if the tiles do not divide the layout evenly.
    pub const fn new(layout: &'a Layout, tiler: &Tiler) -> Result<TiledPanel<'a>, LayoutError> {
        let positions = tri!(Layout::try_col_major(&layout.shape()));
        let tiled = tri!(try_zipped_divide(&positions, tiler));
        if tiled.size() != layout.size() {
            return Err(LayoutError::of(
                ErrorKind::Mismatch,
                "tiled picture: the tiles do not divide the layout evenly: use a tiler that does",
            ));
        }
        Ok(TiledPanel {
            layout,
            tiler: *tiler,
            to_tiled: tri!(try_left_inverse(&tiled)),
            tile: tiled.mode(0).size(),
        })
    }
}

impl Panel for TiledPanel<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.layout, self.tiler)
    }

    fn grid(&self) -> Grid {
        Grid::of(&self.layout.shape())
    }

    fn text(&self, row: i64, column: i64, _: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coordinate = self.grid().coordinate(row, column);
        write!(f, "{}", self.layout.element(coordinate))
    }

    fn color(&self, row: i64, column: i64) -> Color {
        let coordinate = self.grid().coordinate(row, column);
        Color::of_tile(self.to_tiled.at(coordinate) / self.tile)
    }
}

/// Where a panel's cells are, in pixels.
struct Frame {
    grid: Grid,
    rows: i64,
    columns: i64,
    /// The left and upper edges of the cells.
    left: i64,
    top: i64,
    /// The width of a cell.
    width: i64,
}

impl Frame {
    /// The frame of a panel whose title begins at `top`.
    fn of(panel: &dyn Panel, top: i64) -> Frame {
        let grid = panel.grid();
        let (rows, columns) = (grid.rows(), grid.columns());
        let labels = (0..rows).map(|row| super::width_of(&grid.row_label(row)) as i64);
        let widest = labels.max().unwrap_or_default();
        Frame {
            grid,
            rows,
            columns,
            left: MARGIN + LINE.max(widest * LABEL_CHARACTER + 6),
            top: top + 2 * LINE,
            width: cell_width(panel, &grid),
        }
    }

    fn right(&self) -> i64 {
        self.left + self.columns * self.width
    }

    fn bottom(&self) -> i64 {
        self.top + self.rows * CELL
    }
}

/// The width of a panel's cells: room for the widest text and for the widest label.
fn cell_width(panel: &dyn Panel, grid: &Grid) -> i64 {
    let (rows, columns) = (grid.rows(), grid.columns());
    let (mut widest, mut label) = (0, 0);
    for column in 0..columns {
        label = label.max(super::width_of(&grid.column_label(column)) as i64);
        for row in 0..rows {
            for line in 0..lines(panel) {
                let text = CellText {
                    panel,
                    row,
                    column,
                    line,
                };
                widest = widest.max(super::width_of(&text) as i64);
            }
        }
    }
    // Four characters fit into a square.
    let text = if widest > 4 {
        widest * CHARACTER + 8
    } else {
        CELL
    };
    text.max(label * LABEL_CHARACTER + 6)
}

fn lines(panel: &dyn Panel) -> usize {
    if panel.has_two_lines() { 2 } else { 1 }
}

/// Panels under each other, as an SVG document. Lines between cells are thicker where a mode ends.
#[derive(Clone, Copy)]
pub struct Figure<'a> {
    panels: &'a [&'a dyn Panel],
}

impl<'a> Figure<'a> {
    /// A figure of some panels, from top to bottom.
    pub const fn new(panels: &'a [&'a dyn Panel]) -> Figure<'a> {
        Figure { panels }
    }

    fn size(&self) -> (i64, i64) {
        let mut size = (2 * MARGIN, MARGIN);
        for panel in self.panels {
            let frame = Frame::of(*panel, size.1);
            let title = MARGIN + super::width_of(&Title(*panel)) as i64 * CHARACTER;
            size = (
                size.0.max(frame.right().max(title) + MARGIN),
                frame.bottom() + MARGIN,
            );
        }
        size
    }
}

impl fmt::Display for Figure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size();
        write!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" "#
        )?;
        writeln!(
            f,
            r#"viewBox="0 0 {width} {height}" font-family="monospace" font-size="14">"#
        )?;
        writeln!(
            f,
            r#"<rect width="{width}" height="{height}" fill="white"/>"#
        )?;
        let mut top = MARGIN;
        for panel in self.panels {
            let frame = Frame::of(*panel, top);
            draw(f, *panel, &frame)?;
            top = frame.bottom() + MARGIN;
        }
        writeln!(f, "</svg>")
    }
}

fn draw(f: &mut fmt::Formatter<'_>, panel: &dyn Panel, frame: &Frame) -> fmt::Result {
    let baseline = frame.top - LINE - 8;
    writeln!(
        f,
        r#"<text x="{MARGIN}" y="{baseline}" font-weight="bold">{}</text>"#,
        Escaped(&Title(panel))
    )?;
    writeln!(f, r#"<g text-anchor="middle" dominant-baseline="central">"#)?;
    writeln!(f, r#"<g fill="gray" font-size="11">"#)?;
    draw_labels(f, frame)?;
    writeln!(f, "</g>")?;
    for row in 0..frame.rows {
        for column in 0..frame.columns {
            draw_cell(f, panel, frame, (row, column))?;
        }
    }
    draw_mode_lines(f, frame)?;
    writeln!(f, "</g>")
}

/// The natural coordinates of rows and columns.
fn draw_labels(f: &mut fmt::Formatter<'_>, frame: &Frame) -> fmt::Result {
    for column in 0..frame.columns {
        let x = frame.left + column * frame.width + frame.width / 2;
        let y = frame.top - LINE / 2;
        let label = frame.grid.column_label(column);
        writeln!(f, r#"<text x="{x}" y="{y}">{label}</text>"#)?;
    }
    for row in 0..frame.rows {
        let x = (MARGIN + frame.left) / 2;
        let y = frame.top + row * CELL + CELL / 2;
        let label = frame.grid.row_label(row);
        writeln!(f, r#"<text x="{x}" y="{y}">{label}</text>"#)?;
    }
    Ok(())
}

fn draw_cell(
    f: &mut fmt::Formatter<'_>,
    panel: &dyn Panel,
    frame: &Frame,
    (row, column): (i64, i64),
) -> fmt::Result {
    let (x, y) = (frame.left + column * frame.width, frame.top + row * CELL);
    let (width, fill) = (frame.width, panel.color(row, column));
    write!(
        f,
        r#"<rect x="{x}" y="{y}" width="{width}" height="{CELL}" "#
    )?;
    writeln!(f, r#"fill="{fill}" stroke="black"/>"#)?;
    let (x, middle) = (x + width / 2, y + CELL / 2);
    let lines = lines(panel);
    for line in 0..lines {
        let y = middle + if lines == 2 { [-8, 8][line] } else { 0 };
        let text = CellText {
            panel,
            row,
            column,
            line,
        };
        writeln!(f, r#"<text x="{x}" y="{y}">{}</text>"#, Escaped(&text))?;
    }
    Ok(())
}

/// Lines where modes end, thicker where more of them do.
fn draw_mode_lines(f: &mut fmt::Formatter<'_>, frame: &Frame) -> fmt::Result {
    for row in 1..frame.rows {
        let (y, ends) = (frame.top + row * CELL, frame.grid.row_ends(row));
        if ends > 0 {
            let (left, right) = (frame.left, frame.right());
            draw_line(f, format_args!("M{left} {y}H{right}"), ends)?;
        }
    }
    for column in 1..frame.columns {
        let x = frame.left + column * frame.width;
        let ends = frame.grid.column_ends(column);
        if ends > 0 {
            let (top, bottom) = (frame.top, frame.bottom());
            draw_line(f, format_args!("M{x} {top}V{bottom}"), ends)?;
        }
    }
    Ok(())
}

fn draw_line(f: &mut fmt::Formatter<'_>, path: fmt::Arguments<'_>, ends: usize) -> fmt::Result {
    let width = 1 + 2 * ends;
    writeln!(
        f,
        r#"<path d="{path}" stroke="black" stroke-width="{width}"/>"#
    )
}

struct Title<'a>(&'a dyn Panel);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.title(f)
    }
}

struct CellText<'a> {
    panel: &'a dyn Panel,
    row: i64,
    column: i64,
    line: usize,
}

impl fmt::Display for CellText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.panel.text(self.row, self.column, self.line, f)
    }
}

/// Text with the special characters of XML escaped.
struct Escaped<'a>(&'a dyn fmt::Display);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Escaper<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for c in text.chars() {
                    match c {
                        '<' => self.0.write_str("&lt;")?,
                        '>' => self.0.write_str("&gt;")?,
                        '&' => self.0.write_str("&amp;")?,
                        c => fmt::Write::write_char(self.0, c)?,
                    }
                }
                Ok(())
            }
        }
        fmt::Write::write_fmt(&mut Escaper(f), format_args!("{}", self.0))
    }
}

/// A layout as an SVG document; see [`svg`].
#[derive(Clone, Copy, Debug)]
pub struct Svg<'a, D> {
    drawn: &'a D,
}

/// A layout as an SVG document, its cells shaded by index modulo 8.
///
/// ```
/// use cutlet_layout_core::{layout, picture};
///
/// let document = picture::svg(&layout!((2, 2):(1, 2))).to_string();
/// assert!(document.starts_with("<svg ") && document.ends_with("</svg>\n"));
/// ```
pub const fn svg<D: Draw>(drawn: &D) -> Svg<'_, D> {
    Svg { drawn }
}

impl<D: Draw> fmt::Display for Svg<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panel = LayoutPanel::new(self.drawn, self.drawn, &Color::of_index);
        write!(f, "{}", Figure::new(&[&panel]))
    }
}

/// A thread-value layout as an SVG document; see [`thread_value_svg`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadValueSvg<'a> {
    drawn: &'a ThreadValues,
}

/// A thread-value layout as an SVG document: the tile, coloured by thread, with the thread and
/// value of each element.
pub const fn thread_value_svg(drawn: &ThreadValues) -> ThreadValueSvg<'_> {
    ThreadValueSvg { drawn }
}

impl fmt::Display for ThreadValueSvg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Figure::new(&[&ThreadValuePanel::new(self.drawn)]))
    }
}

/// A layout with its tiles as an SVG document; see [`tiled_svg`].
#[derive(Clone, Copy, Debug)]
pub struct TiledSvg<'a> {
    panel: TiledPanel<'a>,
}

/// A layout as an SVG document, its cells coloured by the tile that they are in.
///
/// ```
/// use cutlet_layout_core::{layout, picture, tile};
///
/// let document = picture::tiled_svg(&layout!((4, 4):(4, 1)), &tile!(<2, 2>)).unwrap().to_string();
/// assert_eq!(document.matches(&picture::Color::of_tile(3).to_string()).count(), 4);
/// ```
///
/// # Errors
/// As [`TiledPanel::new`].
pub const fn tiled_svg<'a>(layout: &'a Layout, tiler: &Tiler) -> Result<TiledSvg<'a>, LayoutError> {
    Ok(TiledSvg {
        panel: tri!(TiledPanel::new(layout, tiler)),
    })
}

impl fmt::Display for TiledSvg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Figure::new(&[&self.panel]))
    }
}
