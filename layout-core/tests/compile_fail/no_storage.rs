use cutlet_layout_core::{Fragment, Layout, StaticLayout, layout};

#[derive(Clone, Copy)]
struct Pair;

impl StaticLayout for Pair {
    const LAYOUT: Layout = layout!(2:1);
}

fn sum(_: Fragment<f32, Pair>) {}

fn main() {}
