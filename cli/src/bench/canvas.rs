//! A canvas for plots, in points, that becomes an SVG or a PNG.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Once;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, IntoFont, RGBColor, ShapeStyle, register_font,
};

use super::error::{Error, Result};

/// Pixels to a point while drawing.
const SCALE: f64 = 4.0;
/// Drawn pixels to a pixel of the PNG, along each side, so that edges are smooth.
const SHRINK: usize = 2;

/// How far texts of the bitmap are too high, relative to their size: it centres their boxes without descenders.
const BITMAP_DROP: f64 = 0.16;

/// The typeface. It is built in, so that plots look the same everywhere.
const TYPEFACE: &str = "Inter";
/// The typeface with substitutes, for viewers of the SVG that lack it.
const TYPEFACES: &str = "Inter, 'Helvetica Neue', Arial, sans-serif";

/// Colours. Each means the same in all plots.
pub mod color {
    use super::RGBColor;

    /// cutlet, and rows where it is faster.
    pub const CUTLET: RGBColor = RGBColor(15, 130, 125);
    /// The baseline.
    pub const BASELINE: RGBColor = RGBColor(176, 186, 197);
    /// Rows where cutlet is slower.
    pub const SLOWER: RGBColor = RGBColor(226, 88, 62);
    /// Ties.
    pub const TIE: RGBColor = RGBColor(150, 160, 172);
    /// Ceilings of the hardware.
    pub const CEILING: RGBColor = RGBColor(58, 66, 80);
    /// Titles and figures.
    pub const TEXT: RGBColor = RGBColor(28, 33, 40);
    /// Explanations.
    pub const FAINT_TEXT: RGBColor = RGBColor(108, 118, 130);
    /// Lines of the grid.
    pub const GRID: RGBColor = RGBColor(231, 235, 239);
    /// The background.
    pub const PAPER: RGBColor = RGBColor(255, 255, 255);
    /// Series of a line plot.
    pub const SERIES: [RGBColor; 4] = [
        CUTLET,
        RGBColor(232, 144, 42),
        RGBColor(92, 107, 192),
        RGBColor(194, 75, 132),
    ];
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left end.
    Left,
    /// The middle.
    Center,
    /// The right end.
    Right,
}

/// The style of a text.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// Its height in points.
    pub size: f64,
    /// Its colour.
    pub color: RGBColor,
    /// Whether it is bold.
    pub bold: bool,
}

impl Type {
    /// A plain style.
    pub fn new(size: f64, color: RGBColor) -> Type {
        Type {
            size,
            color,
            bold: false,
        }
    }

    /// The same style, bold.
    pub fn bold(self) -> Type {
        Type { bold: true, ..self }
    }

    fn font(self) -> FontDesc<'static> {
        let weight = match self.bold {
            true => FontStyle::Bold,
            false => FontStyle::Normal,
        };
        (FontFamily::Name(TYPEFACE), self.size * SCALE, weight).into_font()
    }
}

/// A picture that draws itself.
pub trait Picture {
    /// Width and height in points.
    fn size(&self) -> (f64, f64);

    /// Draws it. The origin is at the top left.
    ///
    /// # Errors
    /// If drawing on the canvas fails.
    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B>;
}

/// The result of drawing on a canvas.
pub type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// A canvas, in points.
pub struct Canvas<B: DrawingBackend> {
    area: DrawingArea<B, Shift>,
    /// How far below its position a text is drawn, relative to its size, to be centred there.
    drop: f64,
}

impl<B: DrawingBackend> Canvas<B> {
    fn pixel(&self, (x, y): (f64, f64)) -> (i32, i32) {
        ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
    }

    fn stroke(&self, color: RGBColor, width: f64) -> ShapeStyle {
        color.stroke_width((width * SCALE).round().max(1.0) as u32)
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&self, from: (f64, f64), to: (f64, f64), color: RGBColor) -> Drawn<B> {
        let corners = [self.pixel(from), self.pixel(to)];
        self.area.draw(&Rectangle::new(corners, color.filled()))
    }

    /// A line through points.
    pub fn line(&self, points: &[(f64, f64)], color: RGBColor, width: f64) -> Drawn<B> {
        let points: Vec<_> = points.iter().map(|&point| self.pixel(point)).collect();
        self.area
            .draw(&PathElement::new(points, self.stroke(color, width)))
    }

    /// A dashed line between two points.
    pub fn dashes(
        &self,
        from: (f64, f64),
        to: (f64, f64),
        color: RGBColor,
        width: f64,
    ) -> Drawn<B> {
        let (along, across) = (to.0 - from.0, to.1 - from.1);
        let length = along.hypot(across);
        let (dash, period) = (4.0, 7.0);
        let at = |distance: f64| {
            let part = distance.min(length) / length;
            (from.0 + part * along, from.1 + part * across)
        };
        for start in 0..(length / period).ceil() as usize {
            let start = start as f64 * period;
            self.line(&[at(start), at(start + dash)], color, width)?;
        }
        Ok(())
    }

    /// A dot.
    pub fn dot(&self, center: (f64, f64), radius: f64, color: RGBColor) -> Drawn<B> {
        let radius = (radius * SCALE).round() as i32;
        self.area
            .draw(&Circle::new(self.pixel(center), radius, color.filled()))
    }

    /// A ring.
    pub fn ring(&self, center: (f64, f64), radius: f64, color: RGBColor, width: f64) -> Drawn<B> {
        self.dot(center, radius, color)?;
        self.dot(center, radius - width, color::PAPER)
    }

    /// A text beside a point, centred on its height.
    pub fn text(&self, at: (f64, f64), text: &str, style: Type, align: Align) -> Drawn<B> {
        let horizontal = match align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let font = style
            .font()
            .color(&style.color)
            .pos(Pos::new(horizontal, VPos::Center));
        let at = (at.0, at.1 + self.drop * style.size);
        self.area
            .draw(&Text::new(text.to_string(), self.pixel(at), font))
    }

    /// How wide a text is, in points.
    pub fn width(&self, text: &str, style: Type) -> f64 {
        let size = style.font().box_size(text);
        size.map_or(0.0, |(width, _)| f64::from(width) / SCALE)
    }
}

/// Writes a picture as an SVG.
///
/// # Errors
/// If it cannot be drawn or written.
pub fn write_svg(picture: &impl Picture, svg: &Path) -> Result<()> {
    let (size, (width, height)) = (pixels(picture), picture.size());
    let mut text = String::new();
    draw(picture, SVGBackend::with_string(&mut text, size), 0.0)
        .map_err(|error| failed(svg, error))?;
    let text = text
        .replace(
            &format!("width=\"{}\" height=\"{}\" viewBox", size.0, size.1),
            &format!("width=\"{width}\" height=\"{height}\" viewBox"),
        )
        .replace(
            &format!("font-family=\"{TYPEFACE}\""),
            &format!("font-family=\"{TYPEFACES}\""),
        );
    std::fs::write(svg, text).map_err(|error| failed(svg, error))
}

/// Writes a picture as a PNG.
///
/// # Errors
/// If it cannot be drawn or written.
pub fn write_png(picture: &impl Picture, png: &Path) -> Result<()> {
    let size = pixels(picture);
    let mut image = vec![0; size.0 as usize * size.1 as usize * 3];
    draw(
        picture,
        BitMapBackend::with_buffer(&mut image, size),
        BITMAP_DROP,
    )
    .map_err(|error| failed(png, error))?;
    let (image, width, height) = shrink(&image, size.0 as usize, size.1 as usize);
    let file = File::create(png).map_err(|error| failed(png, error))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(|error| failed(png, error))?;
    writer
        .write_image_data(&image)
        .map_err(|error| failed(png, error))
}

/// Width and height of a picture in drawn pixels.
fn pixels(picture: &impl Picture) -> (u32, u32) {
    let pixels = |points: f64| (points * SCALE).round() as u32;
    let (width, height) = picture.size();
    (pixels(width), pixels(height))
}

fn draw<B: DrawingBackend>(picture: &impl Picture, backend: B, drop: f64) -> Drawn<B> {
    load_typeface();
    let area = backend.into_drawing_area();
    area.fill(&color::PAPER)?;
    let canvas = Canvas { area, drop };
    picture.draw(&canvas)?;
    canvas.area.present()
}

fn failed(file: &Path, error: impl ToString) -> Error {
    Error::Plot {
        file: file.display().to_string(),
        found: error.to_string(),
    }
}

/// Shrinks an image: each pixel is the mean of [`SHRINK`] × [`SHRINK`] pixels.
fn shrink(image: &[u8], width: usize, height: usize) -> (Vec<u8>, usize, usize) {
    let (small_width, small_height) = (width / SHRINK, height / SHRINK);
    let mut small = Vec::with_capacity(small_width * small_height * 3);
    for y in 0..small_height {
        for x in 0..small_width {
            for channel in 0..3 {
                let block = (0..SHRINK * SHRINK).map(|i| {
                    let (x, y) = (x * SHRINK + i % SHRINK, y * SHRINK + i / SHRINK);
                    u32::from(image[(y * width + x) * 3 + channel])
                });
                small.push((block.sum::<u32>() / (SHRINK * SHRINK) as u32) as u8);
            }
        }
    }
    (small, small_width, small_height)
}

fn load_typeface() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let regular = include_bytes!("../../fonts/Inter-Regular.ttf");
        let bold = include_bytes!("../../fonts/Inter-SemiBold.ttf");
        for (style, font) in [
            (FontStyle::Normal, regular.as_slice()),
            (FontStyle::Bold, bold.as_slice()),
        ] {
            // The fonts are built in and known to be good.
            let loaded = register_font(TYPEFACE, style, font);
            debug_assert!(loaded.is_ok(), "a built-in font is broken");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_takes_means() {
        let image = [10u8, 20, 30, 30, 40, 50, 10, 20, 30, 30, 40, 50];
        assert_eq!(shrink(&image, 2, 2), (vec![20, 30, 40], 1, 1));
    }
}
