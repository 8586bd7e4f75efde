//! The table on the terminal: a line for each row as it is measured, and the summary.

use super::family::Row;
use super::results::{Measured, Outcome, Results, RowResult, Summary};
use crate::measure::check::Distance;
use crate::measure::statistics::Verdict;
use crate::units::{self, figure};

/// The narrowest column of shapes.
const SHAPE: usize = 18;

/// The width of the column of shapes in a table of rows.
pub fn width<'a>(rows: impl IntoIterator<Item = &'a Row>) -> usize {
    let widths = rows.into_iter().map(|row| row.shape.chars().count());
    widths.fold(SHAPE, usize::max)
}

/// The line above the rows.
pub fn header(width: usize) -> String {
    format!(
        "{:<20} {:<11} {:<width$} {:>9} {:>9} {:>9} {:>7}  {:>7} {:>6} {:<7} {:>8}",
        "family",
        "type",
        "shape",
        "cutlet",
        "baseline",
        "default",
        "unit",
        "ratio",
        "±",
        "",
        "error"
    )
}

/// The line of a row.
pub fn line(result: &RowResult, width: usize) -> String {
    let Row {
        family,
        dtype,
        shape,
        ..
    } = &result.row;
    let name = format!("{family:<20} {dtype:<11} {shape:<width$}");
    match &result.outcome {
        Outcome::Measured(measured) => format!("{name} {}", figures(&result.row, measured)),
        Outcome::Wrong { found } => format!("{name} WRONG: {found}"),
        Outcome::Skipped { reason } => format!("{name} skipped: {reason}"),
        Outcome::Failed { error } => format!("{name} FAILED: {error}"),
    }
}

fn figures(row: &Row, measured: &Measured) -> String {
    let speed = |speed: Option<f64>| speed.map_or("-".to_string(), figure);
    let error = match measured.cutlet().and_then(|figures| figures.error) {
        Some(Distance::NONE) => "exact".to_string(),
        Some(distance) => format!("{:.1e}", distance.relative),
        None => "-".to_string(),
    };
    let [ratio, spread] = match &measured.ratio {
        Some(ratio) => [
            format!("{}x", units::ratio(ratio.median)),
            format!("{:.1}%", ratio.relative() * 100.0),
        ],
        None => ["-".to_string(), String::new()],
    };
    format!(
        "{:>9} {:>9} {:>9} {:>7}  {ratio:>7} {spread:>6} {:<7} {error:>8}",
        speed(measured.cutlet().map(|figures| figures.speed)),
        speed(measured.baseline().map(|figures| figures.speed)),
        speed(measured.library_default().map(|figures| figures.speed)),
        row.unit.name(),
        measured.verdict().map_or("", Verdict::word),
    )
}

/// The summary of a run.
pub fn summary(results: &Results) -> String {
    let mut lines: Vec<String> = results.summaries().iter().map(summary_line).collect();
    let count = |is: fn(&Outcome) -> bool| {
        let rows = results.rows.iter().filter(|result| is(&result.outcome));
        rows.count()
    };
    let measured = count(|outcome| matches!(outcome, Outcome::Measured(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped { .. }));
    let bad = results.rows.iter().filter(|row| row.is_bad()).count();
    let passed_over = count(
        |outcome| matches!(outcome, Outcome::Measured(measured) if !measured.passed_over.is_empty()),
    );
    if passed_over > 0 {
        lines.push(format!(
            "in {passed_over} rows a contestant that does not run or is wrong was passed over: the report names it"
        ));
    }
    if let Some(rows) = results.cut_short() {
        lines.push(format!("the run was cut short: {rows}"));
    }
    lines.push(format!(
        "{measured} rows measured, {skipped} skipped, {bad} wrong or failed, in {:.0} s",
        results.seconds
    ));
    lines.join("\n")
}

fn summary_line(summary: &Summary) -> String {
    let Summary {
        kind,
        rows,
        mean,
        worst,
        faster,
        tied,
        slower,
        apart,
    } = summary;
    let mut line = format!(
        "{kind}: geometric mean {}x over {rows} rows ({faster} faster, {tied} tied, \
         {slower} slower), worst {worst}",
        units::ratio(*mean)
    );
    for ratio in apart {
        line += &format!("; apart: {ratio}");
    }
    line
}
