//! Pictures of the calculator's values: tables, LaTeX and SVG.

use std::fmt;

use cutlet_layout_core::picture::{self, Color, Draw, Grid, Panel, ThreadValuePanel, ThreadValues};
use cutlet_layout_core::{IntTuple, Layout};

use crate::calculator::evaluate;
use crate::cells::{ColorBy, plain};
use crate::refusal::Refusal;
use crate::value::Value;

/// The most cells of a picture.
const MOST_CELLS: i64 = 1 << 16;

/// The pictures of a layout.
#[derive(Clone, Copy, Debug)]
pub enum Picture {
    /// The table that CuTe's `print_layout` prints.
    Table,
    /// A LaTeX document, as CuTe's `print_latex` prints it.
    Latex,
    /// An SVG document.
    Svg,
}

impl Picture {
    /// Draws a layout, also a composed one or one with an offset.
    ///
    /// # Errors
    /// If the value is no layout, or has too many cells.
    pub fn draw(self, value: &Value) -> Result<String, Refusal> {
        if let (Picture::Svg, Value::Composed(_)) = (self, value) {
            return colored(value, ColorBy::Index);
        }
        match value {
            Value::Composed(layout) => self.of(&layout.by_reference(), layout.outer().size()),
            Value::Sliced(sliced) => self.of(&**sliced, sliced.layout.size()),
            other => {
                let layout = other.layout()?;
                self.of(&layout, layout.size())
            }
        }
    }

    fn of(self, drawn: &impl Draw, size: i64) -> Result<String, Refusal> {
        few_enough(size)?;
        Ok(match self {
            Picture::Table => picture::table(drawn).to_string(),
            Picture::Latex => picture::latex(drawn).to_string(),
            Picture::Svg => picture::svg(drawn).to_string(),
        })
    }
}

fn few_enough(cells: i64) -> Result<(), Refusal> {
    if cells > MOST_CELLS {
        return Err(Refusal::new(format!(
            "{cells} cells are too many to draw; the most are {MOST_CELLS}"
        )));
    }
    Ok(())
}

fn drawable(layout: Layout) -> Result<Layout, Refusal> {
    few_enough(layout.size())?;
    Ok(layout)
}

/// The table of a layout with its 1-D and natural coordinates.
///
/// # Errors
/// If the value is no layout, or has too many cells.
pub fn annotated(value: &Value) -> Result<String, Refusal> {
    let layout = value.layout().and_then(drawable)?;
    Ok(picture::annotated_table(&layout).to_string())
}

/// An SVG document of a layout, its cells coloured by the tiles of a tiler.
///
/// # Errors
/// If the value is no layout or has too many cells, or the tiler does not divide it evenly.
pub fn by_tile(value: &Value, tiler: &str) -> Result<String, Refusal> {
    let layout = value.layout().and_then(drawable)?;
    let tiler = evaluate(tiler)?.tiler()?;
    Ok(picture::tiled_svg(&layout, &tiler)?.to_string())
}

/// An SVG document of a layout, its cells coloured by row, column, bank or index. A swizzled layout is drawn below the
/// same layout without its swizzle.
///
/// # Errors
/// If the value is no layout, or has too many cells.
pub fn colored(value: &Value, color: ColorBy) -> Result<String, Refusal> {
    few_enough(value.size()?)?;
    let grid = Grid::of(&value.shape()?);
    let panel = Colored { value, color, grid };
    if let Value::Composed(layout) = value
        && layout.swizzled().is_some()
    {
        let value = &Value::Layout(*layout.outer());
        let before = Colored { value, color, grid };
        return Ok(picture::Figure::new(&[&before, &panel]).to_string());
    }
    Ok(picture::Figure::new(&[&panel]).to_string())
}

/// A layout as a panel whose cells' colours tell something else than the index.
struct Colored<'a> {
    value: &'a Value,
    color: ColorBy,
    grid: Grid,
}

impl Colored<'_> {
    fn element(&self, row: i64, column: i64) -> Option<IntTuple> {
        self.value.at(self.grid.coordinate(row, column)).ok()
    }
}

impl Panel for Colored<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn text(&self, row: i64, column: i64, _: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element(row, column) {
            Some(element) => write!(f, "{element}"),
            None => Ok(()),
        }
    }

    fn color(&self, row: i64, column: i64) -> Color {
        let index = self
            .element(row, column)
            .and_then(|element| plain(&element));
        match self.color.group(row, column, index) {
            Some(group) if self.color == ColorBy::Index => Color::of_index(group),
            Some(bank) if matches!(self.color, ColorBy::Bank(_)) => of_bank(bank),
            Some(group) => Color::of_tile(group),
            None => Color::WHITE,
        }
    }
}

/// The colour of a bank of shared memory, another for each of 32: eight hues in four shades.
fn of_bank(bank: i64) -> Color {
    let hue = Color::of_tile(bank % 8);
    let percent = [100, 86, 74, 63][(bank / 8 % 4) as usize];
    Color {
        rgb: hue.rgb.map(|part| (u16::from(part) * percent / 100) as u8),
    }
}

/// What threads hold of a tile: a picture for each operand of a tiled operation, and one of a thread-value layout.
/// Operands that all threads share have none.
///
/// ```
/// use cutlet_calculator::{evaluate, picture::holders};
///
/// let mma = evaluate("make_tiled_mma(Mma16816<bf16>, (2,2))").unwrap();
/// let names: Vec<_> = holders(&mma, "(64,32,16)").unwrap().iter().map(|it| it.name).collect();
/// assert_eq!(names, ["A", "B", "C"]);
/// ```
///
/// # Errors
/// If the value is neither, or does not fit the tile, or a picture has too many cells.
pub fn holders(value: &Value, tile: &str) -> Result<Vec<Holders>, Refusal> {
    let Value::Tiled(tiled) = value else {
        let threads = thread_values(value, tile)?;
        return Ok(vec![Holders { name: "", threads }]);
    };
    let mut all = Vec::new();
    for operand in tiled.operands(extents_of(tile)?.as_ref())? {
        few_enough(operand.tile.size())?;
        if !operand.is_shared_by_all() {
            let threads = ThreadValues::new(&operand.layout, &operand.tile)?;
            all.push(Holders {
                name: operand.name,
                threads,
            });
        }
    }
    Ok(all)
}

/// The threads and values that hold each element of an operand's tile.
#[derive(Clone, Copy, Debug)]
pub struct Holders {
    /// The operand's name; empty for a thread-value layout.
    pub name: &'static str,
    /// The tile.
    pub threads: ThreadValues,
}

impl Holders {
    /// The tile as a panel of a picture, coloured by thread, or by value.
    pub fn panel(&self, by_value: bool) -> impl Panel + '_ {
        let panel = ThreadValuePanel::new(&self.threads);
        Titled {
            name: self.name,
            panel: if by_value { panel.by_value() } else { panel },
        }
    }

    /// The tile as a table, below the operand's name.
    pub fn table(&self) -> String {
        let table = picture::thread_value_table(&self.threads).to_string();
        match self.name {
            "" => table,
            name => format!("{name}: {table}"),
        }
    }
}

/// A panel with an operand's name in its title.
struct Titled<'a> {
    name: &'static str,
    panel: ThreadValuePanel<'a>,
}

impl Panel for Titled<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        self.panel.title(f)
    }

    fn grid(&self) -> Grid {
        self.panel.grid()
    }

    fn text(&self, row: i64, column: i64, line: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.panel.text(row, column, line, f)
    }

    fn has_two_lines(&self) -> bool {
        self.panel.has_two_lines()
    }

    fn color(&self, row: i64, column: i64) -> Color {
        self.panel.color(row, column)
    }
}

/// The extents of a tile, if some are given.
pub(crate) fn extents_of(tile: &str) -> Result<Option<IntTuple>, Refusal> {
    match tile {
        "" => Ok(None),
        text => evaluate(text)?.tuple().map(Some),
    }
}

/// A value as a thread-value layout over a tile. Without a tile, it is the smallest one that holds all elements.
///
/// # Errors
/// If the value is no thread-value layout, or does not fit the tile.
pub(crate) fn thread_values(value: &Value, tile: &str) -> Result<ThreadValues, Refusal> {
    let layout = value.layout().and_then(drawable)?;
    let tile = match extents_of(tile)? {
        None if layout.has_basis() => extents(&layout),
        None => IntTuple::from((1, layout.cosize())),
        Some(tile) => tile,
    };
    few_enough(tile.size())?;
    Ok(ThreadValues::new(&layout, &tile)?)
}

/// The extents of the tile that a layout of coordinates covers.
fn extents(layout: &Layout) -> IntTuple {
    let mut extents = [1, 1];
    for leaf in 0..layout.num_leaves() {
        for (direction, extent) in extents.iter_mut().enumerate() {
            let stride = layout.leaf_stride(leaf).component(direction);
            *extent += (layout.leaf_shape(leaf).value() - 1) * stride;
        }
    }
    extents
        .map(IntTuple::from)
        .into_iter()
        .fold(IntTuple::EMPTY, |all, one| all.append(&one))
}
