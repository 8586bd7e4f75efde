use cutlet_layout_core::{FragmentLayout, Layout, StaticLayout, layout};

#[derive(Clone, Copy)]
struct Pair;

impl StaticLayout for Pair {
    const LAYOUT: Layout = layout!(2:1);
}

/// It has the size of two references. Threads may share it, but not what some references point to.
#[derive(Clone, Copy)]
struct Words(u64, u64);

impl FragmentLayout for Pair {
    type Storage = [Words; 1];
}

#[derive(Clone, Copy)]
struct Couple;

impl StaticLayout for Couple {
    const LAYOUT: Layout = layout!(2:1);
}

/// It has the size of two values, and the alignment of none.
#[derive(Clone, Copy)]
#[repr(packed)]
struct Packed<T>(T, T);

impl FragmentLayout for Couple {
    type Storage = Packed<()>;
}

fn main() {}
