//! The colours of pictures.

use core::fmt;

/// A colour: red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    /// Red, green and blue, each from 0 to 255.
    pub rgb: [u8; 3],
}

/// The hues of cells, light enough for black text.
const HUES: [[u8; 3]; 12] = [
    [175, 175, 255],
    [175, 255, 175],
    [255, 255, 175],
    [255, 175, 175],
    [160, 220, 255],
    [200, 240, 140],
    [255, 210, 150],
    [245, 175, 235],
    [150, 235, 225],
    [220, 205, 165],
    [210, 180, 255],
    [190, 210, 190],
];

/// The number of threads with different colours.
const THREADS: usize = 8;

impl Color {
    /// White.
    pub const WHITE: Color = Color { rgb: [255; 3] };
    /// The grey that marks a selection.
    pub const SELECTED: Color = Color { rgb: [185; 3] };

    /// The colour of a tile. Colours repeat after twelve tiles.
    pub const fn of_tile(tile: i64) -> Color {
        Color {
            rgb: HUES[tile.rem_euclid(HUES.len() as i64) as usize],
        }
    }

    /// The colour of a thread, or of a value. Colours repeat after eight of them.
    pub const fn of_thread(thread: i64) -> Color {
        Color {
            rgb: HUES[thread.rem_euclid(THREADS as i64) as usize],
        }
    }

    /// The shade of grey of an index. Shades repeat after eight indices.
    pub const fn of_index(index: i64) -> Color {
        Color {
            rgb: [255 - 15 * index.rem_euclid(8) as u8; 3],
        }
    }
}

impl fmt::Display for Color {
    /// The colour as SVG writes it: `#afafff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.rgb;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}
