use cutlet_layout_core::{Tiler, tile};

const _: Tiler = tile!(<4, (2, 3):(1)>);

fn main() {}
