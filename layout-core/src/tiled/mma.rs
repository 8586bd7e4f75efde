//! [`TiledMma`]: which thread holds which elements of the operands of a matrix product.

use core::marker::PhantomData;

use crate::{
    Fragment, FragmentLayout, Layout, M, Mma, MmaTiling, Repeats, StaticLayout, ThreadIndex,
    ThreadValue, TileShape, Tiled, Tiler, Width,
};

/// The instruction `Atom`, executed by `Warps` at once, each on its own part of a tile, and repeated until the tile is
/// covered.
///
/// `Warps` numbers the warps by (m, n), as `L!((2, 4):(1, 2))` does for two warps below one another and four side by
/// side. A warp's rows (and columns) in a tile are as many as the atom has, then those after the other warps' ones, and
/// so on. A `Permutation` orders them otherwise.
///
/// ```
/// use cutlet_layout_core::{L, M16N8K16Bits16, RowMajor, StaticLayout, Tensor, ThreadValue, TiledMma};
///
/// /// 2×2 warps.
/// type Mma = TiledMma<M16N8K16Bits16, L!((2, 2):(1, 2))>;
/// type Tile = L!((64, 32):(1@0, 1@1));
///
/// let c = [0.0f32; 64 * 32];
/// // SAFETY: the extents stay inside the array.
/// let c = unsafe { Tensor::new(c.as_ptr(), RowMajor::new([64, 32], 32)) };
/// // Thread 33 is lane 1 of the warp at (1, 0). It holds four accumulators in each of 2×2 blocks of 32×16.
/// let mine = Mma::thread_slice(33u32).partition_c(c.local_tile::<Tile>((0, 0)));
/// assert_eq!([0, 1, 2].map(|v| mine.bound().coordinate(v)), [[16, 2], [16, 3], [24, 2]]);
/// ```
///
/// A tile that is not a whole number of the atoms of all warps does not compile, whichever function asks for it:
///
/// ```compile_fail,E0277
/// use cutlet_layout_core::{L, M16N8K16Bits16, RowMajor, Tensor, TiledMma};
///
/// type Mma = TiledMma<M16N8K16Bits16, L!((2, 2):(1, 2))>;
/// let c = [0.0f32; 48 * 32];
/// // SAFETY: the extents stay inside the array.
/// let c = unsafe { Tensor::new(c.as_ptr(), RowMajor::new([48, 32], 32)) };
/// // Two warps have 32 rows.
/// Mma::thread_slice(0u32).partition_c(c.local_tile::<L!((48, 32):(1@0, 1@1))>((0, 0)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TiledMma<Atom, Warps, Permutation = InOrder>(PhantomData<(Atom, Warps, Permutation)>);

/// The places of the warps of a [`TiledMma`], or of the threads or values of a [`TiledCopy`](crate::TiledCopy): so many below
/// one another and so many side by side, each with a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not arrange warps, threads or values in rows and columns",
    note = "write `L!((BELOW, ASIDE):(STRIDE, STRIDE))`, such as `L!((2, 4):(1, 2))`"
)]
pub trait Arrangement: StaticLayout {
    /// Those below one another, as the mode `M<COUNT, 1>`.
    type Below: StaticLayout;
    /// Those side by side, as the mode `M<COUNT, 1>`.
    type Aside: StaticLayout;
}

impl<const BELOW: usize, const DB: i64, const ASIDE: usize, const DA: i64> Arrangement
    for (M<BELOW, DB>, M<ASIDE, DA>)
{
    type Below = M<BELOW, 1>;
    type Aside = M<ASIDE, 1>;
}

/// The order in which the atoms of a [`TiledMma`] take a tile's rows and columns.
pub trait Permutation: Copy + 'static {
    /// The tilers of M, N and K, by which a tile is divided first.
    const TILERS: [Tiler; 3];
}

/// The rows and columns in their order.
#[derive(Clone, Copy, Debug)]
pub struct InOrder;

impl Permutation for InOrder {
    const TILERS: [Tiler; 3] = [Tiler::UNDERSCORE; 3];
}

/// From the rows that atoms take one after the other to those of the tile, and from columns to columns.
impl<Rows: StaticLayout, Columns: StaticLayout> Permutation for (Rows, Columns) {
    const TILERS: [Tiler; 3] = [
        Tiler::layout(&Rows::LAYOUT),
        Tiler::layout(&Columns::LAYOUT),
        Tiler::UNDERSCORE,
    ];
}

/// Also from the k that atoms take to those of the tile. A and B have the same.
impl<Rows: StaticLayout, Columns: StaticLayout, Ks: StaticLayout> Permutation
    for (Rows, Columns, Ks)
{
    const TILERS: [Tiler; 3] = [
        Tiler::layout(&Rows::LAYOUT),
        Tiler::layout(&Columns::LAYOUT),
        Tiler::layout(&Ks::LAYOUT),
    ];
}

impl<Atom: Mma, W: Arrangement, P: Permutation> TiledMma<Atom, W, P> {
    /// The tiled MMA as a value, which divides any layout.
    pub const TILING: MmaTiling = {
        let warps = Layout::concat(&[
            W::LAYOUT.mode(0),
            W::LAYOUT.mode(1),
            Layout::static_mode(1, 0),
        ]);
        MmaTiling::new(Atom::ATOM, &warps).permuted(P::TILERS)
    };

    /// The number of threads.
    pub const THREADS: u32 = Self::TILING.threads() as u32;

    /// The part of a thread, which partitions tiles.
    #[inline(always)]
    pub fn thread_slice<X: ThreadIndex>(thread: X) -> ThreadMma<Self, X> {
        ThreadMma {
            thread,
            tiled: PhantomData,
        }
    }
}

/// A thread's part of a [`TiledMma`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadMma<T, X> {
    thread: X,
    tiled: PhantomData<T>,
}

impl<T: Copy + 'static, X: ThreadIndex> ThreadMma<T, X> {
    /// The thread.
    #[inline(always)]
    pub fn thread(&self) -> X {
        self.thread
    }

    /// The elements of an M×K tile of A that the thread multiplies. Other threads share them.
    #[inline(always)]
    pub fn partition_a<A: Tiled>(
        &self,
        a: A,
    ) -> crate::Partition<A::Engine, A::Inner, PartitionA<T, A::Tile>>
    where
        PartitionA<T, A::Tile>: ThreadValue,
    {
        a.partition_tile_broadcast(self.thread)
    }

    /// The elements of an N×K tile of B that the thread multiplies. Other threads share them.
    #[inline(always)]
    pub fn partition_b<B: Tiled>(
        &self,
        b: B,
    ) -> crate::Partition<B::Engine, B::Inner, PartitionB<T, B::Tile>>
    where
        PartitionB<T, B::Tile>: ThreadValue,
    {
        b.partition_tile_broadcast(self.thread)
    }

    /// The elements of an M×N tile of C that the thread has, one by one.
    #[inline(always)]
    pub fn partition_c<C: Tiled>(
        &self,
        c: C,
    ) -> crate::Partition<C::Engine, C::Inner, PartitionC<T, C::Tile>>
    where
        PartitionC<T, C::Tile>: ThreadValue,
    {
        c.partition_tile(self.thread)
    }

    /// [`partition_c`](Self::partition_c) with accesses to `WIDTH` elements, which are neighbours in memory.
    #[inline(always)]
    pub fn partition_c_in_vectors<const WIDTH: usize, C: Tiled>(
        &self,
        c: C,
    ) -> crate::Partition<C::Engine, C::Inner, PartitionC<T, C::Tile, WIDTH>>
    where
        PartitionC<T, C::Tile, WIDTH>: ThreadValue,
    {
        c.partition_tile(self.thread)
    }

    /// A number in place of each of the thread's elements of an M×N tile of C: accumulators.
    #[inline(always)]
    pub fn fragment_c<Tile: TileShape, V: Copy>(
        &self,
        value: V,
    ) -> Fragment<V, PartitionValues<T, OperandC, Tile::Extents>>
    where
        PartitionValues<T, OperandC, Tile::Extents>: FragmentLayout,
    {
        Fragment::filled(value)
    }
}

/// The steps along k in which a [`TiledMma`] `T` multiplies tiles of A and B: as many as `Tile` has times the k of the
/// instruction.
#[derive(Clone, Copy, Debug)]
pub struct Steps<T, Tile>(PhantomData<(T, Tile)>);

impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> StaticLayout
    for Steps<TiledMma<Atom, W, P>, Tile>
{
    const LAYOUT: Layout = {
        assert!(
            Tile::Columns::SIZE.is_multiple_of(Atom::K::SIZE),
            "the k of a tile is no multiple of the instruction's: make it one"
        );
        Layout::static_mode((Tile::Columns::SIZE / Atom::K::SIZE) as i64, 1)
    };
}

/// Operand A of a product: M×K.
#[derive(Clone, Copy, Debug)]
pub struct OperandA;
/// Operand B of a product: N×K.
#[derive(Clone, Copy, Debug)]
pub struct OperandB;
/// Operand C of a product: M×N.
#[derive(Clone, Copy, Debug)]
pub struct OperandC;

/// The part of a tile that a thread of a [`TiledMma`] `T` holds of an operand. `Tile` has the operand's extents.
#[derive(Clone, Copy, Debug)]
pub struct Partition<T, Operand, Tile, const WIDTH: usize>(PhantomData<(T, Operand, Tile)>);

/// Thread-value layout of an M×K tile of A.
pub type PartitionA<T, Tile> = Partition<T, OperandA, Tile, 1>;
/// Thread-value layout of an N×K tile of B.
pub type PartitionB<T, Tile> = Partition<T, OperandB, Tile, 1>;
/// Thread-value layout of an M×N tile of C, of which an access moves `WIDTH` values.
pub type PartitionC<T, Tile, const WIDTH: usize = 1> = Partition<T, OperandC, Tile, WIDTH>;

/// The threads of a [`PartitionA`], [`PartitionB`] or [`PartitionC`].
#[derive(Clone, Copy, Debug)]
pub struct PartitionThreads<T, Operand, Tile>(PhantomData<(T, Operand, Tile)>);

/// A thread's values of a [`PartitionA`], [`PartitionB`] or [`PartitionC`]: those of an atom, then the repeats along the rows, then those along the columns.
#[derive(Clone, Copy, Debug)]
pub struct PartitionValues<T, Operand, Tile>(PhantomData<(T, Operand, Tile)>);

/// A [`TiledMma`] over tiles of an operand. The compiler computes a constant of a type once, and threads and
/// values are halves of one.
trait LayoutTv<Operand, Tile>: Copy + 'static {
    /// (thread, value) → the tile's coordinates.
    const TV: Layout;
}

/// A tile's extents as coordinates.
pub(super) const fn coordinates<Tile: TileShape>() -> Layout {
    Layout::concat2(
        &Layout::static_basis_mode(Tile::Rows::SIZE as i64, 1, 0),
        &Layout::static_basis_mode(Tile::Columns::SIZE as i64, 1, 1),
    )
}

macro_rules! partition {
    ($($operand:ident: $tv:ident, values $values:ident, rows by $rows:ident and $of_rows:ty,
        columns by $columns:ident and $of_columns:ty;)+) => {$(
        impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape, const WIDTH: usize> ThreadValue
            for Partition<TiledMma<Atom, W, P>, $operand, Tile, WIDTH>
        where
            Tile::Rows: Repeats<Atom::$rows, $of_rows>,
            Tile::Columns: Repeats<Atom::$columns, $of_columns>,
        {
            type Thr = PartitionThreads<TiledMma<Atom, W, P>, $operand, Tile>;
            type Val = PartitionValues<TiledMma<Atom, W, P>, $operand, Tile>;
            type Width = Width<WIDTH>;
        }

        impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> LayoutTv<$operand, Tile>
            for TiledMma<Atom, W, P>
        {
            const TV: Layout = Self::TILING.$tv(&coordinates::<Tile>());
        }

        impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> StaticLayout
            for PartitionThreads<TiledMma<Atom, W, P>, $operand, Tile>
        {
            const LAYOUT: Layout =
                <TiledMma<Atom, W, P> as LayoutTv<$operand, Tile>>::TV.mode(0).flatten();
        }

        impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> StaticLayout
            for PartitionValues<TiledMma<Atom, W, P>, $operand, Tile>
        {
            const LAYOUT: Layout = <TiledMma<Atom, W, P> as LayoutTv<$operand, Tile>>::TV.mode(1);
        }

        impl<Atom: Mma, W: Arrangement, P: Permutation, Tile: TileShape> FragmentLayout
            for PartitionValues<TiledMma<Atom, W, P>, $operand, Tile>
        where
            Tile::Rows: Repeats<Atom::$rows, $of_rows>,
            Tile::Columns: Repeats<Atom::$columns, $of_columns>,
        {
            type Storage = (
                <<Atom::$values as ThreadValue>::Val as FragmentLayout>::Storage,
                <<Tile::Rows as Repeats<Atom::$rows, $of_rows>>::Times as FragmentLayout>::Storage,
                <<Tile::Columns as Repeats<Atom::$columns, $of_columns>>::Times as FragmentLayout>::Storage,
            );
        }
    )+};
}
partition! {
    OperandA: layout_a_tv, values LayoutA, rows by M and W::Below, columns by K and M<1, 1>;
    OperandB: layout_b_tv, values LayoutB, rows by N and W::Aside, columns by K and M<1, 1>;
    OperandC: layout_c_tv, values LayoutC, rows by M and W::Below, columns by N and W::Aside;
}
