//! Gathers and other movements: speed by the size of a row, with a line for each distribution of indices and one for a
//! copy.

use plotters::backend::DrawingBackend;

use super::axis::Axis;
use super::{Group, HEADING, Key, Mark, heading};
use crate::bench::canvas::{Align, Canvas, Drawn, Picture, Type, color};
use crate::bench::results::{Measured, RowResult};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 110.0;
const BOTTOM: f64 = HEIGHT - 58.0;

/// The plot.
pub struct Gathers<'a>(pub &'a Group<'a>);

/// A line of the plot: its name, and points of row bytes and speed.
type Series = (String, Vec<(f64, f64)>);

impl Picture for Gathers<'_> {
    fn size(&self) -> (f64, f64) {
        (WIDTH, HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let ours = self.series(|measured| Some(measured.cutlet()?.speed));
        let copies = self.series(|measured| Some(measured.baseline()?.speed));
        let points = || ours.iter().chain(&copies).flat_map(|(_, points)| points);
        let sizes = || points().map(|(bytes, _)| *bytes);
        let (least, most) = (
            sizes().fold(f64::INFINITY, f64::min),
            sizes().fold(0.0, f64::max),
        );
        let fastest = points().map(|(_, speed)| *speed).fold(0.0, f64::max);
        let top = self.0.results.machine.memory_gigabytes;
        let x = Axis::logarithmic((least / 1.2, most * 1.2), (LEFT, WIDTH - RIGHT));
        let y = Axis::linear(
            (0.0, top.unwrap_or(0.0).max(fastest) * 1.04),
            (BOTTOM, HEADING),
        );
        self.heading(canvas, &ours)?;
        self.grid(canvas, &x, &y)?;

        if let Some(top) = top {
            let at = y.place(top);
            canvas.line(&[(LEFT, at), (WIDTH - RIGHT, at)], color::CEILING, 1.5)?;
            let style = Type::new(10.5, color::CEILING).bold();
            let text = format!("memory, {top:.0}");
            canvas.text((WIDTH - RIGHT + 8.0, at), &text, style, Align::Left)?;
        }
        if let Some((_, points)) = copies.first() {
            for pair in points.windows(2) {
                let place = |(bytes, speed): (f64, f64)| (x.place(bytes), y.place(speed));
                canvas.dashes(place(pair[0]), place(pair[1]), color::TIE, 2.0)?;
            }
        }
        let mut names: Vec<f64> = Vec::new();
        for ((name, points), color) in ours.iter().zip(color::SERIES).rev() {
            let places: Vec<_> = points
                .iter()
                .map(|&(bytes, speed)| (x.place(bytes), y.place(speed)))
                .collect();
            canvas.line(&places, color, 2.25)?;
            for &place in &places {
                canvas.dot(place, 4.0, color)?;
            }
            if let Some(&(_, end)) = places.last() {
                let mut at = end;
                while names.iter().any(|other| (other - at).abs() < 14.0) {
                    at += 2.0;
                }
                names.push(at);
                let style = Type::new(11.0, color).bold();
                canvas.text((WIDTH - RIGHT + 8.0, at), name, style, Align::Left)?;
            }
        }
        Ok(())
    }
}

impl Gathers<'_> {
    /// A line for each distribution, in the order of the rows.
    fn series(&self, speed: fn(&Measured) -> Option<f64>) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for (result, measured) in &self.0.rows {
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

    fn heading<B: DrawingBackend>(&self, canvas: &Canvas<B>, ours: &[Series]) -> Drawn<B> {
        let group = self.0;
        let named = ours
            .iter()
            .zip(color::SERIES)
            .map(|((name, _), color)| Key {
                color,
                text: format!("cutlet, {name} indices"),
                mark: Mark::Dot,
            });
        let copy = Key {
            color: color::TIE,
            text: "copy of as many contiguous bytes".to_string(),
            mark: Mark::Dash,
        };
        let keys: Vec<Key> = named.chain([copy]).collect();
        let title = format!("{}: bytes read and written a second", group.name());
        heading(canvas, group, &title, &keys)
    }

    fn grid<B: DrawingBackend>(&self, canvas: &Canvas<B>, x: &Axis, y: &Axis) -> Drawn<B> {
        let small = Type::new(10.5, color::FAINT_TEXT);
        for tick in x.powers(2.0) {
            let at = x.place(tick);
            canvas.line(&[(at, HEADING), (at, BOTTOM)], color::GRID, 1.0)?;
            let text = match tick as u64 {
                bytes if bytes >= 1024 => format!("{} KiB", bytes / 1024),
                bytes => format!("{bytes} B"),
            };
            canvas.text((at, BOTTOM + 14.0), &text, small, Align::Center)?;
        }
        for tick in y.ticks(6) {
            let at = y.place(tick);
            canvas.line(&[(LEFT, at), (WIDTH - RIGHT, at)], color::GRID, 1.0)?;
            canvas.text((LEFT - 8.0, at), &format!("{tick}"), small, Align::Right)?;
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        canvas.text(
            (middle, BOTTOM + 36.0),
            "bytes in a row",
            small,
            Align::Center,
        )?;
        canvas.text((LEFT - 8.0, HEADING - 8.0), "GB/s", small, Align::Right)
    }
}

/// Bytes in a row of a gather, from its shape: `1024 B uniform`.
fn row_bytes(result: &RowResult) -> Option<f64> {
    result.row.shape.split(' ').next()?.parse().ok()
}
