//! Plots of a run: ratios and speeds against baseline and ceilings, rooflines, movements by row size.

mod axis;
mod gathers;
mod ratios;
mod roofline;
mod speeds;

use maud::{Markup, html};

use super::svg::Ink;
use crate::bench::family::Unit;
use crate::bench::results::{Measured, Results, RowResult, kind};

/// A plot, with what is written above it.
pub struct Plot {
    title: String,
    keys: Vec<Key>,
    svg: Markup,
}

/// Every plot that the results have figures for, of a family and element type.
pub fn plots(results: &Results, kind: &str) -> Vec<Plot> {
    let group = Group::new(results, kind);
    if group.rows.is_empty() {
        return Vec::new();
    }
    let ratios = ratios::plot(&group);
    let others = match group.unit() {
        Unit::Teraflops => [Some(speeds::plot(&group)), roofline::plot(&group)],
        Unit::Gigabytes => [gathers::plot(&group), None],
    };
    ratios
        .into_iter()
        .chain(others.into_iter().flatten())
        .collect()
}

impl Plot {
    /// The plot below its title and legend.
    pub fn figure(&self) -> Markup {
        html! {
            figure {
                figcaption {
                    h3 { (self.title) }
                    ul class="legend" {
                        @for key in &self.keys { li { (key.mark()) (key.text) } }
                    }
                }
                div class="wide" { (self.svg) }
            }
        }
    }
}

/// An entry of a legend.
struct Key {
    mark: Option<(Mark, Ink)>,
    text: String,
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

impl Key {
    fn new(mark: Mark, ink: Ink, text: &str) -> Key {
        Key {
            mark: Some((mark, ink)),
            text: text.to_string(),
        }
    }

    /// An entry without a mark.
    fn words(text: &str) -> Key {
        Key {
            mark: None,
            text: text.to_string(),
        }
    }

    fn mark(&self) -> Markup {
        let Some((mark, ink)) = self.mark else {
            return html! {};
        };
        html! {
            svg width="14" height="12" viewBox="0 0 14 12" aria-hidden="true" {
                @match mark {
                    Mark::Bar => rect class=(format!("fill-{ink}")) y="1.5" width="14" height="9" {},
                    Mark::Line => path class=(format!("line thin stroke-{ink}")) d="M0 6h14" {},
                    Mark::Dash => path class=(format!("line dashed stroke-{ink}")) d="M0 6h14" {},
                    Mark::Tick => rect class=(format!("fill-{ink}")) x="6" width="2" height="12" {},
                    Mark::Dot => circle class=(format!("fill-{ink}")) cx="7" cy="6" r="4.5" {},
                    Mark::Ring => circle class=(format!("ring stroke-{ink}")) cx="7" cy="6" r="4.5" {},
                }
            }
        }
    }
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

    /// The unit of the rows' speeds. There is a row.
    fn unit(&self) -> Unit {
        self.rows[0].0.row.unit
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

    /// The speed of a row of a GEMM that arithmetic units and memory allow.
    fn roof(&self, result: &RowResult) -> Option<f64> {
        let row = &result.row;
        let by_memory = row.operations / row.bytes * self.bandwidth()? / 1e3;
        Some(by_memory.min(self.ceiling()?))
    }

    /// The geometric mean of the ratios.
    fn mean(&self) -> Option<f64> {
        let mut summaries = self.results.summaries().into_iter();
        let summary = summaries.find(|summary| summary.kind == self.kind)?;
        Some(summary.mean)
    }

    /// The baseline's name.
    fn baseline(&self) -> &'static str {
        match (self.results.machine.backend.as_str(), self.unit()) {
            ("cpu", Unit::Teraflops) => "plain loops",
            (_, Unit::Teraflops) => "cuBLASLt, best algorithm",
            (_, Unit::Gigabytes) => "device copy",
        }
    }
}

/// A shape in plots: `4096 × 4096 × 128 bias+gelu`.
pub fn shape(text: &str) -> String {
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
