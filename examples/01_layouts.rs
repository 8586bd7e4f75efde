//! Layouts: functions from coordinates to indices, and their division into tiles.

use cutlet_layout_core::{layout, logical_divide, tile, zipped_divide};

fn main() {
    let matrix = layout!((4, 6):(6, 1)); // four rows of six, row-major
    println!(
        "{matrix} maps coordinate 5, which is (1, 1), to {}",
        matrix.at(5)
    );

    let divided = logical_divide(&matrix, &tile!(<2, 3>));
    println!("divided by a 2×3 tile, each mode is split into tile and rest: {divided}");

    let zipped = zipped_divide(&matrix, &tile!(<2, 3>));
    println!(
        "the tile: {}, and the layout of tiles: {}",
        zipped.mode(0),
        zipped.mode(1)
    );
}
