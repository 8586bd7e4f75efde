//! Plots of a run: speeds against baseline and ceilings, ratios, rooflines, gathers by row size.

mod axis;
mod gathers;
mod ratios;
mod roofline;
mod speeds;

use std::path::Path;

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;

use super::canvas::{self, Align, Canvas, Drawn, Picture, Type, color};
use super::error::Result;
use super::family::Unit;
use super::results::{Measured, Results, RowResult, kind};

/// A plot that was written, as `stem.svg`.
pub struct Plot {
    /// The stem of its file's name.
    pub stem: String,
    /// Its title.
    pub title: String,
}

/// Where plots are written.
pub struct Target<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The beginning of each file's name.
    pub prefix: &'a str,
    /// Whether each plot is written as a PNG too.
    pub png: bool,
}

/// Draws every plot that the results have figures for.
///
/// # Errors
/// If a file cannot be written.
pub fn draw(results: &Results, target: &Target<'_>) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for kind in results.kinds() {
        let group = Group::new(results, &kind);
        if group.rows.is_empty() {
            continue;
        }
        match group.rows[0].0.row.unit {
            Unit::Teraflops => {
                plots.push(write(&speeds::Speeds(&group), &group, "speed", target)?);
                if group.machine_is_known() {
                    let roofline = roofline::Roofline(&group);
                    plots.push(write(&roofline, &group, "roofline", target)?);
                }
            }
            Unit::Gigabytes => {
                plots.push(write(&gathers::Gathers(&group), &group, "speed", target)?);
            }
        }
        if group
            .rows
            .iter()
            .any(|(_, measured)| measured.ratio.is_some())
        {
            plots.push(write(&ratios::Ratios(&group), &group, "ratio", target)?);
        }
    }
    Ok(plots)
}

fn write(
    picture: &impl Picture,
    group: &Group<'_>,
    what: &str,
    target: &Target<'_>,
) -> Result<Plot> {
    let stem = format!("{}{}-{what}", target.prefix, group.kind.replace(' ', "-"));
    let file = |extension: &str| target.folder.join(format!("{stem}.{extension}"));
    canvas::write_svg(picture, &file("svg"))?;
    if target.png {
        canvas::write_png(picture, &file("png"))?;
    }
    Ok(Plot {
        title: format!("{what} of {}", group.kind),
        stem,
    })
}

/// The measured rows of a family and element type.
struct Group<'a> {
    kind: String,
    results: &'a Results,
    rows: Vec<(&'a RowResult, &'a Measured)>,
}

impl<'a> Group<'a> {
    fn new(results: &'a Results, of: &str) -> Group<'a> {
        let rows = results.rows.iter().filter(|result| kind(&result.row) == of);
        Group {
            kind: of.to_string(),
            results,
            rows: rows
                .filter_map(|result| Some((result, result.measured()?)))
                .collect(),
        }
    }

    /// The family and type in titles.
    fn name(&self) -> String {
        match self.kind.split_once(' ') {
            Some((family, dtype)) => format!("{dtype} {}", family.to_uppercase()),
            None => self.kind[..1].to_uppercase() + &self.kind[1..],
        }
    }

    /// Peak speed of the arithmetic units, in 10¹² operations a second.
    fn ceiling(&self) -> Option<f64> {
        let (result, _) = self.rows.first()?;
        self.results.machine.ceiling(&result.row.dtype)
    }

    /// Speed of a copy, in 10⁹ bytes a second.
    fn bandwidth(&self) -> Option<f64> {
        self.results.machine.copy_gigabytes
    }

    fn machine_is_known(&self) -> bool {
        self.ceiling().is_some() && self.bandwidth().is_some()
    }

    /// The speed of a row that arithmetic units and memory allow.
    fn roof(&self, result: &RowResult) -> Option<f64> {
        let row = &result.row;
        let by_memory = row.operations / row.bytes * self.bandwidth()? / 1e3;
        Some(by_memory.min(self.ceiling()?))
    }

    /// The baseline's name.
    fn baseline(&self) -> &'static str {
        match (
            self.results.machine.backend.as_str(),
            self.rows[0].0.row.unit,
        ) {
            ("cpu", Unit::Teraflops) => "plain loops",
            (_, Unit::Teraflops) => "cuBLASLt, best algorithm",
            (_, Unit::Gigabytes) => "device copy",
        }
    }

    /// The machine, with a warning about the CPU backend.
    fn subtitle(&self) -> String {
        let machine = self.results.machine.line();
        match self.results.machine.backend.as_str() {
            "cpu" => format!("{machine}: the CPU backend, no figures of a GPU"),
            _ => machine,
        }
    }
}

/// A shape in plots: `4096 × 4096 × 128 bias+gelu`.
fn shape(text: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = text.split(' ').peekable();
    let mut written = String::new();
    while let Some(word) = words.next() {
        written += word;
        written += match words.peek() {
            Some(next) if is_number(word) && is_number(next) => " × ",
            Some(_) => " ",
            None => "",
        };
    }
    written
}

/// An entry of a legend.
struct Key {
    color: RGBColor,
    text: String,
    mark: Mark,
}

#[derive(Clone, Copy)]
enum Mark {
    Bar,
    Line,
    Dash,
    Tick,
    Dot,
    Ring,
}

/// Title, subtitle and legend, at the top left.
fn heading<B: DrawingBackend>(
    canvas: &Canvas<B>,
    group: &Group<'_>,
    title: &str,
    keys: &[Key],
) -> Drawn<B> {
    let title_type = Type::new(19.0, color::TEXT).bold();
    canvas.text((28.0, 32.0), title, title_type, Align::Left)?;
    let faint = Type::new(11.5, color::FAINT_TEXT);
    canvas.text((28.0, 55.0), &group.subtitle(), faint, Align::Left)?;
    let mut x = 28.0;
    let y = 80.0;
    for Key { color, text, mark } in keys {
        match mark {
            Mark::Bar => canvas.rectangle((x, y - 4.5), (x + 14.0, y + 4.5), *color)?,
            Mark::Line => canvas.line(&[(x, y), (x + 14.0, y)], *color, 1.5)?,
            Mark::Dash => canvas.dashes((x, y), (x + 14.0, y), *color, 1.5)?,
            Mark::Tick => canvas.rectangle((x + 6.0, y - 6.0), (x + 8.0, y + 6.0), *color)?,
            Mark::Dot => canvas.dot((x + 7.0, y), 4.5, *color)?,
            Mark::Ring => canvas.ring((x + 7.0, y), 4.5, *color, 1.5)?,
        }
        canvas.text((x + 20.0, y), text, faint, Align::Left)?;
        x += 20.0 + canvas.width(text, faint) + 22.0;
    }
    Ok(())
}

/// The height of a heading.
const HEADING: f64 = 104.0;
