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

/// A plot that was written, as `stem.svg` and `stem.png`.
pub struct Plot {
    /// What its files are called.
    pub stem: String,
    /// What it shows.
    pub title: String,
}

/// Draws every plot that the results have figures for into a folder.
///
/// # Errors
/// If a file cannot be written.
pub fn draw(results: &Results, folder: &Path) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for kind in results.kinds() {
        let group = Group::new(results, &kind);
        if group.rows.is_empty() {
            continue;
        }
        match group.rows[0].0.row.unit {
            Unit::Teraflops => {
                write(&speeds::Speeds(&group), &group, "speed", folder, &mut plots)?;
                let roofline = roofline::Roofline(&group);
                if group.machine_is_known() {
                    write(&roofline, &group, "roofline", folder, &mut plots)?;
                }
            }
            Unit::Gigabytes => {
                write(
                    &gathers::Gathers(&group),
                    &group,
                    "speed",
                    folder,
                    &mut plots,
                )?;
            }
        }
        if group
            .rows
            .iter()
            .any(|(_, measured)| measured.ratio.is_some())
        {
            write(&ratios::Ratios(&group), &group, "ratio", folder, &mut plots)?;
        }
    }
    Ok(plots)
}

fn write(
    picture: &impl Picture,
    group: &Group<'_>,
    what: &str,
    folder: &Path,
    plots: &mut Vec<Plot>,
) -> Result<()> {
    let stem = format!("{}-{what}", group.kind.replace(' ', "-"));
    canvas::write(picture, folder, &stem)?;
    plots.push(Plot {
        stem,
        title: format!("{} of {}", what, group.kind),
    });
    Ok(())
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

    /// The family and type as titles write them.
    fn name(&self) -> String {
        match self.kind.split_once(' ') {
            Some((family, dtype)) => format!("{dtype} {}", family.to_uppercase()),
            None => self.kind[..1].to_uppercase() + &self.kind[1..],
        }
    }

    /// Most operations a second, in 10¹².
    fn ceiling(&self) -> Option<f64> {
        let (result, _) = self.rows.first()?;
        self.results.machine.ceiling(&result.row.dtype)
    }

    /// Most bytes a second, in 10⁹: what a copy reached.
    fn bandwidth(&self) -> Option<f64> {
        self.results.machine.copy_gigabytes
    }

    fn machine_is_known(&self) -> bool {
        self.ceiling().is_some() && self.bandwidth().is_some()
    }

    /// The speed that neither arithmetic nor memory lets a row exceed.
    fn roof(&self, result: &RowResult) -> Option<f64> {
        let row = &result.row;
        let by_memory = row.operations / row.bytes * self.bandwidth()? / 1e3;
        Some(by_memory.min(self.ceiling()?))
    }

    /// What the baseline is called.
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

    /// The machine, and what readers must know of its figures.
    fn subtitle(&self) -> String {
        let machine = self.results.machine.line();
        match self.results.machine.backend.as_str() {
            "cpu" => format!("{machine}: the CPU backend, no figures of a GPU"),
            _ => machine,
        }
    }
}

/// A shape as plots write it: `4096 × 4096 × 128 bias+gelu`.
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

/// How tall a heading is.
const HEADING: f64 = 104.0;
