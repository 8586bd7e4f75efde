//! Tensors: an engine behind `inner(offset + outer(c))`, tiled and partitioned by layouts.

use core::marker::PhantomData;

use crate::coverage::{assert_at_most_once, assert_exact, assert_threads, assert_within};
use crate::inner::{Bound, Gather, Inner, MatrixInner, RowIndex, coordinate as value_coordinate};
use crate::partition::AccessWidth;
use crate::tile::{Extents, matrix_extents};
use crate::{
    Coord, Engine, EngineMut, Fragment, FragmentLayout, KnownExtent, Layout, StaticLayout,
    ThreadIndex, ThreadValue, TileIndex, Whole, each, tile_extent, tile_origin,
};

/// A tensor as a kernel sees it: memory, an inner transform, and an offset in the transform's
/// domain.
///
/// `T` is the tile that was taken of it, or [`Whole`]. A thread-value layout must cover it exactly.
///
/// ```
/// use cutlet_layout_core::{Fragment, L, RowMajor, Tensor, Tv};
///
/// type Tile = L!((2, 4):(1@0, 1@1));
/// type Thread = Tv<L!(4:1@1), L!(2:1@0)>; // four threads, a column of two values each
///
/// let matrix: [i32; 24] = core::array::from_fn(|i| i as i32); // 4×6, rows contiguous
/// // SAFETY: the extents and the leading dimension stay inside the array.
/// let tensor = unsafe { Tensor::new(matrix.as_ptr(), RowMajor::new([4, 6], 6)) };
/// let mine = tensor.local_tile::<Tile>((1, 0)).partition::<Thread>(3u32);
/// let values = mine.load(0);
/// assert_eq!([values.get(0), values.get(1)], [15, 21]); // (2, 3) and (3, 3)
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tensor<E, I: Inner, T = Whole> {
    engine: E,
    inner: I,
    offset: I::Offset,
    tile: PhantomData<T>,
}

impl<E: Engine, I: Inner> Tensor<E, I> {
    /// A tensor over `engine`.
    ///
    /// # Safety
    /// For as long as the tensor and its copies are used:
    /// - Every element to which `inner` maps a coordinate of its domain is accessible through
    ///   `engine`, without a data race. Which ones these are, `inner` says by [`Bound`]: an [`Inner`] of your own is part
    ///   of the promise.
    /// - The vector accesses of thread-value layouts are aligned. If one begins inside the extents
    ///   and ends outside, the elements outside are accessible, too.
    /// - Tiles and threads' shares begin at coordinates that are not negative and fit 31 bits. The
    ///   extents do so, too.
    /// - The index of a thread for which the tensor is partitioned is in the thread layout. Only on a GPU is this not
    ///   checked, for an index whose type does not know its [`ThreadIndex::THREADS`].
    ///
    /// # Panics
    /// If an extent is negative. A GPU does not check it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn new(engine: E, inner: I) -> Self {
        #[cfg(not(target_arch = "nvptx64"))]
        check_extent(inner.run_time_extent());
        Self {
            engine,
            inner,
            offset: I::ORIGIN,
            tile: PhantomData,
        }
    }
}

/// Refuses extents that are negative, as those from 2^31 on become when they are cut to 32 bits.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
#[track_caller]
fn check_extent(extent: Option<Coord>) {
    if let Some([rows, columns]) = extent {
        assert!(
            rows >= 0 && columns >= 0,
            "a tensor is made of {rows} x {columns} elements: extents are not negative and below 2^31, so check the cast to \
             i32, and split a matrix with more rows or columns"
        );
    }
}

impl<E: Engine, I: Inner, T: KnownExtent> Tensor<E, I, T> {
    /// The extents, as far as the compiler knows them.
    const EXTENTS: Option<Extents> = match T::EXTENT {
        Some(extent) => Some(matrix_extents(extent)),
        None => I::EXTENTS,
    };

    /// Thread `thr`'s share of the tile, by the thread-value layout `C`, which must hold each element once.
    ///
    /// The tile is that of [`local_tile`](Self::local_tile), or all of a [`Fixed`](crate::Fixed) tensor. Then the
    /// compiler checks `C`, and names the element and its owners:
    ///
    /// ```compile_fail,E0080
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// type Tile = L!((2, 4):(1@0, 1@1));
    /// type Threads = Tv<L!(4:1@1), L!((2, 2):(1@0, 1@1))>; // neighbours share a column
    ///
    /// let memory = [0; 8];
    /// // SAFETY: the extents stay inside the array.
    /// let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 4], 4)) };
    /// tensor.local_tile::<Tile>((0, 0)).partition::<Threads>(0).load(0);
    /// ```
    ///
    /// A [`Whole`] matrix is its own tile, which may be smaller than what `C` covers.
    ///
    /// A `C` with a negative stride does not compile: its values may lie before the tensor.
    ///
    /// ```compile_fail,E0080
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// let memory = [1, 2, 3, 4];
    /// // SAFETY: the extents stay inside the array.
    /// let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([1, 4], 4)) };
    /// tensor.partition::<Tv<L!(1:1@0), L!(4:{-1}@1)>>(0).load(0);
    /// ```
    ///
    /// Nor does a `C` of more or fewer threads than the index counts:
    ///
    /// ```compile_fail,E0080
    /// use cutlet_layout_core::{L, RowMajor, Tensor, ThreadIndex, Tv};
    ///
    /// #[derive(Clone, Copy)]
    /// struct Lane(u32);
    /// impl ThreadIndex for Lane {
    ///     const THREADS: Option<u32> = Some(2);
    ///     fn index(self) -> u32 {
    ///         self.0
    ///     }
    /// }
    ///
    /// let memory = [1, 2, 3, 4];
    /// // SAFETY: the extents stay inside the array.
    /// let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([1, 4], 4)) };
    /// tensor.partition::<Tv<L!(4:1@1), L!(1:1@1)>>(Lane(0)).load(0);
    /// ```
    ///
    /// # Panics
    /// With debug assertions, if a whole matrix is larger than what `C` covers. Except on a GPU, if `C` has no thread
    /// `thr`.
    #[inline(always)]
    pub fn partition<C: ThreadValue>(&self, thr: impl ThreadIndex) -> Partition<E, I, C> {
        const { assert_exact::<C>(Self::EXTENTS) }
        debug_assert!(
            Self::EXTENTS.is_some() || self.is_within::<C>(),
            "a matrix is partitioned by a thread-value layout that covers less of it: take a tile by \
             local_tile, or call partition_partial"
        );
        self.partition_broadcast(thr)
    }

    /// Thread `thr`'s share of the tensor, by a thread-value layout that leaves out elements of the tile, or reaches
    /// beyond it within the tensor. No element may have two owners.
    ///
    /// ```
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// type EvenColumns = Tv<L!(2:1@0), L!(2:2@1)>; // two threads, a row each
    ///
    /// let memory = [0, 1, 2, 3, 4, 5, 6, 7];
    /// // SAFETY: the extents stay inside the array.
    /// let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 4], 4)) };
    /// let row = tensor.partition_partial::<EvenColumns>(1).load(-1);
    /// assert_eq!([row.get(0), row.get(1)], [4, 6]);
    /// ```
    ///
    /// An element with two owners is found by strides alone. Where they leave gaps and interleave, it may not be found.
    #[inline(always)]
    pub fn partition_partial<C: ThreadValue>(&self, thr: impl ThreadIndex) -> Partition<E, I, C> {
        const { assert_at_most_once::<C>() }
        const { assert_within::<C>(I::EXTENTS) }
        self.partition_broadcast(thr)
    }

    /// Thread `thr`'s share of the tensor, by a thread-value layout in which an element may have several owners, or
    /// none. So threads share the operands of a matrix product. Writes would race.
    ///
    /// ```
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// type Rows = Tv<L!((2, 2):(1@0, 0)), L!(2:1@1)>; // threads 0 and 2 share a row, as 1 and 3 do
    ///
    /// let memory = [0, 1, 2, 3];
    /// // SAFETY: the extents stay inside the array.
    /// let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 2], 2)) };
    /// let row = tensor.partition_broadcast::<Rows>(3).load(-1);
    /// assert_eq!([row.get(0), row.get(1)], [2, 3]);
    /// ```
    #[inline(always)]
    pub fn partition_broadcast<C: ThreadValue>(&self, thr: impl ThreadIndex) -> Partition<E, I, C> {
        // Here, so that an error names the line of the caller.
        const { assert_within::<C>(I::EXTENTS) }
        let thr = thread_of::<C, _>(thr);
        let offset = self.inner.partition::<C::Thr, C::Val>(self.offset, thr);
        let bound = self.inner.bind::<C::Val>(offset);
        Partition {
            engine: self.engine.offset(bound.base()),
            bound,
            origin: offset,
            layout: PhantomData,
        }
    }

    /// Whether `C` covers a whole matrix.
    fn is_within<C: ThreadValue>(&self) -> bool {
        let [rows, columns] = const { tile_extent::<(C::Thr, C::Val)>() };
        match self.inner.run_time_extent() {
            Some(extent) => extent[0] <= rows && extent[1] <= columns,
            None => true,
        }
    }
}

/// The number of a thread, which the thread layout of `C` has.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn thread_of<C: ThreadValue, X: ThreadIndex>(thr: X) -> u32 {
    const { assert_threads(C::Thr::SIZE, X::THREADS) }
    let thr = thr.index();
    #[cfg(not(target_arch = "nvptx64"))]
    assert!(
        (thr as usize) < C::Thr::SIZE,
        "a tensor is partitioned for thread {thr}, and its thread layout has {}: mask the index, or lay out more threads",
        C::Thr::SIZE
    );
    thr
}

impl<E: Engine, I: MatrixInner, U> Tensor<E, I, U> {
    /// The tile at `tile` = (row, column) in units of tiles of `T`'s extents.
    ///
    /// Edge tiles may reach beyond the matrix. Elements outside load as the given filler and are
    /// not stored.
    ///
    /// # Panics
    /// If the tile begins at a coordinate that is not below 2^31. A GPU does not check it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn local_tile<T: StaticLayout>(
        &self,
        tile: (impl TileIndex, impl TileIndex),
    ) -> Tensor<E, I, T> {
        let by = tile_origin::<T>(tile);
        Tensor {
            engine: self.engine,
            inner: self.inner,
            offset: [self.offset[0] + by[0], self.offset[1] + by[1]],
            tile: PhantomData,
        }
    }

    /// The number of tiles of `T`'s extents that cover the matrix: (rows, columns) of tiles.
    #[inline(always)]
    pub fn tiles<T: StaticLayout>(&self) -> [u32; 2] {
        crate::tiles::<T>(self.extent())
    }

    /// The extents of the matrix: (rows, columns).
    #[inline(always)]
    pub fn extent(&self) -> Coord {
        self.inner.extent()
    }

    /// The coordinate of the matrix at which the tensor begins: (row, column).
    #[inline(always)]
    pub fn origin(&self) -> Coord {
        self.offset
    }
}

/// Attributes the accesses of the rest of the block to the line of the function's caller.
macro_rules! on_behalf_of_caller {
    ($engine:expr) => {
        #[cfg(not(target_arch = "nvptx64"))]
        let _attributed = Attributed::to($engine, core::panic::Location::caller());
    };
}

/// While it lives, accesses are attributed to a line. Then they are attributed to the line before.
#[cfg(not(target_arch = "nvptx64"))]
struct Attributed<E: Engine> {
    engine: E,
    before: crate::engine::Line,
}

#[cfg(not(target_arch = "nvptx64"))]
impl<E: Engine> Attributed<E> {
    #[inline(always)]
    fn to(engine: E, line: &'static core::panic::Location<'static>) -> Self {
        let before = engine.attribute_to(Some(line));
        Self { engine, before }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<E: Engine> Drop for Attributed<E> {
    #[inline(always)]
    fn drop(&mut self) {
        self.engine.attribute_to(self.before);
    }
}

/// The accesses of a partition, by the value at which each begins. `L` is the layout of the values,
/// and `W` the width of an access.
#[derive(Clone, Copy)]
struct Accesses<L, W>(PhantomData<(L, W)>);

impl<L: StaticLayout, W: AccessWidth> StaticLayout for Accesses<L, W> {
    const LAYOUT: Layout = Layout::static_mode((L::SIZE / W::VALUES) as i64, W::VALUES as i64);
}

/// A thread's share of a tile: values in memory, by value index.
#[derive(Clone, Copy)]
pub struct Partition<E, I: Inner, C: ThreadValue> {
    engine: E,
    bound: I::Bound<C::Val>,
    /// Where the thread's share begins.
    origin: I::Offset,
    layout: PhantomData<C>,
}

impl<E: Engine, I: Inner, C: ThreadValue> Partition<E, I, C> {
    /// Values per access.
    const WIDTH: usize = C::Width::VALUES;
    const WIDTH_FITS: () = assert!(
        matches!(Self::WIDTH, 1 | 2 | 4 | 8 | 16)
            && Self::WIDTH <= <I::Bound<C::Val> as Bound>::RUN,
        "the thread-value layout asks for accesses wider than its runs of consecutive values in \
         memory: use a smaller width"
    );

    /// The bound inner transform, from value index to memory.
    #[inline(always)]
    pub fn bound(&self) -> &I::Bound<C::Val> {
        &self.bound
    }

    /// The engine whose element 0 is value `v`, for instructions that take an address.
    ///
    /// ```
    /// use cutlet_layout_core::{Engine, L, RowMajor, Tensor, Tv};
    ///
    /// type Pair = Tv<L!(2:1@1), L!(2:1@0)>; // two threads, a column of two values each
    ///
    /// let matrix = [1, 2, 3, 4];
    /// // SAFETY: the extents and the leading dimension stay inside the array.
    /// let second = unsafe {
    ///     let tensor = Tensor::new(matrix.as_ptr(), RowMajor::new([2, 2], 2));
    ///     tensor.partition::<Pair>(1u32).engine_at(1).load(0)
    /// };
    /// assert_eq!(second, 4);
    /// ```
    #[inline(always)]
    pub fn engine_at(&self, v: usize) -> E {
        self.engine.offset(self.bound.index(v))
    }

    /// Reads value `v`, or returns `filler` if it lies outside the tensor.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn value(&self, v: usize, filler: E::Element) -> E::Element {
        on_behalf_of_caller!(self.engine);
        if self.bound.holds(v) {
            // SAFETY: the value exists.
            unsafe { self.engine.load(self.bound.index(v)) }
        } else {
            filler
        }
    }

    /// Reads all values; those outside the tensor read as `filler`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn load(&self, filler: E::Element) -> Fragment<E::Element, C::Val> {
        let mut values = Fragment::filled(filler);
        self.load_into(&mut values, 0);
        values
    }

    /// Reads the values from `first` on into all of `values`. Values outside the tensor leave
    /// theirs unchanged.
    ///
    /// If the last mode of the thread-value layout runs along k, this reads the values of one k.
    ///
    /// # Panics
    /// If `first` begins no vector of the partition, or `values` has more values than are left from
    /// `first` on. With a constant `first` the check costs nothing.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn load_into<L: FragmentLayout>(&self, values: &mut Fragment<E::Element, L>, first: usize) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        const {
            assert!(
                L::SIZE.is_multiple_of(Self::WIDTH),
                "a fragment is read in whole vectors: make its size a multiple of the access width"
            );
            assert!(
                L::SIZE <= C::Val::SIZE,
                "a fragment is read from a partition that has fewer values: use a smaller fragment"
            )
        }
        assert!(
            first.is_multiple_of(Self::WIDTH) && first <= C::Val::SIZE - L::SIZE,
            "a fragment is read from a value that begins no vector, or too near the partition's end: \
             step by whole vectors, and leave as many values as the fragment has"
        );
        each::<Accesses<L, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(first + v) {
                let index = self.bound.index(first + v);
                // SAFETY: the value exists and begins a vector of consecutive ones (WIDTH_FITS). The
                // creator promised that it is aligned and accessible as a whole.
                unsafe { C::Width::load(self.engine, index, |n, value| values.set(v + n, value)) };
            }
        });
    }

    /// Reads the values that lie inside the tensor, one vector after the other, and calls
    /// `f(v, value)` for each value.
    ///
    /// Registers hold one vector at a time, and what `f` keeps.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn for_each(&self, mut f: impl FnMut(usize, E::Element)) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(v) {
                let index = self.bound.index(v);
                // SAFETY: as in `load_into`.
                unsafe { C::Width::load(self.engine, index, |n, value| f(v + n, value)) };
            }
        });
    }

    /// Copies the values that lie inside both tensors, each to the value of the same index in `to`.
    ///
    /// ```
    /// use cutlet_layout_core::{ColMajor, L, RowMajor, Tensor, Tv};
    ///
    /// type Pair = Tv<L!(2:1@1), L!(2:1@0)>; // two threads, a column of two values each
    ///
    /// let (from, mut to) = ([1, 2, 3, 4], [0; 4]);
    /// // SAFETY: the extents and the leading dimensions stay inside the arrays.
    /// let (rows, columns) = unsafe {
    ///     let rows = Tensor::new(from.as_ptr(), RowMajor::new([2, 2], 2));
    ///     (rows, Tensor::new(to.as_mut_ptr(), ColMajor::new([2, 2], 2)))
    /// };
    /// for thread in 0..2u32 {
    ///     rows.partition::<Pair>(thread).copy_to(&columns.partition(thread));
    /// }
    /// assert_eq!(to, [1, 3, 2, 4]);
    /// ```
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn copy_to<F: EngineMut<Element = E::Element>, J: Inner>(&self, to: &Partition<F, J, C>) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        const { Partition::<F, J, C>::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(v) && to.bound.holds(v) {
                let (index, to_index) = (self.bound.index(v), to.bound.index(v));
                // SAFETY: as in `load_into`.
                unsafe { C::Width::copy(self.engine, index, to.engine, to_index) };
            }
        });
    }
}

impl<E: Engine, I: Inner, C: ThreadValue> Partition<E, I, C> {
    /// Calls `f(from, to, count)` for each access: where it begins in this partition and in `to`,
    /// and how many of its values exist in this one, which come first. For copies by instructions
    /// of their own, such as `cp.async`.
    ///
    /// ```
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// type Fours = Tv<L!(2:4@1), L!(4:1@1), 4>; // two threads, four consecutive values each
    ///
    /// let (from, mut to) = ([1, 2, 3, 4, 5, 6], [0; 8]);
    /// // SAFETY: the extents and the leading dimensions stay inside the arrays.
    /// let (from, to) = unsafe {
    ///     let from = Tensor::new(from.as_ptr(), RowMajor::new([1, 6], 6));
    ///     (from, Tensor::new(to.as_mut_ptr(), RowMajor::new([1, 8], 8)))
    /// };
    /// let mut counts = [0; 2];
    /// for thread in 0..2u32 {
    ///     let to = to.partition::<Fours>(thread);
    ///     let each = |_, _, count| counts[thread as usize] = count;
    ///     from.partition::<Fours>(thread).each_access(&to, each);
    /// }
    /// assert_eq!(counts, [4, 2]);
    /// ```
    #[inline(always)]
    pub fn each_access<F: Engine, J: Inner>(
        &self,
        to: &Partition<F, J, C>,
        mut f: impl FnMut(E, F, u32),
    ) {
        const { Self::WIDTH_FITS }
        const { Partition::<F, J, C>::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            let from = self.engine.offset(self.bound.index(v));
            let to = to.engine.offset(to.bound.index(v));
            f(from, to, self.bound.count(v, Self::WIDTH));
        });
    }

    /// [`each_access`](Self::each_access), with how many of its values exist in both partitions.
    #[inline(always)]
    pub fn each_access_in_both<F: Engine, J: Inner>(
        &self,
        to: &Partition<F, J, C>,
        mut f: impl FnMut(E, F, u32),
    ) {
        let mut v = 0;
        self.each_access(to, |from, to_engine, count| {
            let in_both = count.min(to.bound.count(v, Self::WIDTH));
            v += Self::WIDTH;
            f(from, to_engine, in_both);
        });
    }
}

impl<E: Engine, I: MatrixInner, C: ThreadValue> Partition<E, I, C> {
    /// The coordinate of value `v` in the matrix: (row, column). It may lie beyond the extents.
    ///
    /// It needs no memory access. So a mask depends on where a value lies, as the causal mask of attention does:
    ///
    /// ```
    /// use cutlet_layout_core::{Fragment, L, Tensor, Tv};
    ///
    /// type Tile = L!((4, 4):(1@0, 1@1)); // four queries, four keys
    /// type Rows = Tv<L!(4:1@0), L!(4:1@1)>; // a thread has a query
    ///
    /// let scores = Fragment::<f32, L!(4:1@1)>::filled(1.0);
    /// // The tile of queries 4 to 7 and keys 4 to 7, of 100 queries and 100 keys.
    /// let places = Tensor::identity([100, 100]).local_tile::<Tile>((1, 1)).partition::<Rows>(2);
    /// let masked = scores.map(|v, score| {
    ///     let [query, key] = places.coordinate(v);
    ///     if key <= query { score } else { f32::NEG_INFINITY }
    /// });
    /// assert_eq!(places.coordinate(3), [6, 7]);
    /// assert_eq!((masked.get(2), masked.get(3)), (1.0, f32::NEG_INFINITY));
    /// ```
    #[inline(always)]
    pub fn coordinate(&self, v: usize) -> Coord {
        let of_value = value_coordinate::<C::Val>(v);
        [self.origin[0] + of_value[0], self.origin[1] + of_value[1]]
    }
}

impl<E: Engine, X: Engine<Element: RowIndex>, C: ThreadValue> Partition<E, Gather<X>, C> {
    /// The thread's share of the tile that begins `columns` further on in the same rows, which is not negative. The
    /// indices of the rows are not read again, so that a loop over a row's tiles reads each index once.
    ///
    /// ```
    /// use cutlet_layout_core::{Gather, L, Tensor, Tv};
    ///
    /// type Row = Tv<L!(2:1@0), L!(2:1@1)>; // two threads, two neighbours of a row each
    ///
    /// let table = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]; // 2×5
    /// let indices = [1i32, 0];
    /// // SAFETY: there is an index for each row, and the rows that they name lie in the table.
    /// let rows = unsafe {
    ///     let inner = Gather::new(indices.as_ptr(), [2, 5], 2, 5);
    ///     Tensor::new(table.as_ptr(), inner)
    /// };
    /// let first = rows.local_tile::<L!((2, 2):(1@0, 1@1))>((0, 0)).partition::<Row>(0u32);
    /// let [second, third] = [2, 4].map(|columns| first.moved_along_rows(columns).load(-1));
    /// assert_eq!([second.get(0), second.get(1)], [7, 8]);
    /// assert_eq!([third.get(0), third.get(1)], [9, -1]); // the row ends
    /// ```
    #[inline(always)]
    pub fn moved_along_rows(&self, columns: i32) -> Self {
        debug_assert!(
            columns >= 0,
            "tiles of the same rows lie behind one another"
        );
        let [row, column] = self.origin;
        Self {
            engine: self.engine.offset(columns as i64),
            bound: self.bound.moved_along_rows(columns),
            origin: [row, column + columns],
            layout: PhantomData,
        }
    }
}

impl<E: EngineMut, I: Inner, C: ThreadValue> Partition<E, I, C> {
    /// Writes all values that lie inside the tensor.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn store<L: FragmentLayout>(&self, values: &Fragment<E::Element, L>) {
        const {
            assert!(
                L::SIZE == C::Val::SIZE,
                "a fragment is stored as a whole: give it as many values as the partition has"
            )
        }
        self.store_with(|v| values.get(v));
    }

    /// Writes the values that lie inside the tensor and for which `condition(v)` holds. It must be the same for all
    /// values of an access.
    ///
    /// ```
    /// use cutlet_layout_core::{Fragment, L, RowMajor, Tensor, Tv};
    ///
    /// type Column = Tv<L!(1:1@1), L!(3:1@0)>; // one thread, a column of three values
    ///
    /// let mut to = [0; 3];
    /// // SAFETY: the extents and the leading dimension stay inside the array.
    /// let matrix = unsafe { Tensor::new(to.as_mut_ptr(), RowMajor::new([3, 1], 1)) };
    /// let values = Fragment::<_, L!(3:1@0)>::from_fn(|v| 5 + v);
    /// matrix.partition::<Column>(0u32).store_if(&values, |v| v != 1);
    /// assert_eq!(to, [5, 0, 7]);
    /// ```
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn store_if(
        &self,
        values: &Fragment<E::Element, C::Val>,
        condition: impl Fn(usize) -> bool,
    ) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(v) && condition(v) {
                let index = self.bound.index(v);
                // SAFETY: as in `load_into`.
                unsafe { C::Width::store(self.engine, index, |n| values.get(v + n)) };
            }
        });
    }

    /// Writes `value(v)` to each value `v` that lies inside the tensor.
    ///
    /// ```
    /// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
    ///
    /// type Pair = Tv<L!(2:1@0), L!(2:1@1)>; // two threads, a row of two values each
    ///
    /// let mut to = [0; 3];
    /// // SAFETY: the extents and the leading dimension stay inside the array.
    /// let matrix = unsafe { Tensor::new(to.as_mut_ptr(), RowMajor::new([1, 2], 2)) };
    /// for thread in 0..2u32 {
    ///     matrix.partition::<Pair>(thread).store_with(|v| 5 + v);
    /// }
    /// assert_eq!(to, [5, 6, 0]); // the second thread's row is outside
    /// ```
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn store_with(&self, mut value: impl FnMut(usize) -> E::Element) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(v) {
                let index = self.bound.index(v);
                // SAFETY: as in `load_into`.
                unsafe { C::Width::store(self.engine, index, |n| value(v + n)) };
            }
        });
    }

    /// Replaces each value `v` that lies inside the tensor by `f(v, value)`.
    ///
    /// Registers hold one vector at a time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn update(&self, mut f: impl FnMut(usize, E::Element) -> E::Element) {
        on_behalf_of_caller!(self.engine);
        const { Self::WIDTH_FITS }
        each::<Accesses<C::Val, C::Width>>(|nth| {
            let v = nth * Self::WIDTH;
            if self.bound.holds(v) {
                let index = self.bound.index(v);
                // SAFETY: as in `load_into`.
                unsafe { C::Width::update(self.engine, index, |n, value| f(v + n, value)) };
            }
        });
    }
}
