//! The parts of a plot as elements of SVG. Colours are classes, which the page's style sheet has for light and for dark.

use std::fmt;

use maud::{Markup, html};

/// A place in a plot, from its top left.
pub type Place = (f64, f64);

/// Colours. Each means the same in all plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// cutlet, and rows where it is faster.
    Cutlet,
    /// The baseline.
    Baseline,
    /// Ties.
    Tie,
    /// Rows where cutlet is slower.
    Slower,
    /// Ceilings of the hardware, and axes.
    Ceiling,
    /// Lines of the grid.
    Grid,
    /// Texts, and lines on bars.
    Text,
    /// A series of a line plot. They repeat after the fourth.
    Series(usize),
}

impl fmt::Display for Ink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ink::Cutlet => "cutlet",
            Ink::Baseline => "baseline",
            Ink::Tie => "tie",
            Ink::Slower => "slower",
            Ink::Ceiling => "ceiling",
            Ink::Grid => "grid",
            Ink::Text => "text",
            Ink::Series(nth) => return write!(f, "series-{}", nth % 4 + 1),
        })
    }
}

/// The part of a text that is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left end.
    Left,
    /// The middle.
    Middle,
    /// The right end.
    Right,
}

impl Align {
    fn class(self) -> &'static str {
        match self {
            Align::Left => "left",
            Align::Middle => "middle",
            Align::Right => "right",
        }
    }
}

/// A picture of this width and height, for readers that see none with these words in its place.
pub fn picture((width, height): Place, words: &str, parts: &[Markup]) -> Markup {
    html! {
        svg class="plot" viewBox=(format!("0 0 {} {}", rounded(width), rounded(height))) role="img" aria-label=(words) {
            @for part in parts { (part) }
        }
    }
}

/// Parts that say this when the mouse is over them.
pub fn titled(title: &str, parts: &[Markup]) -> Markup {
    html! { g { title { (title) } @for part in parts { (part) } } }
}

/// A rectangle between two corners.
pub fn rectangle(from: Place, to: Place, ink: Ink) -> Markup {
    let (width, height) = (rounded(to.0 - from.0), rounded(to.1 - from.1));
    html! {
        rect class=(format!("fill-{ink}")) x=(rounded(from.0)) y=(rounded(from.1)) width=(width) height=(height) {}
    }
}

/// A line through points.
pub fn line(points: &[Place], ink: Ink, style: &str) -> Markup {
    let points: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{},{}", rounded(*x), rounded(*y)))
        .collect();
    html! { polyline class=(format!("line {style} stroke-{ink}")) points=(points.join(" ")) {} }
}

/// A dot.
pub fn dot((x, y): Place, radius: f64, ink: Ink) -> Markup {
    html! { circle class=(format!("fill-{ink}")) cx=(rounded(x)) cy=(rounded(y)) r=(radius) {} }
}

/// A ring.
pub fn ring((x, y): Place, radius: f64, ink: Ink) -> Markup {
    html! { circle class=(format!("ring stroke-{ink}")) cx=(rounded(x)) cy=(rounded(y)) r=(radius) {} }
}

/// A text beside a place, centred on its height. `style` has classes of the style sheet.
pub fn text((x, y): Place, text: &str, align: Align, style: &str) -> Markup {
    html! {
        text class=(format!("{} {style}", align.class())) x=(rounded(x)) y=(rounded(y)) { (text) }
    }
}

/// About how wide a text is in small letters of whatever sans-serif face the reader has.
pub fn width(text: &str) -> f64 {
    6.4 * text.chars().count() as f64
}

/// A length with a digit after the point.
fn rounded(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_lengths_short() {
        let markup = text((1.0 / 3.0, 2.0), "a < b & c", Align::Middle, "small").into_string();
        let expected = r#"<text class="middle small" x="0.3" y="2">a &lt; b &amp; c</text>"#;
        assert_eq!(markup, expected);
    }

    #[test]
    fn a_fifth_series_looks_like_the_first() {
        assert_eq!(Ink::Series(0).to_string(), Ink::Series(4).to_string());
    }
}
