//! Gathers and other movements: speed by the size of a row, with a line for each distribution of indices and one for a
//! copy.

use maud::Markup;

use super::axis::{Axis, label};
use super::{Group, Key, Mark, Plot};
use crate::bench::page::svg::{Align, Ink, Place, dot, line, picture, text, titled};
use crate::bench::results::{Measured, RowResult};
use crate::units::figure;

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 460.0;
const TOP: f64 = 24.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 110.0;
const BOTTOM: f64 = HEIGHT - 48.0;
/// The least distance between two names at the right.
const APART: f64 = 14.0;

/// A line of the plot: its name, and points of row bytes and speed.
type Series = (String, Vec<(f64, f64)>);

/// The plot; `None` if all rows have the same size.
pub fn plot(group: &Group<'_>) -> Option<Plot> {
    let ours = series(group, |measured| Some(measured.cutlet()?.speed));
    let copies = series(group, |measured| Some(measured.baseline()?.speed));
    let points = || ours.iter().chain(&copies).flat_map(|(_, points)| points);
    let sizes = || points().map(|(bytes, _)| *bytes);
    let least = sizes().fold(f64::INFINITY, f64::min);
    let most = sizes().fold(0.0, f64::max);
    if least >= most {
        return None;
    }
    let fastest = points().map(|(_, speed)| *speed).fold(0.0, f64::max);
    let memory = group.results.machine.memory_gigabytes;
    let top = memory.unwrap_or(0.0).max(fastest) * 1.04;
    let x = Axis::logarithmic((least / 1.2, most * 1.2), (LEFT, WIDTH - RIGHT));
    let y = Axis::linear((0.0, top), (BOTTOM, TOP));

    let place = |(bytes, speed): (f64, f64)| (x.place(bytes), y.place(speed));
    let mut parts = grid(&x, &y);
    let mut names = Vec::new();
    if let Some(memory) = memory {
        let at = y.place(memory);
        parts.push(line(&[(LEFT, at), (WIDTH - RIGHT, at)], Ink::Ceiling, ""));
        names.push((format!("memory, {memory:.0}"), at, "of-ceiling".to_string()));
    }
    if let Some((_, points)) = copies.first() {
        let places: Vec<Place> = points.iter().copied().map(place).collect();
        parts.push(line(&places, Ink::Tie, "dashed"));
    }
    for (nth, (name, points)) in ours.iter().enumerate() {
        let ink = Ink::Series(nth);
        let places: Vec<Place> = points.iter().copied().map(place).collect();
        parts.push(line(&places, ink, ""));
        for (&(bytes, speed), &at) in points.iter().zip(&places) {
            let says = format!("{name}, {}\n{} GB/s", size(bytes), figure(speed));
            parts.push(titled(&says, &[dot(at, 4.0, ink)]));
        }
        if let Some((_, end)) = places.last() {
            names.push((name.clone(), *end, format!("of-{ink}")));
        }
    }
    parts.extend(labels(names));
    let title = "Bytes read and written a second".to_string();
    Some(Plot {
        svg: picture((WIDTH, HEIGHT), &title, &parts),
        title,
        keys: keys(&ours),
    })
}

/// A line for each distribution, in the order of the rows.
fn series(group: &Group<'_>, speed: fn(&Measured) -> Option<f64>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (result, measured) in &group.rows {
        let (Some(bytes), Some(speed)) = (row_bytes(result), speed(measured)) else {
            continue;
        };
        let name = &result.row.series;
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, points)) => points.push((bytes, speed)),
            None => all.push((name.clone(), vec![(bytes, speed)])),
        }
    }
    for (_, points) in &mut all {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    all
}

fn keys(ours: &[Series]) -> Vec<Key> {
    let named = ours.iter().enumerate().map(|(nth, (name, _))| {
        Key::new(
            Mark::Dot,
            Ink::Series(nth),
            &format!("cutlet, {name} indices"),
        )
    });
    let copy = Key::new(Mark::Dash, Ink::Tie, "copy of as many contiguous bytes");
    named.chain([copy]).collect()
}

fn grid(x: &Axis, y: &Axis) -> Vec<Markup> {
    let mut parts = Vec::new();
    for bytes in x.powers(2.0) {
        let at = x.place(bytes);
        parts.push(line(&[(at, TOP), (at, BOTTOM)], Ink::Grid, "thin"));
        parts.push(text(
            (at, BOTTOM + 14.0),
            &size(bytes),
            Align::Middle,
            "small",
        ));
    }
    for tick in y.ticks(6) {
        let at = y.place(tick);
        parts.push(line(&[(LEFT, at), (WIDTH - RIGHT, at)], Ink::Grid, "thin"));
        parts.push(text((LEFT - 8.0, at), &label(tick), Align::Right, "small"));
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    parts.push(text(
        (middle, BOTTOM + 34.0),
        "bytes in a row",
        Align::Middle,
        "small",
    ));
    parts.push(text(
        (LEFT - 8.0, TOP - 14.0),
        "GB/s",
        Align::Right,
        "small",
    ));
    parts
}

/// Names at the right, each near the end of its line, and apart from each other.
fn labels(mut names: Vec<(String, f64, String)>) -> impl Iterator<Item = Markup> {
    names.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
    let mut last = f64::NEG_INFINITY;
    names.into_iter().map(move |(name, end, of_ink)| {
        let at = end.max(last + APART);
        last = at;
        let place = (WIDTH - RIGHT + 10.0, at);
        text(place, &name, Align::Left, &format!("bold {of_ink}"))
    })
}

/// A number of bytes: `64 B`, `16 KiB`.
fn size(bytes: f64) -> String {
    match bytes as u64 {
        bytes if bytes >= 1024 && bytes.is_multiple_of(1024) => format!("{} KiB", bytes / 1024),
        bytes => format!("{bytes} B"),
    }
}

/// Bytes in a row of a gather, from its shape: `1024 B uniform`.
fn row_bytes(result: &RowResult) -> Option<f64> {
    result.row.shape.split(' ').next()?.parse().ok()
}
