//! A roofline: speed against operations a byte, under the slope of the memory and the ceiling of the
//! arithmetic units.

use plotters::backend::DrawingBackend;

use super::axis::Axis;
use super::{Group, HEADING, Key, Mark, heading, shape};
use crate::bench::canvas::{Align, Canvas, Drawn, Picture, Type, color};
use crate::bench::results::{Figures, Measured, RowResult};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 620.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 36.0;
const BOTTOM: f64 = HEIGHT - 58.0;

/// The plot.
pub struct Roofline<'a>(pub &'a Group<'a>);

impl Picture for Roofline<'_> {
    fn size(&self) -> (f64, f64) {
        (WIDTH, HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let group = self.0;
        let (Some(ceiling), Some(bandwidth)) = (group.ceiling(), group.bandwidth()) else {
            return Ok(());
        };
        let (x, y) = self.axes(ceiling);
        self.heading(canvas)?;
        self.grid(canvas, &x, &y)?;

        let ridge = ceiling * 1e3 / bandwidth;
        let slope = |intensity: f64| intensity * bandwidth / 1e3;
        let (from, to) = self.intensities();
        let roof = [
            (x.place(from), y.place(slope(from).min(ceiling))),
            (x.place(ridge), y.place(ceiling)),
            (x.place(to), y.place(ceiling)),
        ];
        canvas.line(&roof, color::CEILING, 2.0)?;
        let style = Type::new(10.5, color::CEILING).bold();
        let text = format!("{ceiling:.0} TFLOP/s at the highest clock");
        let above = y.place(ceiling) - 11.0;
        canvas.text((x.place(to), above), &text, style, Align::Right)?;
        let text = format!("{bandwidth:.0} GB/s, a measured copy");
        let beside = (roof[0].0 + 14.0, roof[0].1 + 6.0);
        canvas.text(beside, &text, style, Align::Left)?;

        for (result, measured) in &group.rows {
            let x = x.place(intensity(result));
            let place = |figures: &Figures| (x, y.place(figures.speed));
            if let (Some(ours), Some(theirs)) = (measured.cutlet(), measured.baseline()) {
                canvas.line(&[place(ours), place(theirs)], color::BASELINE, 1.0)?;
            }
            if let Some(theirs) = measured.baseline() {
                canvas.ring(place(theirs), 5.0, color::TIE, 1.75)?;
            }
            if let Some(ours) = measured.cutlet() {
                canvas.dot(place(ours), 4.0, color::CUTLET)?;
            }
        }
        self.labels(canvas, &x, &y, &roof)
    }
}

fn intensity(result: &RowResult) -> f64 {
    result.row.operations / result.row.bytes
}

/// The speed at which a row is labelled: cutlet's, or else the baseline's.
fn speed(measured: &Measured) -> Option<f64> {
    let figures = measured.cutlet().or(measured.baseline());
    figures.map(|figures| figures.speed)
}

impl Roofline<'_> {
    fn intensities(&self) -> (f64, f64) {
        let all = || self.0.rows.iter().map(|(result, _)| intensity(result));
        let (least, most) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        );
        (least / 1.6, most * 1.6)
    }

    fn axes(&self, ceiling: f64) -> (Axis, Axis) {
        let rows = self.0.rows.iter();
        let slowest = rows
            .flat_map(|(_, measured)| &measured.contestants)
            .map(|figures| figures.speed)
            .fold(ceiling, f64::min);
        (
            Axis::logarithmic(self.intensities(), (LEFT, WIDTH - RIGHT)),
            Axis::logarithmic((slowest / 1.8, ceiling * 1.3), (BOTTOM, HEADING)),
        )
    }

    fn heading<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let group = self.0;
        let title = format!("{}: roofline", group.name());
        heading(
            canvas,
            group,
            &title,
            &[
                Key {
                    color: color::CUTLET,
                    text: "cutlet".to_string(),
                    mark: Mark::Dot,
                },
                Key {
                    color: color::TIE,
                    text: group.baseline().to_string(),
                    mark: Mark::Ring,
                },
            ],
        )
    }

    fn grid<B: DrawingBackend>(&self, canvas: &Canvas<B>, x: &Axis, y: &Axis) -> Drawn<B> {
        let small = Type::new(10.5, color::FAINT_TEXT);
        for tick in x.powers(4.0) {
            let at = x.place(tick);
            canvas.line(&[(at, HEADING), (at, BOTTOM)], color::GRID, 1.0)?;
            canvas.text(
                (at, BOTTOM + 14.0),
                &format!("{tick}"),
                small,
                Align::Center,
            )?;
        }
        for power in y.powers(10.0) {
            for factor in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0] {
                let tick = factor * power;
                let at = y.place(tick);
                if at <= HEADING || at >= BOTTOM {
                    continue;
                }
                canvas.line(&[(LEFT, at), (WIDTH - RIGHT, at)], color::GRID, 1.0)?;
                canvas.text((LEFT - 8.0, at), &format!("{tick}"), small, Align::Right)?;
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let text = "operations a byte of input and output";
        canvas.text((middle, BOTTOM + 36.0), text, small, Align::Center)?;
        canvas.text((LEFT - 8.0, HEADING - 6.0), "TFLOP/s", small, Align::Right)
    }

    /// Labels of the points, where there is room.
    fn labels<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        x: &Axis,
        y: &Axis,
        roof: &[(f64, f64)],
    ) -> Drawn<B> {
        let small = Type::new(9.0, color::FAINT_TEXT);
        let mut taken: Vec<[f64; 4]> = along(roof).collect();
        for (result, measured) in &self.0.rows {
            let figures = [measured.cutlet(), measured.baseline()];
            for figures in figures.into_iter().flatten() {
                let (at_x, at_y) = (x.place(intensity(result)), y.place(figures.speed));
                taken.push([at_x - 6.0, at_y - 6.0, at_x + 6.0, at_y + 6.0]);
            }
        }
        for (result, measured) in &self.0.rows {
            let Some(speed) = speed(measured) else {
                continue;
            };
            let text = shape(&result.row.shape);
            let width = canvas.width(&text, small);
            let (at_x, at_y) = (x.place(intensity(result)), y.place(speed));
            let places = [
                (at_x + 9.0, at_y),
                (at_x - 9.0 - width, at_y),
                (at_x - width / 2.0, at_y + 13.0),
                (at_x - width / 2.0, at_y - 13.0),
                (at_x + 9.0, at_y + 12.0),
                (at_x - 9.0 - width, at_y + 12.0),
            ];
            let free = places.iter().find_map(|&(left, middle)| {
                let place = [left, middle - 5.5, left + width, middle + 5.5];
                let inside = left > LEFT && left + width < WIDTH - RIGHT && middle < BOTTOM - 8.0;
                let overlaps = taken.iter().any(|other| {
                    place[0] < other[2]
                        && other[0] < place[2]
                        && place[1] < other[3]
                        && other[1] < place[3]
                });
                (inside && !overlaps).then_some((place, (left, middle)))
            });
            if let Some((place, at)) = free {
                taken.push(place);
                canvas.text(at, &text, small, Align::Left)?;
            }
        }
        Ok(())
    }
}

/// Small boxes along a line, which labels must not overlap.
fn along(line: &[(f64, f64)]) -> impl Iterator<Item = [f64; 4]> + '_ {
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
