//! The addresses that a warp passes to `ldmatrix`, so that each thread gets the elements that it multiplies.

use core::marker::PhantomData;

use crate::error::or_panic;
use crate::tiled::mma::{OperandA, OperandB, coordinates};
use crate::{
    CopyAtom, CopyTiling, FragmentLayout, IntTuple, Layout, Mma, Permutation, StaticLayout,
    ThreadValue, TileShape, TiledMma, Warps, Width,
};

/// Where each thread's row of a matrix begins in a tile of an operand: thread-value layout of the loads that bring the
/// elements of a [`TiledMma`] `T` to the threads that multiply them. The loads of one step along k come before those of
/// the next step.
///
/// A load has [`MATRICES`](Self::MATRICES) matrices of elements `Element`: four, or two if a thread has an odd number of
/// instructions' columns. If they are `TRANSPOSED`, a row runs along m (or n), else along k.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<T, Operand, Tile, Element, const TRANSPOSED: bool>(
    PhantomData<(T, Operand, Tile, Element)>,
);

/// The threads of [`Matrices`].
#[derive(Clone, Copy, Debug)]
pub struct MatrixThreads<M>(PhantomData<M>);

/// The loads of [`Matrices`]. They are never in a fragment.
#[derive(Clone, Copy, Debug)]
pub struct MatrixLoads<M>(PhantomData<M>);

/// What a tile is divided into by loads.
trait Divided: Copy + 'static {
    /// (thread, (element of a row, load), 1, step) → the tile's coordinates.
    const DIVIDED: Layout;
}

const fn divided<Element>(
    matrices: usize,
    is_transposed: bool,
    of_a_step: &Layout,
    step: &IntTuple,
    tile: &Layout,
) -> Layout {
    let bits = 8 * size_of::<Element>() as i64;
    let atom = if is_transposed {
        CopyAtom::ldmatrix_transposed(matrices as i64, bits)
    } else {
        CopyAtom::ldmatrix(matrices as i64, bits)
    };
    or_panic(CopyTiling::of_layout(atom, of_a_step, step).try_tidfrg_s(tile))
}

macro_rules! matrices {
    ($($operand:ident: $tv:ident;)+) => {$(
        impl<
            Atom: Mma,
            W: Warps,
            P: Permutation,
            Tile: TileShape,
            Element: Copy + 'static,
            const TRANSPOSED: bool,
        > Matrices<TiledMma<Atom, W, P>, $operand, Tile, Element, TRANSPOSED>
        {
            /// The extents of a step: all rows, and the k of the instruction.
            const STEP: IntTuple =
                IntTuple::fixed(&[Tile::Rows::SIZE as i64, Atom::K::SIZE as i64]);
            /// (thread, value) → position in the tile of a step.
            const OF_A_STEP: Layout =
                TiledMma::<Atom, W, P>::TILING.$tv(&Layout::col_major(&Self::STEP));

            /// The matrices of a load.
            pub const MATRICES: usize = {
                let bytes = Self::OF_A_STEP.mode(1).size() * size_of::<Element>() as i64;
                if bytes % 16 == 0 { 4 } else { 2 }
            };
        }

        impl<
            Atom: Mma,
            W: Warps,
            P: Permutation,
            Tile: TileShape,
            Element: Copy + 'static,
            const TRANSPOSED: bool,
        > Divided for Matrices<TiledMma<Atom, W, P>, $operand, Tile, Element, TRANSPOSED>
        {
            const DIVIDED: Layout = divided::<Element>(
                Self::MATRICES,
                TRANSPOSED,
                &Self::OF_A_STEP,
                &Self::STEP,
                &coordinates::<Tile>(),
            );
        }

        impl<
            Atom: Mma,
            W: Warps,
            P: Permutation,
            Tile: TileShape,
            Element: Copy + 'static,
            const TRANSPOSED: bool,
        > ThreadValue
            for Matrices<TiledMma<Atom, W, P>, $operand, Tile, Element, TRANSPOSED>
        {
            type Thr = MatrixThreads<Self>;
            type Val = MatrixLoads<Self>;
            type Width = Width<1>;
        }
    )+};
}
matrices! {
    OperandA: layout_a_tv;
    OperandB: layout_b_tv;
}

impl<M: Divided> StaticLayout for MatrixThreads<M> {
    const LAYOUT: Layout = M::DIVIDED.mode(0).flatten();
}

impl<M: Divided> StaticLayout for MatrixLoads<M> {
    const LAYOUT: Layout = Layout::concat2(&M::DIVIDED.get(&[1, 1]), &M::DIVIDED.mode(3));
}

impl<M: Divided> FragmentLayout for MatrixLoads<M> {
    type Storage = [(); 256];
}

/// The elements of the rows of [`Matrices`] `M`: those of a row, which lie side by side in memory, then the loads. They are
/// never in a fragment.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRows<M>(PhantomData<M>);

impl<M: Divided> StaticLayout for MatrixRows<M> {
    const LAYOUT: Layout = Layout::concat(&[
        M::DIVIDED.get(&[1, 0]),
        M::DIVIDED.get(&[1, 1]),
        M::DIVIDED.mode(3),
    ]);
}

impl<M: Divided> FragmentLayout for MatrixRows<M> {
    type Storage = [(); 256];
}
