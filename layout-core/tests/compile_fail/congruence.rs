use cutlet_layout_core::{Layout, layout};

const _: Layout = layout!((4, (2, 3)):(1, 4));

fn main() {}
