use cutlet_layout_core::{Layout, composition, layout};

const A: Layout = layout!((4, 2):(1, 8));
const _: Layout = composition(&A, &layout!(3:3));

fn main() {}
