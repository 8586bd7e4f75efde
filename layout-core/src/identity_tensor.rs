//! The tensor of a matrix's coordinates: it is tiled and partitioned as the data is, and has no memory.

use crate::{Coord, Engine, RowMajor, Tensor};

/// The engine of [`Tensor::identity`], whose elements are coordinates. It has no memory.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The index of element 0: its row above 32 bits for its column.
    first: i64,
}

/// Columns of which an index has room for the number.
const COLUMNS: i64 = 1 << 32;

impl Engine for Identity {
    type Element = Coord;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            first: self.first + index,
        }
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> Coord {
        let index = self.first + index;
        [(index >> 32) as i32, index as i32]
    }
}

impl Tensor<Identity, RowMajor> {
    /// The tensor of the coordinates of a matrix of `extent` = (rows, columns): element (m, n) is `[m, n]`. CuTe's
    /// `make_identity_tensor`.
    ///
    /// Partitioned as the data is, it says where the data's values lie. [`coordinate`](crate::Partition::coordinate) is
    /// the coordinate of a value. [`load`](crate::Partition::load) has all of them, and the filler for those outside.
    ///
    /// ```
    /// use cutlet_layout_core::{L, Tensor, Tv};
    ///
    /// type Tile = L!((2, 4):(1@0, 1@1));
    /// type Threads = Tv<L!(4:1@1), L!(2:1@0)>; // four threads, a column of two values each
    ///
    /// let mine = Tensor::identity([3, 8]).local_tile::<Tile>((1, 1)).partition::<Threads>(3);
    /// assert_eq!((mine.coordinate(0), mine.coordinate(1)), ([2, 7], [3, 7]));
    /// let values = mine.load([-1, -1]);
    /// assert_eq!((values.get(0), values.get(1)), ([2, 7], [-1, -1])); // there is no row 3
    /// ```
    ///
    /// # Panics
    /// If an extent is negative. A GPU does not check it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn identity(extent: Coord) -> Self {
        // SAFETY: the engine accesses no memory.
        unsafe { Tensor::new(Identity { first: 0 }, RowMajor::new(extent, COLUMNS)) }
    }
}
