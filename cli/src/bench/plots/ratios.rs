//! Ratios of cutlet's speed to the baseline's, the best first, with the rounds' extremes.

use plotters::backend::DrawingBackend;

use super::axis::Axis;
use super::{Group, HEADING, Key, Mark, heading, shape};
use crate::bench::canvas::{Align, Canvas, Drawn, Picture, Type, color};
use crate::bench::family::Row;
use crate::measure::statistics::{Spread, Verdict};

const ROW: f64 = 23.0;
const LEFT: f64 = 208.0;
const WIDTH: f64 = 980.0;
const RIGHT: f64 = 80.0;
/// Room for a figure at the left end of a bar.
const LABEL: f64 = 36.0;

/// The plot.
pub struct Ratios<'a>(pub &'a Group<'a>);

impl<'a> Ratios<'a> {
    /// Rows with a baseline, the best first.
    fn rows(&self) -> Vec<(&'a Row, Spread, Verdict)> {
        let rows = self.0.rows.iter();
        let mut rows: Vec<_> = rows
            .filter_map(|(result, measured)| {
                Some((&result.row, measured.ratio?, measured.verdict()?))
            })
            .collect();
        rows.sort_by(|(_, a, _), (_, b, _)| b.median.total_cmp(&a.median));
        rows
    }
}

impl Picture for Ratios<'_> {
    fn size(&self) -> (f64, f64) {
        (WIDTH, HEADING + ROW * self.rows().len() as f64 + 56.0)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let rows = self.rows();
        // Rows shown apart would leave no room for the others. Their bars may end at the edge.
        let medians = || {
            let counted = rows.iter().filter(|(row, ..)| !row.apart);
            counted.map(|(_, ratio, _)| ratio.median)
        };
        let least = medians().fold(0.8, f64::min) * 0.96;
        let most = medians().fold(1.25, f64::max) * 1.04;
        let axis = Axis::logarithmic((least, most), (LEFT + LABEL, WIDTH - RIGHT));
        let bottom = HEADING + ROW * rows.len() as f64;
        self.heading(canvas)?;
        self.grid(canvas, &axis, bottom, most / least)?;

        let one = axis.place(1.0);
        for (number, (row, ratio, verdict)) in rows.iter().enumerate() {
            let y = HEADING + ROW * (number as f64 + 0.5);
            let name = Type::new(11.5, color::TEXT);
            let apart = if row.apart { "*" } else { "" };
            let text = format!("{}{apart}", shape(&row.shape));
            canvas.text((LEFT - 12.0, y), &text, name, Align::Right)?;
            let fill = match verdict {
                Verdict::Faster => color::CUTLET,
                Verdict::Tie => color::TIE,
                Verdict::Slower => color::SLOWER,
            };
            let end = axis.place(ratio.median);
            let (from, to) = (one.min(end), one.max(end));
            canvas.rectangle((from, y - 7.5), (to.max(from + 1.0), y + 7.5), fill)?;
            let (low, high) = (axis.place(ratio.min), axis.place(ratio.max));
            canvas.line(&[(low, y), (high, y)], color::TEXT, 1.0)?;
            let style = Type::new(10.5, fill).bold();
            let text = format!("{:.2}", ratio.median);
            match ratio.median >= 1.0 {
                true => canvas.text((high.max(end) + 6.0, y), &text, style, Align::Left)?,
                false => canvas.text((low.min(end) - 6.0, y), &text, style, Align::Right)?,
            }
        }
        canvas.line(&[(one, HEADING - 4.0), (one, bottom)], color::CEILING, 1.25)?;
        self.mean(canvas, &axis, bottom)
    }
}

impl Ratios<'_> {
    fn heading<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let group = self.0;
        let key = |color, text: &str| Key {
            color,
            text: text.to_string(),
            mark: Mark::Bar,
        };
        let title = format!("{}: speed relative to {}", group.name(), group.baseline());
        heading(
            canvas,
            group,
            &title,
            &[
                key(color::CUTLET, "faster"),
                key(color::TIE, "tie: 1 lies within the rounds"),
                key(color::SLOWER, "slower"),
                Key {
                    color: color::TEXT,
                    text: "from the lowest to the highest round".to_string(),
                    mark: Mark::Line,
                },
            ],
        )
    }

    fn grid<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        axis: &Axis,
        bottom: f64,
        span: f64,
    ) -> Drawn<B> {
        let small = Type::new(10.5, color::FAINT_TEXT);
        let fine = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0];
        let ticks = match span > 5.0 {
            true => axis.powers(2.0),
            false => fine.to_vec(),
        };
        let ends = (axis.place(0.0), axis.place(f64::INFINITY));
        for tick in ticks {
            let x = axis.place(tick);
            if x <= ends.0 || x >= ends.1 {
                continue;
            }
            canvas.line(&[(x, HEADING - 4.0), (x, bottom)], color::GRID, 1.0)?;
            canvas.text(
                (x, bottom + 14.0),
                &format!("{tick}×"),
                small,
                Align::Center,
            )?;
        }
        Ok(())
    }

    fn mean<B: DrawingBackend>(&self, canvas: &Canvas<B>, axis: &Axis, bottom: f64) -> Drawn<B> {
        let summaries = self.0.results.summaries();
        let Some(summary) = summaries.iter().find(|summary| summary.kind == self.0.kind) else {
            return Ok(());
        };
        let x = axis.place(summary.mean);
        let style = Type::new(10.5, color::TEXT).bold();
        canvas.dashes((x, HEADING - 4.0), (x, bottom), color::TEXT, 1.0)?;
        let apart = match summary.apart.is_empty() {
            true => "",
            false => "   * shown apart, not in the mean",
        };
        let text = format!("geometric mean {:.3} (dashed){apart}", summary.mean);
        canvas.text((LEFT + LABEL, bottom + 38.0), &text, style, Align::Left)
    }
}
