use cutlet_layout_core::{IntTuple, Layout};

const _: Layout = Layout::col_major(&IntTuple::fixed(&[1; 40]));

fn main() {}
