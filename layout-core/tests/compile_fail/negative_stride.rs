use cutlet_layout_core::{Coord, L, tile_extent};

const _: Coord = tile_extent::<L!(4:{-1}@1)>();

fn main() {}
