//! The table of a kind's rows. A column that no row fills is left out.

use maud::{Markup, html};

use super::plots::shape;
use crate::bench::family::Unit;
use crate::bench::results::{Figures, Measured, Results, RowResult, kind};
use crate::measure::case::Role;
use crate::measure::check::Distance;
use crate::measure::statistics::{Spread, Verdict};
use crate::measure::telemetry::Telemetry;
use crate::units::{self, figure};

/// The columns.
const COLUMNS: usize = 14;

/// A line of the table.
struct Line {
    cells: [String; COLUMNS],
    verdict: Option<Verdict>,
    /// Whether it is about something else than cutlet against the baseline.
    is_minor: bool,
}

/// The measured rows of a kind; nothing if there are none.
pub fn table(results: &Results, of: &str) -> Markup {
    let rows = results.rows.iter().filter(|result| kind(&result.row) == of);
    let rows: Vec<_> = rows
        .filter_map(|result| Some((result, result.measured()?)))
        .collect();
    let Some((first, _)) = rows.first() else {
        return html! {};
    };
    let heads = heads(first.row.unit.name());
    let lines: Vec<Line> = rows
        .iter()
        .flat_map(|(result, measured)| lines(result, measured))
        .collect();
    let is_filled = |column: usize| lines.iter().any(|line| !line.cells[column].is_empty());
    let columns: Vec<usize> = (0..COLUMNS).filter(|&column| is_filled(column)).collect();
    html! {
        figure {
            figcaption { h3 { "Figures" } }
            div class="wide" {
                table {
                    thead {
                        tr { @for &column in &columns { th class=(class(column)) { (heads[column]) } } }
                    }
                    tbody { @for line in &lines { (row(line, &columns)) } }
                }
            }
        }
    }
}

/// The heads of the columns. Speeds are in this unit.
fn heads(unit: &str) -> [String; COLUMNS] {
    [
        "shape",
        "",
        &format!("cutlet {unit}"),
        "µs",
        "baseline",
        "µs",
        "default",
        "ratio",
        "in rounds",
        "",
        "error",
        "baseline's error",
        "MHz",
        "W",
    ]
    .map(str::to_string)
}

/// The column of the verdict, which has its colour.
const VERDICT: usize = 9;

/// The class of a column: all are numbers but shape, label and verdict.
fn class(column: usize) -> &'static str {
    match column {
        0 | 1 | VERDICT => "",
        _ => "number",
    }
}

fn row(line: &Line, columns: &[usize]) -> Markup {
    let verdict = line.verdict.map_or("", |verdict| match verdict {
        Verdict::Faster => "faster",
        Verdict::Tie => "tie",
        Verdict::Slower => "slower",
    });
    html! {
        tr class=[line.is_minor.then_some("minor")] {
            @for &column in columns {
                @let class = if column == VERDICT { verdict } else { class(column) };
                td class=(class) { (line.cells[column]) }
            }
        }
    }
}

/// The lines of a row.
fn lines(result: &RowResult, measured: &Measured) -> Vec<Line> {
    let first = bursts(result, measured);
    let settled = sustained(result, measured);
    let others = measured.contestants.iter();
    let others =
        others.filter(|figures| matches!(figures.role, Role::Alternative | Role::Instance));
    [first]
        .into_iter()
        .chain(settled)
        .chain(others.map(other))
        .collect()
}

/// cutlet against the baseline.
fn bursts(result: &RowResult, measured: &Measured) -> Line {
    let [our_speed, our_time] = speed_and_time(measured.cutlet());
    let [their_speed, their_time] = speed_and_time(measured.baseline());
    let [ratio, rounds] = ratio(measured.ratio.as_ref());
    let verdict = measured.verdict();
    let telemetry = measured.telemetry;
    let telemetry = telemetry.map(|Telemetry { sm_mhz, watts }| [sm_mhz, watts]);
    let [clock, power] = match telemetry {
        Some(readings) => readings.map(|reading| format!("{reading:.0}")),
        None => Default::default(),
    };
    // A copy has no default.
    let default = measured.library_default();
    let default = default.filter(|_| result.row.unit == Unit::Teraflops);
    Line {
        cells: [
            shape(&result.row.shape),
            result.row.label.clone(),
            our_speed,
            our_time,
            their_speed,
            their_time,
            default.map_or(String::new(), |figures| figure(figures.speed)),
            ratio,
            rounds,
            verdict.map_or(String::new(), |verdict| verdict.word().to_string()),
            error(measured.cutlet()),
            error(measured.baseline()),
            clock,
            power,
        ],
        verdict,
        is_minor: false,
    }
}

/// The power-settled figures, if there are any.
fn sustained(result: &RowResult, measured: &Measured) -> Option<Line> {
    let settled = measured.sustained_ratio.as_ref()?;
    let speed = |figures: Option<&Figures>| {
        let microseconds = figures.and_then(|figures| figures.sustained_microseconds);
        microseconds.map_or(String::new(), |time| figure(result.row.speed(time)))
    };
    let verdict = Verdict::of(settled);
    let [ratio, rounds] = ratio(Some(settled));
    let mut line = Line {
        cells: Default::default(),
        verdict: Some(verdict),
        is_minor: true,
    };
    line.cells[1] = "power-settled".to_string();
    line.cells[2] = speed(measured.cutlet());
    line.cells[4] = speed(measured.baseline());
    line.cells[6] = speed(measured.library_default());
    line.cells[7] = ratio;
    line.cells[8] = rounds;
    line.cells[VERDICT] = verdict.word().to_string();
    Some(line)
}

/// Another computation, or a kernel instance. An instance is cutlet's.
fn other(figures: &Figures) -> Line {
    let first = if figures.role == Role::Instance { 2 } else { 4 };
    let [speed, time] = speed_and_time(Some(figures));
    let mut line = Line {
        cells: Default::default(),
        verdict: None,
        is_minor: true,
    };
    line.cells[1] = figures.name.clone();
    line.cells[first] = speed;
    line.cells[first + 1] = time;
    line
}

fn speed_and_time(figures: Option<&Figures>) -> [String; 2] {
    let Some(figures) = figures else {
        return Default::default();
    };
    let time = &figures.microseconds;
    [
        figure(figures.speed),
        format!("{} ±{:.1}%", figure(time.median), time.relative() * 100.0),
    ]
}

/// A ratio, and its lowest and highest round.
fn ratio(ratio: Option<&Spread>) -> [String; 2] {
    match ratio {
        Some(Spread { median, min, max }) => {
            let [median, min, max] = [*median, *min, *max].map(units::ratio);
            [median, format!("{min} – {max}")]
        }
        None => Default::default(),
    }
}

fn error(figures: Option<&Figures>) -> String {
    match figures.and_then(|figures| figures.error) {
        Some(Distance::NONE) => "exact".to_string(),
        Some(Distance { relative, .. }) => format!("{relative:.1e}"),
        None => String::new(),
    }
}
