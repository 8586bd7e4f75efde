//! The cells of a picture as data: what the playground draws.

use std::collections::BTreeMap;

use cutlet_layout_core::picture::Grid;
use cutlet_layout_core::{IntTuple, Layout, idx2crd, try_composition};
use serde_json::{Value as Json, json};

use crate::picture;
use crate::refusal::Refusal;
use crate::symbols::Symbols;
use crate::tiled::{Operand, Tiled};
use crate::tma::TmaBox;
use crate::value::Value;

/// The most cells of a picture in a browser.
const MOST_CELLS: i64 = 1 << 14;

/// The banks of shared memory, and the width of one in bits.
const BANKS: i64 = 32;
const BANK_BITS: i64 = 32;

/// What the colour of a cell tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorBy {
    /// The index modulo 8, as in CuTe's pictures.
    Index,
    /// The row: the first mode's coordinate.
    Row,
    /// The column: the coordinate of all other modes. In a zipped layout, this is the tile.
    Column,
    /// The bank of shared memory of an index, for elements of so many bits.
    Bank(i64),
}

impl ColorBy {
    /// The colour of this name; `bits` is the width of elements for banks.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn named(name: &str, bits: i64) -> Result<ColorBy, Refusal> {
        match name {
            "index" => Ok(ColorBy::Index),
            "row" => Ok(ColorBy::Row),
            "column" => Ok(ColorBy::Column),
            "bank" => Ok(ColorBy::Bank(bits)),
            "thread" | "value" => Err(Refusal::new(format!(
                "a colour by {name} needs a tile of threads and values: give its shape with --tv"
            ))),
            other => Err(Refusal::new(format!(
                "there is no colour by `{other}`: give index, row, column or bank"
            ))),
        }
    }

    /// The number of a cell's colour.
    pub(crate) fn group(self, row: i64, column: i64, index: Option<i64>) -> Option<i64> {
        match self {
            ColorBy::Index => index.map(|index| index.rem_euclid(8)),
            ColorBy::Row => Some(row),
            ColorBy::Column => Some(column),
            ColorBy::Bank(bits) => {
                index.map(|index| (index.saturating_mul(bits) / BANK_BITS).rem_euclid(BANKS))
            }
        }
    }
}

/// A layout's cells, row by row: texts, natural coordinates and colour groups, with the lines between modes.
///
/// # Errors
/// If the value is no layout, or has too many cells.
pub fn layout_cells(value: &Value, color: ColorBy, symbols: &Symbols) -> Result<Json, Refusal> {
    few_enough(value.size()?)?;
    let shape = inner_shape(&value.shape()?);
    let grid = Grid::of(&shape);
    let (rows, columns) = (grid.rows(), grid.columns());
    let mut texts = Vec::new();
    let mut naturals = Vec::new();
    let mut groups = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let c = grid.coordinate(row, column);
            let (text, index) = shown(value, c, symbols)?;
            groups.push(color.group(row, column, index));
            texts.push(text);
            naturals.push(idx2crd(&IntTuple::from(c), &shape).to_dynamic().to_string());
        }
    }
    Ok(json!({
        "rows": rows,
        "columns": columns,
        "row_lines": (1..rows).map(|row| grid.row_ends(row)).collect::<Vec<_>>(),
        "column_lines": (1..columns).map(|column| grid.column_ends(column)).collect::<Vec<_>>(),
        "row_labels": (0..rows).map(|row| grid.row_label(row).to_string()).collect::<Vec<_>>(),
        "column_labels": (0..columns).map(|column| grid.column_label(column).to_string()).collect::<Vec<_>>(),
        "texts": texts,
        "naturals": naturals,
        "groups": groups,
    }))
}

/// A cell's text, and its index if it is a plain integer.
fn shown(value: &Value, c: i64, symbols: &Symbols) -> Result<(String, Option<i64>), Refusal> {
    if let Value::Layout(layout) = value
        && let Some(sum) = symbols.sum(layout, &IntTuple::from(c))
    {
        return Ok((symbols.named(&sum.to_string()), None));
    }
    let element = value.at(c)?;
    Ok((element.to_string(), plain(&element)))
}

/// The index that an element is, unless it is a coordinate.
pub(crate) fn plain(element: &IntTuple) -> Option<i64> {
    let index = element.as_int().filter(|index| index.basis().is_none());
    index.map(|index| index.value())
}

/// The shape without parentheses around the whole.
fn inner_shape(shape: &IntTuple) -> IntTuple {
    let mut inner = *shape;
    while inner.is_tuple() && inner.rank() == 1 {
        inner = inner.mode(0);
    }
    inner
}

fn few_enough(size: i64) -> Result<i64, Refusal> {
    if size > MOST_CELLS {
        return Err(Refusal::new(format!(
            "{size} cells are too many to draw here; the most are {MOST_CELLS}"
        )));
    }
    Ok(size)
}

/// The cells of a tile with all threads and values that hold each, row by row.
///
/// # Errors
/// If the value is no thread-value layout, or does not fit the tile.
pub fn thread_value_cells(value: &Value, tile: &str) -> Result<Json, Refusal> {
    let tiled = picture::thread_values(value, tile)?;
    let (rows, columns) = (tiled.rows(), tiled.columns());
    few_enough(rows.saturating_mul(columns))?;
    let layout = value.layout()?;
    let positions = Layout::try_col_major(&IntTuple::from((rows, columns)))?;
    let to_element = if layout.has_basis() {
        try_composition(&positions, &layout)?
    } else {
        layout
    };
    let mut holders: BTreeMap<i64, Vec<[i64; 2]>> = BTreeMap::new();
    for c in 0..few_enough(layout.size())? {
        let holder = [c % tiled.threads(), c / tiled.threads()];
        holders.entry(to_element.at(c)).or_default().push(holder);
    }
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| row + column * rows));
    let cells: Vec<_> = cells
        .map(|position| holders.remove(&position).unwrap_or_default())
        .collect();
    Ok(json!({
        "rows": rows,
        "columns": columns,
        "threads": tiled.threads(),
        "values": tiled.values(),
        "holders": cells,
    }))
}

/// The operands of a tiled operation: for each element of a tile the first thread and value that hold it, and for each
/// thread the first thread that holds the same.
///
/// # Errors
/// If the operation does not divide the tile, or the tile has too many cells.
pub fn tiled_cells(tiled: &Tiled, tile: &str) -> Result<Json, Refusal> {
    let extents = picture::extents_of(tile)?;
    let operands = tiled.operands(extents.as_ref())?;
    let cells: Vec<Json> = operands
        .iter()
        .map(operand_cells)
        .collect::<Result<_, _>>()?;
    Ok(json!({
        "threads": tiled.threads(),
        "tile": extents.unwrap_or_else(|| tiled.tile()).to_dynamic().to_string(),
        "operands": cells,
    }))
}

fn operand_cells(operand: &Operand) -> Result<Json, Refusal> {
    let [rows, columns] = [0, 1].map(|i| operand.tile.mode(i).size());
    let layout = &operand.layout;
    let [threads, values] = [0, 1].map(|i| layout.mode(i).size());
    let first = operand.first_holders();
    let mut holders = vec![None; few_enough(rows.saturating_mul(columns))? as usize];
    for thread in (0..threads).filter(|&thread| first[thread as usize] == thread) {
        for value in 0..values {
            // The cells are row by row, and positions count down the columns.
            let position = layout.at(thread + value * threads);
            let cell = position % rows * columns + position / rows;
            holders[cell as usize] = Some([thread, value]);
        }
    }
    Ok(json!({
        "name": operand.name,
        "layout": layout.to_string(),
        "rows": rows,
        "columns": columns,
        "values": values,
        "shared": operand.is_shared_by_all(),
        "first": first,
        "holders": holders,
    }))
}

/// Boxes of TMA: whether they are legal, or why not, and how one lies in shared memory.
pub fn tma_json(boxes: &TmaBox) -> Json {
    let reasons = boxes.reasons().iter();
    let reasons = reasons.map(|reason| json!({ "found": reason.found, "fix": reason.fix }));
    json!({
        "asked": boxes.asked(),
        "legal": boxes.reasons().is_empty(),
        "reasons": reasons.collect::<Vec<_>>(),
        "shared": boxes.shared().to_string(),
    })
}
