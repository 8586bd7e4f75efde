//! [`TiledCopy`]: which thread copies which elements of a tile.

use core::marker::PhantomData;

use crate::error::or_panic;
use crate::tiled::mma::coordinates;
use crate::{
    AccessWidth, Arrangement, CopyAtom, CopyTiling, FragmentLayout, Layout, Partition, Repeats,
    StaticLayout, ThreadIndex, ThreadValue, TileShape, Tiled,
};

/// The copy instruction `Atom`, executed by `Threads` on `Values` each, and repeated until a tile is covered.
///
/// `Threads` numbers the threads by (row, column), and `Values` a thread's values. They are neighbours, of which each
/// access moves as many as the atom says.
///
/// ```
/// use cutlet_layout_core::{L, RowMajor, Tensor, TiledCopy, Width};
///
/// /// 8×4 threads, each with 8 neighbours of a row: 8×32 elements.
/// type Copy = TiledCopy<Width<8>, L!((8, 4):(4, 1)), L!((1, 8):(0, 1))>;
/// type Tile = L!((16, 32):(1@0, 1@1));
///
/// let from: [u16; 512] = core::array::from_fn(|i| i as u16);
/// let mut to = [0; 512];
/// // SAFETY: the extents stay inside the arrays.
/// let (from, to_tile) = unsafe {
///     let from = Tensor::new(from.as_ptr(), RowMajor::new([16, 32], 32));
///     (from, Tensor::new(to.as_mut_ptr(), RowMajor::new([16, 32], 32)))
/// };
/// for thread in 0..32u32 {
///     let copy = Copy::thread_slice(thread);
///     let source = copy.partition(from.local_tile::<Tile>((0, 0)));
///     source.copy_to(&copy.partition(to_tile.local_tile::<Tile>((0, 0))));
/// }
/// assert!(to.iter().enumerate().all(|(i, value)| i == usize::from(*value)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TiledCopy<Atom, Threads, Values>(PhantomData<(Atom, Threads, Values)>);

/// A copy instruction whose every execution moves values of one thread.
pub trait CopyWidth: Copy + 'static {
    /// How many values.
    type Width: AccessWidth;
}

impl<const N: usize> CopyWidth for crate::Width<N> {
    type Width = Self;
}

impl<Atom: CopyWidth, Threads: Arrangement, Values: Arrangement> TiledCopy<Atom, Threads, Values> {
    /// The tiled copy as a value, which divides any layout.
    pub const TILING: CopyTiling = {
        // The width of an element does not matter: it is one byte here.
        let atom = CopyAtom::universal(8 * Atom::Width::VALUES as i64, 8);
        CopyTiling::new(atom, &Threads::LAYOUT, &Values::LAYOUT)
    };

    /// The number of threads.
    pub const THREADS: u32 = Threads::SIZE as u32;

    /// The part of a thread, which partitions tiles.
    #[inline(always)]
    pub fn thread_slice<X: ThreadIndex>(thread: X) -> ThreadCopy<Self, X> {
        ThreadCopy::new(thread)
    }
}

/// A thread's part of a [`TiledCopy`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadCopy<T, X> {
    thread: X,
    tiled: PhantomData<T>,
}

impl<T: Copy + 'static, X: ThreadIndex> ThreadCopy<T, X> {
    /// A thread's part of the tiled copy `T`, for kernels that take it as a parameter:
    /// [`TiledCopy::thread_slice`].
    #[inline(always)]
    pub fn new(thread: X) -> Self {
        Self {
            thread,
            tiled: PhantomData,
        }
    }

    /// The elements of a tile that the thread copies, from it or to it.
    #[inline(always)]
    pub fn partition<S: Tiled>(
        &self,
        tile: S,
    ) -> Partition<S::Engine, S::Inner, CopyPartition<T, S::Tile>>
    where
        CopyPartition<T, S::Tile>: ThreadValue,
    {
        tile.partition_tile(self.thread)
    }
}

/// Thread-value layout of a tile that a [`TiledCopy`] `C` copies.
#[derive(Clone, Copy, Debug)]
pub struct CopyPartition<C, Tile>(PhantomData<(C, Tile)>);

/// The threads of a [`CopyPartition`].
#[derive(Clone, Copy, Debug)]
pub struct CopyThreads<C, Tile>(PhantomData<(C, Tile)>);

/// A thread's values of a [`CopyPartition`]: those of the tiled copy, then its repeats along rows and along columns.
#[derive(Clone, Copy, Debug)]
pub struct CopyValues<C, Tile>(PhantomData<(C, Tile)>);

impl<Atom, Threads, Values, Tile> ThreadValue
    for CopyPartition<TiledCopy<Atom, Threads, Values>, Tile>
where
    Atom: CopyWidth,
    Threads: Arrangement,
    Values: Arrangement + FragmentLayout,
    Tile: TileShape,
    Tile::Rows: Repeats<Threads::Below, Values::Below>,
    Tile::Columns: Repeats<Threads::Aside, Values::Aside>,
{
    type Thr = CopyThreads<TiledCopy<Atom, Threads, Values>, Tile>;
    type Val = CopyValues<TiledCopy<Atom, Threads, Values>, Tile>;
    type Width = Atom::Width;
}

/// (thread, value, RestM, RestN) → the tile's coordinates.
const fn divided<Atom: CopyWidth, Threads: Arrangement, Values: Arrangement, Tile: TileShape>()
-> Layout {
    or_panic(TiledCopy::<Atom, Threads, Values>::TILING.try_tidfrg_s(&coordinates::<Tile>()))
}

impl<Atom: CopyWidth, Threads: Arrangement, Values: Arrangement, Tile: TileShape> StaticLayout
    for CopyThreads<TiledCopy<Atom, Threads, Values>, Tile>
{
    const LAYOUT: Layout = divided::<Atom, Threads, Values, Tile>().mode(0).flatten();
}

impl<Atom: CopyWidth, Threads: Arrangement, Values: Arrangement, Tile: TileShape> StaticLayout
    for CopyValues<TiledCopy<Atom, Threads, Values>, Tile>
{
    const LAYOUT: Layout = divided::<Atom, Threads, Values, Tile>().take(1, 4);
}

impl<Atom, Threads, Values, Tile> FragmentLayout
    for CopyValues<TiledCopy<Atom, Threads, Values>, Tile>
where
    Atom: CopyWidth,
    Threads: Arrangement,
    Values: Arrangement + FragmentLayout,
    Tile: TileShape,
    Tile::Rows: Repeats<Threads::Below, Values::Below>,
    Tile::Columns: Repeats<Threads::Aside, Values::Aside>,
{
    type Storage = (
        Values::Storage,
        <<Tile::Rows as Repeats<Threads::Below, Values::Below>>::Times as FragmentLayout>::Storage,
        <<Tile::Columns as Repeats<Threads::Aside, Values::Aside>>::Times as FragmentLayout>::Storage,
    );
}
