//! Vectors that are longer than the coordinates of a tensor count.

use crate::{Engine, RowMajor, StaticLayout, Tensor, TileIndex, tile_extent};

/// A vector of any length, also of more elements than the coordinates of a [`Tensor`] count, which are below 2³¹.
///
/// Its tiles are tensors of one row. Their coordinates begin at 0, so they stay small. The place of a tile in memory has
/// 64 bits.
///
/// ```
/// use cutlet_layout_core::{L, LongVector, Tv};
///
/// type Tile = L!((1, 8):(1@0, 1@1));
/// type Threads = Tv<L!(4:1@1), L!(2:4@1)>; // four threads, two values each, 4 apart
///
/// let memory: [i32; 19] = core::array::from_fn(|i| i as i32);
/// // SAFETY: the array has 19 elements.
/// let vector = unsafe { LongVector::new(memory.as_ptr(), 19) };
/// assert_eq!(vector.tiles::<Tile>(), 3);
/// let last = vector.local_tile::<Tile>(2u32).partition::<Threads>(1u32).load(-1);
/// assert_eq!([last.get(0), last.get(1)], [17, -1]); // the vector ends at element 19
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LongVector<E> {
    engine: E,
    len: i64,
}

impl<E: Engine> LongVector<E> {
    /// A vector of `len` elements over `engine`.
    ///
    /// # Safety
    /// As for [`Tensor::new`], with a matrix of one row of so many columns. `len` is not negative.
    #[inline(always)]
    pub const unsafe fn new(engine: E, len: i64) -> Self {
        LongVector { engine, len }
    }

    /// The tile number `tile`, in units of `T`'s columns. `T` has one row.
    ///
    /// The last tile may reach beyond the vector. Elements outside load as the given filler and are not stored.
    ///
    /// ```compile_fail,E0080
    /// use cutlet_layout_core::{L, LongVector};
    ///
    /// let memory = [1, 2, 3, 4];
    /// // SAFETY: the array has 4 elements.
    /// let vector = unsafe { LongVector::new(memory.as_ptr(), 4) };
    /// vector.local_tile::<L!((2, 2):(1@0, 1@1))>(0u32); // two rows
    /// ```
    #[inline(always)]
    pub fn local_tile<T: StaticLayout>(&self, tile: impl TileIndex) -> Tensor<E, RowMajor, T> {
        let columns = const { columns_of::<T>() };
        let begin = i64::from(tile.index()) * columns;
        // At most the tile's columns, so that they fit.
        let left = (self.len - begin).clamp(0, columns) as i32;
        let engine = self.engine.offset(begin);
        // SAFETY: the caller of `new` promises these elements.
        let row = unsafe { Tensor::new(engine, RowMajor::new([1, left], 0)) };
        row.local_tile::<T>((0u32, 0u32))
    }

    /// The number of tiles of `T`'s columns that cover the vector.
    #[inline(always)]
    pub fn tiles<T: StaticLayout>(&self) -> u32 {
        let columns = const { columns_of::<T>() };
        (self.len as u64).div_ceil(columns as u64) as u32
    }
}

/// The columns of a tile, which has one row.
const fn columns_of<T: StaticLayout>() -> i64 {
    let [rows, columns] = tile_extent::<T>();
    assert!(
        rows == 1,
        "a tile of a vector has more than one row: lay it out along columns (@1) alone, as L!((1, 1024):(1@0, 1@1))"
    );
    columns as i64
}
