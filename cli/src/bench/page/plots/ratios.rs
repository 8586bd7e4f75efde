//! Ratios of cutlet's speed to the baseline's, the best first, with the rounds' extremes.

use maud::Markup;

use super::axis::Axis;
use super::{Group, Key, Mark, Plot, shape};
use crate::bench::family::Row;
use crate::bench::page::svg::{Align, Ink, line, picture, rectangle, text, titled};
use crate::measure::statistics::{Spread, Verdict};
use crate::units;

const ROW: f64 = 23.0;
const TOP: f64 = 8.0;
const LEFT: f64 = 208.0;
const WIDTH: f64 = 980.0;
const RIGHT: f64 = 64.0;
/// Room for a figure at the left end of a bar.
const LABEL: f64 = 40.0;

/// A row with its ratio.
type Compared<'a> = (&'a Row, Spread, Verdict);

/// The plot; `None` if no row has a baseline.
pub fn plot(group: &Group<'_>) -> Option<Plot> {
    let rows = rows(group);
    if rows.is_empty() {
        return None;
    }
    // Rows shown apart would leave no room for the others. Their bars may end at the edge.
    let medians = || {
        let counted = rows.iter().filter(|(row, ..)| !row.apart);
        counted.map(|(_, ratio, _)| ratio.median)
    };
    let least = medians().fold(0.93, f64::min) * 0.97;
    let most = medians().fold(1.08, f64::max) * 1.03;
    let axis = Axis::logarithmic((least, most), (LEFT + LABEL, WIDTH - RIGHT));
    let bottom = TOP + ROW * rows.len() as f64;

    let mut parts = grid(&axis, bottom, most / least);
    let mean = mean(group, &axis, bottom);
    parts.extend(mean.clone());
    for (number, row) in rows.iter().enumerate() {
        parts.push(bar(&axis, TOP + ROW * (number as f64 + 0.5), row));
    }
    let one = axis.place(1.0);
    parts.push(line(
        &[(one, TOP - 4.0), (one, bottom)],
        Ink::Ceiling,
        "thin",
    ));
    let title = format!("Speed relative to {}", group.baseline());
    Some(Plot {
        svg: picture((WIDTH, bottom + 28.0), &title, &parts),
        title,
        keys: keys(group, rows.iter().any(|(row, ..)| row.apart)),
    })
}

/// Rows with a baseline, the best first.
fn rows<'a>(group: &Group<'a>) -> Vec<Compared<'a>> {
    let rows = group.rows.iter();
    let mut rows: Vec<_> = rows
        .filter_map(|(result, measured)| Some((&result.row, measured.ratio?, measured.verdict()?)))
        .collect();
    rows.sort_by(|(_, a, _), (_, b, _)| b.median.total_cmp(&a.median));
    rows
}

fn keys(group: &Group<'_>, has_apart: bool) -> Vec<Key> {
    let mut keys = vec![
        Key::new(Mark::Bar, Ink::Cutlet, "faster"),
        Key::new(Mark::Bar, Ink::Tie, "tie: 1 lies within the rounds"),
        Key::new(Mark::Bar, Ink::Slower, "slower"),
        Key::new(
            Mark::Line,
            Ink::Text,
            "from the lowest to the highest round",
        ),
    ];
    if let Some(mean) = group.mean() {
        let mean = format!("geometric mean {mean:.3}");
        keys.push(Key::new(Mark::Dash, Ink::Text, &mean));
    }
    if has_apart {
        keys.push(Key::words("* shown apart, not in the mean"));
    }
    keys
}

fn bar(axis: &Axis, y: f64, (row, ratio, verdict): &Compared<'_>) -> Markup {
    let Spread { median, min, max } = ratio;
    let (ink, of_ink) = match verdict {
        Verdict::Faster => (Ink::Cutlet, "of-cutlet"),
        Verdict::Tie => (Ink::Tie, "of-tie"),
        Verdict::Slower => (Ink::Slower, "of-slower"),
    };
    let apart = if row.apart { "*" } else { "" };
    let name = shape(&row.shape);
    let (one, end) = (axis.place(1.0), axis.place(*median));
    let (from, to) = (one.min(end), one.max(end));
    let (low, high) = (axis.place(*min), axis.place(*max));
    let style = format!("bold halo {of_ink}");
    let figure = match *median {
        ..0.1 => units::ratio(*median),
        _ => format!("{median:.2}"),
    };
    let label = match *median >= 1.0 {
        true => text((high.max(end) + 6.0, y), &figure, Align::Left, &style),
        false => text((low.min(end) - 6.0, y), &figure, Align::Right, &style),
    };
    let says = format!(
        "{name}\n{}×, in rounds {} to {}",
        units::ratio(*median),
        units::ratio(*min),
        units::ratio(*max)
    );
    titled(
        &says,
        &[
            text(
                (LEFT - 12.0, y),
                &format!("{name}{apart}"),
                Align::Right,
                "",
            ),
            rectangle((from, y - 7.5), (to.max(from + 1.0), y + 7.5), ink),
            line(&[(low, y), (high, y)], Ink::Text, "thin"),
            label,
        ],
    )
}

fn grid(axis: &Axis, bottom: f64, span: f64) -> Vec<Markup> {
    let ticks = match span {
        ..1.3 => vec![0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2],
        ..5.0 => vec![
            0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0,
        ],
        _ => axis.powers(2.0),
    };
    let ends = (axis.place(0.0), axis.place(f64::INFINITY));
    let mut parts = Vec::new();
    for tick in ticks {
        let x = axis.place(tick);
        if x <= ends.0 || x >= ends.1 {
            continue;
        }
        parts.push(line(&[(x, TOP - 4.0), (x, bottom)], Ink::Grid, "thin"));
        let figure = format!("{tick}×");
        parts.push(text((x, bottom + 14.0), &figure, Align::Middle, "small"));
    }
    parts
}

fn mean(group: &Group<'_>, axis: &Axis, bottom: f64) -> Option<Markup> {
    let x = axis.place(group.mean()?);
    Some(line(
        &[(x, TOP - 4.0), (x, bottom)],
        Ink::Text,
        "thin dashed",
    ))
}
