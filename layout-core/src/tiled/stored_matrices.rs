//! The addresses that a warp passes to `stmatrix`, so that each thread's accumulators get to their places in a tile.

use core::marker::PhantomData;

use super::matrices::{Divided, MatrixLoads, MatrixThreads};
use crate::error::or_panic;
use crate::tiled::mma::coordinates;
use crate::{
    Arrangement, CopyAtom, CopyTiling, IntTuple, Layout, Mma, Permutation, StaticLayout,
    ThreadValue, TileShape, TiledMma, Width,
};

/// Where each thread's row of a matrix begins in an M×N tile of C: thread-value layout of the stores that bring the
/// elements of a [`TiledMma`] `T`, rounded to 16 bits, from the threads that hold them. A store takes the thread's next
/// 2·[`MATRICES`](Self::MATRICES) values.
///
/// If the matrices are `TRANSPOSED`, a row runs along m, else along n.
#[derive(Clone, Copy, Debug)]
pub struct StoredMatrices<T, Tile, const TRANSPOSED: bool>(PhantomData<(T, Tile)>);

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape, const TRANSPOSED: bool>
    StoredMatrices<TiledMma<Atom, W, P>, Tile, TRANSPOSED>
{
    const EXTENTS: IntTuple =
        IntTuple::fixed(&[Tile::Rows::SIZE as i64, Tile::Columns::SIZE as i64]);

    /// (thread, value) → position in the tile.
    const HELD: Layout =
        TiledMma::<Atom, W, P>::TILING.layout_c_tv(&Layout::col_major(&Self::EXTENTS));

    /// The matrices of a store: four, or as many as a thread has values for.
    pub const MATRICES: usize = match Self::HELD.mode(1).size() % 8 {
        0 => 4,
        4 => 2,
        2 | 6 => 1,
        _ => panic!(
            "stmatrix stores pairs of values, and a thread of this instruction has single ones"
        ),
    };
}

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape, const TRANSPOSED: bool> Divided
    for StoredMatrices<TiledMma<Atom, W, P>, Tile, TRANSPOSED>
{
    const DIVIDED: Layout = {
        let matrices = Self::MATRICES as i64;
        let atom = if TRANSPOSED {
            CopyAtom::stmatrix_transposed(matrices, 16)
        } else {
            CopyAtom::stmatrix(matrices, 16)
        };
        let stores = CopyTiling::of_layout(atom, &Self::HELD, &Self::EXTENTS);
        or_panic(stores.try_tidfrg_d(&coordinates::<Tile>()))
    };
}

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape, const TRANSPOSED: bool> ThreadValue
    for StoredMatrices<TiledMma<Atom, W, P>, Tile, TRANSPOSED>
{
    type Thr = MatrixThreads<Self>;
    type Val = MatrixLoads<Self>;
    type Width = Width<1>;
}
