//! The addresses that a warp passes to `ldmatrix`, so that each thread gets the elements that it multiplies.

use core::marker::PhantomData;

use crate::error::or_panic;
use crate::tiled::mma::{OperandA, OperandB, coordinates};
use crate::{
    Arrangement, CopyAtom, CopyTiling, FragmentLayout, IntTuple, Layout, Mma, Permutation,
    StaticLayout, ThreadValue, TileShape, TiledMma, Width,
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

/// What the threads hold in a step along k of an operand, of which [`Matrices`] are loaded.
pub trait Step: Copy + 'static {
    /// The extents of a step: all rows, and the k of the instruction.
    const EXTENTS: IntTuple;
    /// (thread, value) → position in a step.
    const HELD: Layout;
}

impl<T, Operand, Tile, Element, const TRANSPOSED: bool>
    Matrices<T, Operand, Tile, Element, TRANSPOSED>
where
    Self: Step,
{
    /// The matrices of a load.
    pub const MATRICES: usize = {
        let bytes = Self::HELD.mode(1).size() * size_of::<Element>() as i64;
        if bytes % 16 == 0 { 4 } else { 2 }
    };
}

/// What a tile is divided into by loads, or by stores.
pub(super) trait Divided: Copy + 'static {
    /// (thread, (element of a row, load), 1, step) → the tile's coordinates.
    const DIVIDED: Layout;
}

impl<T, Operand, Tile: TileShape, Element, const TRANSPOSED: bool> Divided
    for Matrices<T, Operand, Tile, Element, TRANSPOSED>
where
    Self: Step,
{
    const DIVIDED: Layout = {
        let bits = 8 * size_of::<Element>() as i64;
        let matrices = Self::MATRICES as i64;
        let atom = if TRANSPOSED {
            CopyAtom::ldmatrix_transposed(matrices, bits)
        } else {
            CopyAtom::ldmatrix(matrices, bits)
        };
        let loads = CopyTiling::of_layout(atom, &Self::HELD, &Self::EXTENTS);
        or_panic(loads.try_tidfrg_s(&coordinates::<Tile>()))
    };
}

impl<T, Operand, Tile: TileShape, Element, const TRANSPOSED: bool> ThreadValue
    for Matrices<T, Operand, Tile, Element, TRANSPOSED>
where
    Self: Step,
{
    type Thr = MatrixThreads<Self>;
    type Val = MatrixLoads<Self>;
    type Width = Width<1>;
}

macro_rules! step {
    ($($operand:ident: $tv:ident;)+) => {$(
        impl<
            Atom: Mma,
            W: Arrangement,
            P: Permutation,
            Tile: TileShape,
            Element: Copy + 'static,
            const TRANSPOSED: bool,
        > Step for Matrices<TiledMma<Atom, W, P>, $operand, Tile, Element, TRANSPOSED>
        {
            const EXTENTS: IntTuple =
                IntTuple::fixed(&[Tile::Rows::SIZE as i64, Atom::K::SIZE as i64]);
            const HELD: Layout =
                TiledMma::<Atom, W, P>::TILING.$tv(&Layout::col_major(&Self::EXTENTS));
        }
    )+};
}
step! {
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

/// The elements of the rows of [`Matrices`] `M`, or of [`StoredMatrices`](crate::StoredMatrices): those of a row, which
/// lie side by side in memory, then the loads or stores. They are never in a fragment.
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
