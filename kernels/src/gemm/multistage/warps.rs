//! The warps of a block: each has a rectangle of the tile of C, in place of rows and columns here and there.

use core::marker::PhantomData;

use cutlet_layout_core::{
    Arrangement, Layout, M as Mode, MmaAtom, Permutation, StaticLayout, Tiler, logical_divide,
};

/// A block's warps: `M` below one another, `N` side by side. Neighbours side by side have neighbouring numbers.
#[derive(Clone, Copy, Debug)]
pub struct Warps<const M: usize, const N: usize>;

impl<const M: usize, const N: usize> StaticLayout for Warps<M, N> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_mode(M as i64, N as i64),
        Layout::static_mode(N as i64, 1),
    ]);
}

impl<const M: usize, const N: usize> Arrangement for Warps<M, N> {
    type Below = Mode<M, 1>;
    type Aside = Mode<N, 1>;
}

/// The order of rows and columns by which each warp of a product `P` has a rectangle of the tile of C.
#[derive(Clone, Copy, Debug)]
pub struct InRectangles<P>(PhantomData<P>);

/// A product whose warps have rectangles.
pub trait Rectangles: Copy + 'static {
    /// The atom.
    const ATOM: MmaAtom;
    /// Rows and columns of the tile of C.
    const TILE: [usize; 2];
    /// Warps below one another and side by side.
    const WARPS: [usize; 2];
    /// [`Lines::ORDER`](super::arithmetic::Lines::ORDER) of the lines of A for rows, and of those of B for columns.
    const ORDER: [Layout; 2];
    /// [`Arithmetic::ORDER_OF_K`](super::arithmetic::Arithmetic::ORDER_OF_K).
    const ORDER_OF_K: Layout;
}

impl<P: Rectangles> Permutation for InRectangles<P> {
    const TILERS: [Tiler; 3] = [
        in_rectangles::<P>(0, P::TILE[0], P::WARPS[0]),
        in_rectangles::<P>(1, P::TILE[1], P::WARPS[1]),
        Tiler::layout(&P::ORDER_OF_K),
    ];
}

/// The rows (`side` 0) or columns (1) that atoms take: those of one atom, then of the atoms of the other warps, and
/// then the warps' next ones. `extent` of them are `warps` rectangles'.
pub(super) const fn in_rectangles<P: Rectangles>(
    side: usize,
    extent: usize,
    warps: usize,
) -> Tiler {
    let of_a_warp = extent / warps;
    let order = &P::ORDER[side];
    assert!(
        of_a_warp as i64 % order.size() == 0,
        "a warp has whole blocks of rows and of columns"
    );
    let atoms = Tiler::layout(&Layout::static_mode(P::ATOM.shape()[side], 1));
    let block = logical_divide(&order.flatten(), &atoms);
    Tiler::layout(&Layout::concat(&[
        block.mode(0),
        Layout::static_mode(warps as i64, of_a_warp as i64),
        block.mode(1),
        Layout::static_mode(of_a_warp as i64 / order.size(), order.size()),
    ]))
}
