//! A roofline: speed against operations a byte, under the slope of the memory and the ceiling of the arithmetic units.

use maud::Markup;

use super::axis::{Axis, label};
use super::{Group, Key, Mark, Plot, shape};
use crate::bench::page::svg::{Align, Ink, Place, dot, line, picture, ring, text, titled, width};
use crate::bench::results::{Figures, Measured, RowResult};
use crate::units::figure;

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 560.0;
const TOP: f64 = 28.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = HEIGHT - 48.0;

/// The axes: operations a byte, and speed.
struct Axes {
    x: Axis,
    y: Axis,
}

/// The left, upper, right and lower end of a box.
type Extent = [f64; 4];

/// The plot; `None` if the machine's ceilings are not known.
pub fn plot(group: &Group<'_>) -> Option<Plot> {
    let (ceiling, bandwidth) = (group.ceiling()?, group.bandwidth()?);
    let axes = Axes::new(group, ceiling);
    let roof = axes.roof(group, ceiling, bandwidth);
    let mut parts = axes.grid();
    parts.push(line(&roof, Ink::Ceiling, ""));
    let [left, ridge, right] = roof;
    let words = format!("{ceiling:.0} TFLOP/s at the highest clock");
    let above = (right.0, ridge.1 - 11.0);
    parts.push(text(above, &words, Align::Right, "bold small"));
    let words = format!("{bandwidth:.0} GB/s, a measured copy");
    let beside = (left.0 + 16.0, left.1 + 8.0);
    parts.push(text(beside, &words, Align::Left, "bold small"));
    let rows = group.rows.iter();
    parts.extend(rows.map(|(result, measured)| axes.point(group, result, measured)));
    parts.extend(axes.labels(group, &roof));
    let title = "Roofline".to_string();
    Some(Plot {
        svg: picture((WIDTH, HEIGHT), &title, &parts),
        title,
        keys: vec![
            Key::new(Mark::Dot, Ink::Cutlet, "cutlet"),
            Key::new(Mark::Ring, Ink::Tie, group.baseline()),
        ],
    })
}

/// Operations a byte of input and output.
fn intensity(result: &RowResult) -> f64 {
    result.row.operations / result.row.bytes
}

/// The least and the greatest of them, with room at both ends.
fn intensities(group: &Group<'_>) -> (f64, f64) {
    let all = || group.rows.iter().map(|(result, _)| intensity(result));
    let least = all().fold(f64::INFINITY, f64::min);
    (least / 1.6, all().fold(0.0, f64::max) * 1.6)
}

/// The speed at which a row is labelled: cutlet's, or else the baseline's.
fn speed(measured: &Measured) -> Option<f64> {
    let figures = measured.cutlet().or(measured.baseline());
    figures.map(|figures| figures.speed)
}

impl Axes {
    fn new(group: &Group<'_>, ceiling: f64) -> Axes {
        let figures = group
            .rows
            .iter()
            .flat_map(|(_, measured)| [measured.cutlet(), measured.baseline()]);
        let speeds = figures.flatten().map(|figures| figures.speed);
        let slowest = speeds.fold(f64::INFINITY, f64::min);
        Axes {
            x: Axis::logarithmic(intensities(group), (LEFT, WIDTH - RIGHT)),
            y: Axis::logarithmic((slowest / 1.8, ceiling * 1.3), (BOTTOM, TOP)),
        }
    }

    fn place(&self, result: &RowResult, speed: f64) -> Place {
        (self.x.place(intensity(result)), self.y.place(speed))
    }

    /// The left end of the slope, its upper end, and the right end of the ceiling.
    fn roof(&self, group: &Group<'_>, ceiling: f64, bandwidth: f64) -> [Place; 3] {
        let (from, to) = intensities(group);
        let slope = from * bandwidth / 1e3;
        [
            (self.x.place(from), self.y.place(slope.min(ceiling))),
            (
                self.x.place(ceiling * 1e3 / bandwidth),
                self.y.place(ceiling),
            ),
            (self.x.place(to), self.y.place(ceiling)),
        ]
    }

    fn grid(&self) -> Vec<Markup> {
        let mut parts = Vec::new();
        for tick in self.x.powers(4.0) {
            let at = self.x.place(tick);
            parts.push(line(&[(at, TOP), (at, BOTTOM)], Ink::Grid, "thin"));
            let tick = tick.to_string();
            parts.push(text((at, BOTTOM + 14.0), &tick, Align::Middle, "small"));
        }
        for power in self.y.powers(10.0) {
            for factor in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0] {
                let tick = factor * power;
                let at = self.y.place(tick);
                if at <= TOP || at >= BOTTOM {
                    continue;
                }
                parts.push(line(&[(LEFT, at), (WIDTH - RIGHT, at)], Ink::Grid, "thin"));
                let tick = label(tick);
                parts.push(text((LEFT - 8.0, at), &tick, Align::Right, "small"));
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let words = "operations a byte of input and output";
        parts.push(text((middle, BOTTOM + 34.0), words, Align::Middle, "small"));
        parts.push(text(
            (LEFT - 8.0, TOP - 14.0),
            "TFLOP/s",
            Align::Right,
            "small",
        ));
        parts
    }

    /// The speeds of a row.
    fn point(&self, group: &Group<'_>, result: &RowResult, measured: &Measured) -> Markup {
        let place = |figures: &Figures| self.place(result, figures.speed);
        let (ours, theirs) = (measured.cutlet(), measured.baseline());
        let mut parts = Vec::new();
        let mut says = vec![shape(&result.row.shape)];
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            parts.push(line(&[place(ours), place(theirs)], Ink::Baseline, "thin"));
        }
        if let Some(ours) = ours {
            says.push(format!("cutlet: {} TFLOP/s", figure(ours.speed)));
        }
        if let Some(theirs) = theirs {
            parts.push(ring(place(theirs), 4.5, Ink::Tie));
            says.push(format!(
                "{}: {} TFLOP/s",
                group.baseline(),
                figure(theirs.speed)
            ));
        }
        parts.extend(ours.map(|ours| dot(place(ours), 4.0, Ink::Cutlet)));
        titled(&says.join("\n"), &parts)
    }

    /// Labels of the points, where there is room.
    fn labels(&self, group: &Group<'_>, roof: &[Place]) -> Vec<Markup> {
        let mut taken: Vec<Extent> = along(roof).collect();
        for (result, measured) in &group.rows {
            let figures = [measured.cutlet(), measured.baseline()];
            for figures in figures.into_iter().flatten() {
                let (x, y) = self.place(result, figures.speed);
                taken.push([x - 6.0, y - 6.0, x + 6.0, y + 6.0]);
            }
        }
        let mut labels = Vec::new();
        for (result, measured) in &group.rows {
            let Some(speed) = speed(measured) else {
                continue;
            };
            let name = shape(&result.row.shape);
            if let Some((extent, at)) = room(self.place(result, speed), &name, &taken) {
                taken.push(extent);
                labels.push(text(at, &name, Align::Left, "small"));
            }
        }
        labels
    }
}

/// A free extent for a label beside a point, and the place of its left end.
fn room((x, y): Place, label: &str, taken: &[Extent]) -> Option<(Extent, Place)> {
    let width = width(label);
    let places = [
        (x + 9.0, y),
        (x - 9.0 - width, y),
        (x - width / 2.0, y + 13.0),
        (x - width / 2.0, y - 13.0),
        (x + 9.0, y + 12.0),
        (x - 9.0 - width, y + 12.0),
    ];
    places.into_iter().find_map(|(left, middle)| {
        let extent = [left, middle - 6.0, left + width, middle + 6.0];
        let is_inside = left > LEFT && left + width < WIDTH - RIGHT && middle < BOTTOM - 8.0;
        let is_free = !taken.iter().any(|other| overlap(&extent, other));
        (is_inside && is_free).then_some((extent, (left, middle)))
    })
}

fn overlap(one: &Extent, other: &Extent) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

/// Small boxes along a line, which labels must not overlap.
fn along(line: &[Place]) -> impl Iterator<Item = Extent> + '_ {
    line.windows(2).flat_map(|ends| {
        let ((from_x, from_y), (to_x, to_y)) = (ends[0], ends[1]);
        let steps = ((to_x - from_x).hypot(to_y - from_y) / 4.0).ceil().max(1.0);
        (0..=steps as usize).map(move |step| {
            let part = step as f64 / steps;
            let (x, y) = (
                from_x + part * (to_x - from_x),
                from_y + part * (to_y - from_y),
            );
            [x - 3.0, y - 3.0, x + 3.0, y + 3.0]
        })
    })
}
