use cutlet_layout_core::{Layout, complement, layout, shape};

const _: Layout = complement(&layout!((4, 2):(1, 2)), &shape!(24));

fn main() {}
