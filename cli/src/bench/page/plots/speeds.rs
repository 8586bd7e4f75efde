//! Speeds by shape: a bar for cutlet, a bar for the baseline, and the speed that the hardware allows.

use maud::Markup;

use super::axis::{Axis, label};
use super::{Group, Key, Mark, Plot, shape};
use crate::bench::page::svg::{Align, Ink, line, picture, rectangle, text, titled, width};
use crate::bench::results::{Figures, Measured, RowResult};
use crate::units::figure;

/// Height of a row.
const ROW: f64 = 31.0;
const TOP: f64 = 8.0;
const LEFT: f64 = 208.0;
const WIDTH: f64 = 980.0;
const RIGHT: f64 = 64.0;

/// The plot.
pub fn plot(group: &Group<'_>) -> Plot {
    let bottom = TOP + ROW * group.rows.len() as f64;
    let axis = axis(group);
    let mut parts = grid(group, &axis, bottom);
    for (number, (result, measured)) in group.rows.iter().enumerate() {
        let y = TOP + ROW * (number as f64 + 0.5);
        parts.push(row(group, &axis, y, result, measured));
    }
    parts.push(line(
        &[(LEFT, TOP - 4.0), (LEFT, bottom)],
        Ink::Ceiling,
        "thin",
    ));
    let title = format!("Speed in {}", group.unit().name());
    Plot {
        svg: picture((WIDTH, bottom + 28.0), &title, &parts),
        title,
        keys: keys(group),
    }
}

fn axis(group: &Group<'_>) -> Axis {
    let speed = |figures: Option<&Figures>| figures.map_or(0.0, |figures| figures.speed);
    let fastest = group
        .rows
        .iter()
        .map(|(_, measured)| speed(measured.cutlet()).max(speed(measured.baseline())));
    let fastest = fastest.fold(0.0, f64::max);
    let most = group
        .ceiling()
        .map_or(fastest, |ceiling| ceiling.max(fastest));
    Axis::linear((0.0, most * 1.02), (LEFT, WIDTH - RIGHT))
}

fn keys(group: &Group<'_>) -> Vec<Key> {
    let mut keys = vec![
        Key::new(Mark::Bar, Ink::Cutlet, "cutlet"),
        Key::new(Mark::Bar, Ink::Baseline, group.baseline()),
    ];
    if group.machine_is_known() {
        let limit = "limit of the arithmetic units (highest clock) or the memory (measured copy)";
        keys.push(Key::new(Mark::Tick, Ink::Ceiling, limit));
    }
    keys
}

fn grid(group: &Group<'_>, axis: &Axis, bottom: f64) -> Vec<Markup> {
    let mut parts = Vec::new();
    for tick in axis.ticks(7) {
        let x = axis.place(tick);
        parts.push(line(&[(x, TOP - 4.0), (x, bottom)], Ink::Grid, "thin"));
        let at = (x, bottom + 14.0);
        parts.push(text(at, &label(tick), Align::Middle, "small"));
    }
    let unit = (WIDTH - RIGHT + 12.0, bottom + 14.0);
    parts.push(text(unit, group.unit().name(), Align::Left, "small"));
    parts
}

fn row(group: &Group<'_>, axis: &Axis, y: f64, result: &RowResult, measured: &Measured) -> Markup {
    let name = shape(&result.row.shape);
    let mut parts = vec![text((LEFT - 12.0, y), &name, Align::Right, "")];
    let mut says = vec![name];
    let bars = [
        ("cutlet", measured.cutlet(), Ink::Cutlet, y - 11.0),
        (
            group.baseline(),
            measured.baseline(),
            Ink::Baseline,
            y + 0.75,
        ),
    ];
    for (who, figures, ink, top) in bars {
        let Some(figures) = figures else { continue };
        let speed = figure(figures.speed);
        says.push(format!("{who}: {speed} {}", group.unit().name()));
        parts.extend(bar(axis, top, &speed, axis.place(figures.speed), ink));
    }
    if let Some(roof) = group.roof(result) {
        let x = axis.place(roof);
        let ends = ((x - 1.0, y - 11.0), (x + 1.0, y + 11.0));
        parts.push(rectangle(ends.0, ends.1, Ink::Ceiling));
        says.push(format!("limit: {}", figure(roof)));
    }
    titled(&says.join("\n"), &parts)
}

/// A bar with its figure: inside, if there is room.
fn bar(axis: &Axis, top: f64, speed: &str, end: f64, ink: Ink) -> [Markup; 2] {
    let from = axis.place(0.0);
    let bottom = top + 10.25;
    let is_inside = end - from > width(speed) + 14.0;
    let middle = (top + bottom) / 2.0;
    let label = match (is_inside, ink) {
        (true, Ink::Cutlet) => text(
            (end - 5.0, middle),
            speed,
            Align::Right,
            "label bold on-cutlet",
        ),
        (true, _) => text(
            (end - 5.0, middle),
            speed,
            Align::Right,
            "label on-baseline",
        ),
        (false, Ink::Cutlet) => text(
            (end + 6.0, middle),
            speed,
            Align::Left,
            "label bold of-cutlet halo",
        ),
        (false, _) => text((end + 6.0, middle), speed, Align::Left, "label small halo"),
    };
    [
        rectangle((from, top), (end.max(from + 0.5), bottom), ink),
        label,
    ]
}
