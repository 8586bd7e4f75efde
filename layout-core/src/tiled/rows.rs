//! The rows of accumulators: what a softmax or a norm over the rows of a product computes with.

use core::marker::PhantomData;

use crate::{
    Arrangement, Fragment, FragmentLayout, Layout, Mma, OperandC, PartitionValues, Permutation,
    Repeats, StaticLayout, TileShape, TiledMma, each,
};

/// The rows of an M×N tile of C of which a thread of a [`TiledMma`] `T` has elements: those of an instruction, then those
/// of the next.
#[derive(Clone, Copy, Debug)]
pub struct PartitionRows<T, Tile>(PhantomData<(T, Tile)>);

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> StaticLayout
    for PartitionRows<TiledMma<Atom, W, P>, Tile>
where
    Tile::Rows: Repeats<Atom::M, W::Below>,
{
    const LAYOUT: Layout = Layout::static_mode(
        (Atom::RowsOfC::SIZE * <Tile::Rows as Repeats<Atom::M, W::Below>>::Times::SIZE) as i64,
        1,
    );
}

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> FragmentLayout
    for PartitionRows<TiledMma<Atom, W, P>, Tile>
where
    Tile::Rows: Repeats<Atom::M, W::Below>,
{
    type Storage = (
        <Atom::RowsOfC as FragmentLayout>::Storage,
        <<Tile::Rows as Repeats<Atom::M, W::Below>>::Times as FragmentLayout>::Storage,
    );
}

/// A value for each of a thread's elements of a tile of C.
type FragmentC<V, T, Tile> = Fragment<V, PartitionValues<T, OperandC, Tile>>;

impl<V, Atom, W, P, Tile> FragmentC<V, TiledMma<Atom, W, P>, Tile>
where
    V: Copy,
    Atom: Mma,
    W: Arrangement,
    P: Permutation,
    Tile: TileShape,
    Tile::Rows: Repeats<Atom::M, W::Below>,
    PartitionValues<TiledMma<Atom, W, P>, OperandC, Tile>: FragmentLayout,
{
    /// Folds the thread's values of each row: `f` gets what the values before made of `first`, and the next one.
    ///
    /// Other threads have other values of the same rows.
    ///
    /// ```
    /// use cutlet_layout_core::{Fragment, L, M16N8K16Bits16, TiledMma};
    ///
    /// type Mma = TiledMma<M16N8K16Bits16, L!((1, 1):(0, 0))>;
    /// let mma = Mma::thread_slice(0u32);
    /// let mut sums = mma.fragment_c::<L!((16, 16):(1@0, 1@1)), i32>(0);
    /// (0..8).for_each(|v| sums.set(v, v as i32)); // two columns of row 0, two of row 8, and so on
    /// let of_rows = sums.fold_rows(0, |sum, value| sum + value);
    /// assert_eq!([of_rows.get(0), of_rows.get(1)], [1 + 4 + 5, 2 + 3 + 6 + 7]);
    /// let shares = sums.map_by_row(&of_rows, |value, sum| 100 * value / sum);
    /// assert_eq!([shares.get(1), shares.get(2)], [10, 11]);
    /// ```
    #[inline(always)]
    pub fn fold_rows<R: Copy>(
        &self,
        first: R,
        mut f: impl FnMut(R, V) -> R,
    ) -> Fragment<R, PartitionRows<TiledMma<Atom, W, P>, Tile>> {
        let mut rows = Fragment::filled(first);
        each::<PartitionValues<TiledMma<Atom, W, P>, OperandC, Tile>>(|v| {
            let [row, _] = Self::place(v);
            rows.set(row, f(rows.get(row), self.get(v)));
        });
        rows
    }

    /// The fragment whose values are `f(value, what the value's row has)`.
    #[inline(always)]
    pub fn map_by_row<R: Copy, U: Copy>(
        &self,
        rows: &Fragment<R, PartitionRows<TiledMma<Atom, W, P>, Tile>>,
        mut f: impl FnMut(V, R) -> U,
    ) -> FragmentC<U, TiledMma<Atom, W, P>, Tile> {
        self.map(|v, value| f(value, rows.get(Self::place(v)[0])))
    }
}
