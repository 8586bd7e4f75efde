//! Speeds by shape: a bar for cutlet, a bar for the baseline, and the speed that the hardware allows.

use plotters::backend::DrawingBackend;

use super::axis::Axis;
use super::{Group, HEADING, Key, Mark, heading, shape};
use crate::bench::canvas::{Align, Canvas, Drawn, Picture, Type, color};
use crate::bench::results::{Figures, Measured};
use crate::bench::table::figure;

/// Height of a row.
const ROW: f64 = 31.0;
const LEFT: f64 = 208.0;
const WIDTH: f64 = 980.0;
const RIGHT: f64 = 80.0;

/// The plot.
pub struct Speeds<'a>(pub &'a Group<'a>);

impl Picture for Speeds<'_> {
    fn size(&self) -> (f64, f64) {
        (WIDTH, HEADING + ROW * self.0.rows.len() as f64 + 52.0)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let group = self.0;
        let speed = |figures: Option<&Figures>| figures.map_or(0.0, |figures| figures.speed);
        let fastest = group
            .rows
            .iter()
            .map(|(_, measured)| speed(measured.cutlet()).max(speed(measured.baseline())));
        let fastest = fastest.fold(0.0, f64::max);
        let most = group
            .ceiling()
            .map_or(fastest, |ceiling| ceiling.max(fastest));
        let axis = Axis::linear((0.0, most * 1.02), (LEFT, WIDTH - RIGHT));
        let bottom = HEADING + ROW * group.rows.len() as f64;
        self.heading(canvas)?;

        let small = Type::new(10.5, color::FAINT_TEXT);
        for tick in axis.ticks(7) {
            let x = axis.place(tick);
            canvas.line(&[(x, HEADING - 4.0), (x, bottom)], color::GRID, 1.0)?;
            let text = match tick {
                0.0 => "0".to_string(),
                tick => trimmed(tick),
            };
            canvas.text((x, bottom + 14.0), &text, small, Align::Center)?;
        }
        canvas.text(
            (axis.place(0.0), bottom + 34.0),
            group.rows[0].0.row.unit.name(),
            small,
            Align::Left,
        )?;
        for (number, (result, measured)) in group.rows.iter().enumerate() {
            let y = HEADING + ROW * (number as f64 + 0.5);
            let name = Type::new(11.5, color::TEXT);
            canvas.text(
                (LEFT - 12.0, y),
                &shape(&result.row.shape),
                name,
                Align::Right,
            )?;
            self.row(canvas, &axis, y, measured)?;
            if let Some(roof) = group.roof(result) {
                let x = axis.place(roof);
                canvas.rectangle((x - 1.0, y - 11.0), (x + 1.0, y + 11.0), color::CEILING)?;
            }
        }
        canvas.line(
            &[(LEFT, HEADING - 4.0), (LEFT, bottom)],
            color::CEILING,
            1.0,
        )
    }
}

impl Speeds<'_> {
    fn heading<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let group = self.0;
        let key = |color, text: &str, mark| Key {
            color,
            text: text.to_string(),
            mark,
        };
        let mut keys = vec![
            key(color::CUTLET, "cutlet", Mark::Bar),
            key(color::BASELINE, group.baseline(), Mark::Bar),
        ];
        if group.machine_is_known() {
            keys.push(key(
                color::CEILING,
                "limit of the arithmetic units (highest clock) or the memory (measured copy)",
                Mark::Tick,
            ));
        }
        heading(canvas, group, &format!("{}: speed", group.name()), &keys)
    }

    fn row<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        axis: &Axis,
        y: f64,
        measured: &Measured,
    ) -> Drawn<B> {
        let bars = [
            (measured.cutlet(), color::CUTLET, y - 11.0, y - 0.75),
            (measured.baseline(), color::BASELINE, y + 0.75, y + 11.0),
        ];
        for (figures, fill, top, bottom) in bars {
            let Some(figures) = figures else { continue };
            let end = axis.place(figures.speed);
            canvas.rectangle((LEFT, top), (end.max(LEFT + 0.5), bottom), fill)?;
            let ours = fill == color::CUTLET;
            let text = figure(figures.speed);
            let inside = end - LEFT > canvas.width(&text, Type::new(9.5, fill)) + 14.0;
            let style = match (inside, ours) {
                (true, true) => Type::new(9.5, color::PAPER).bold(),
                (false, true) => Type::new(9.5, color::CUTLET).bold(),
                (true, false) => Type::new(9.5, color::TEXT),
                (false, false) => Type::new(9.5, color::FAINT_TEXT),
            };
            let (x, align) = match inside {
                true => (end - 5.0, Align::Right),
                false => (end + 6.0, Align::Left),
            };
            canvas.text((x, (top + bottom) / 2.0), &text, style, align)?;
        }
        Ok(())
    }
}

/// A figure without needless zeros.
fn trimmed(number: f64) -> String {
    if number >= 1.0 {
        return format!("{number}");
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').to_string()
}
