//! Where rows are: the inner transform of a tensor whose rows begin where up to three modes say.

use cutlet_device::DeviceData;
use cutlet_layout_core::{
    Bound, Coord, Divide, Divisor, FragmentLayout, Inner, MatrixInner, RowMajor, StaticLayout,
    tile_extent,
};

/// The rows of an operation: how many there are, and in which modes.
///
/// Row `r` has the coordinate (`r / inner / middle`, `r / inner mod middle`, `r mod inner`).
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Space {
    /// Extent of the middle mode.
    pub middle: Divisor,
    /// Extent of the innermost mode.
    pub inner: Divisor,
    /// Rows.
    pub rows: i32,
    /// Elements of a row.
    pub columns: i32,
    /// Elements of the last row, which may have fewer.
    pub last_columns: i32,
    /// How many blocks further on the rows are that a block has the cache fetch; 0 for kernels that fetch none.
    pub ahead: u32,
}

/// Strides of an operand's rows: those of the outermost, the middle and the innermost mode.
pub type RowStrides = [i64; 3];

impl Space {
    /// The elements before a row.
    #[inline(always)]
    pub fn begin(&self, strides: RowStrides, row: i32) -> i64 {
        let (others, inner) = self.inner.div_rem(row as u32);
        let (outer, middle) = self.middle.div_rem(others);
        let [by_outer, by_middle, by_inner] = strides;
        i64::from(outer) * by_outer + i64::from(middle) * by_middle + i64::from(inner) * by_inner
    }

    /// The same rows with two elements for each.
    #[inline(always)]
    pub(super) fn with_pairs(self) -> Self {
        Self {
            columns: 2 * self.columns,
            last_columns: 2 * self.last_columns,
            ..self
        }
    }

    /// The rows of an operand with these strides.
    #[inline(always)]
    pub fn rows(self, strides: RowStrides) -> Rows {
        Rows {
            space: self,
            strides,
        }
    }
}

/// Rows of contiguous elements, which begin where three modes say. A thread's values are all of one row.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    space: Space,
    strides: RowStrides,
}

impl Rows {
    /// The rows as those of a matrix, all in the same place, where each has as many elements as this one.
    #[inline(always)]
    fn as_row(&self, row: i32) -> RowMajor {
        let Space {
            rows,
            columns,
            last_columns,
            ..
        } = self.space;
        let columns = match row + 1 == rows {
            true => last_columns,
            false => columns,
        };
        RowMajor::new([rows, columns], 0)
    }
}

impl Inner for Rows {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundRows<L>;

    const ORIGIN: Coord = RowMajor::ORIGIN;

    #[inline(always)]
    fn run_time_extent(&self) -> Option<Coord> {
        Some(self.extent())
    }

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        self.as_row(0).partition::<Thr, Val>(offset, thr)
    }

    #[inline(always)]
    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundRows<L> {
        const {
            assert!(
                tile_extent::<L>()[0] == 1,
                "the values of a thread are in several rows: lay them out along a row"
            )
        }
        BoundRows {
            in_row: self.as_row(offset[0]).bind::<L>(offset),
            // A row beyond the last one is not accessed, and may have any place.
            begin: self.space.begin(self.strides, offset[0]),
        }
    }
}

impl MatrixInner for Rows {
    #[inline(always)]
    fn extent(&self) -> Coord {
        [self.space.rows, self.space.columns]
    }
}

/// [`Rows`], bound to a thread's values.
#[derive(Clone, Copy)]
pub struct BoundRows<L: FragmentLayout> {
    in_row: <RowMajor as Inner>::Bound<L>,
    begin: i64,
}

impl<L: FragmentLayout> BoundRows<L> {
    /// Row and column of a value.
    #[inline(always)]
    pub fn coordinate(&self, v: usize) -> Coord {
        self.in_row.coordinate(v)
    }
}

impl<L: FragmentLayout> Bound for BoundRows<L> {
    const RUN: usize = <<RowMajor as Inner>::Bound<L> as Bound>::RUN;

    #[inline(always)]
    fn base(&self) -> i64 {
        self.begin + self.in_row.base()
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        self.in_row.index(v)
    }

    #[inline(always)]
    fn holds(&self, v: usize) -> bool {
        self.in_row.holds(v)
    }

    #[inline(always)]
    fn holds_along(&self, v: usize, direction: usize) -> bool {
        self.in_row.holds_along(v, direction)
    }

    #[inline(always)]
    fn count(&self, v: usize, width: usize) -> u32 {
        self.in_row.count(v, width)
    }
}
