//! `L!` wants as many strides as extents, and says which one is missing.

use cutlet_layout_core::{L, StaticLayout};

type NoStride = L!((4, 8):(1));
type NoExtent = L!((4, 8):(1, 4, 32));
type NoNestedStride = L!((4, (2, 8)):(1, (4)));
type Parentheses = L!((4, 8):(1, (4, 2)));
type NineModes = L!((1, 1, 1, 1, 1, 1, 1, 1, 1):(0, 0, 0, 0, 0, 0, 0, 0, 0));

type MissingParentheses = L!(((4, 2), 8):(1, 8));

fn size<L: StaticLayout>() -> usize {
    L::SIZE
}

fn main() {
    size::<NineModes>();
}
