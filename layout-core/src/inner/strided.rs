//! The strided inner transform: a matrix in memory with a leading dimension known at run time.

use super::{Bound, Bounds, Inner, MatrixInner, coordinate, run_along, thread_offset};
use crate::{Coord, FragmentLayout, StaticLayout};
use core::marker::PhantomData;

/// A matrix that is contiguous along direction `C` (0: down a column, 1: along a row) and steps by
/// the leading dimension `ld`, in elements, along the other.
#[derive(Clone, Copy, Debug)]
pub struct Strided<const C: usize> {
    extent: Coord,
    ld: i64,
}

/// Rows are contiguous, `ld` elements apart.
pub type RowMajor = Strided<1>;
/// Columns are contiguous, `ld` elements apart.
pub type ColMajor = Strided<0>;

impl<const C: usize> Strided<C> {
    /// A matrix of `extent` = (rows, columns) with leading dimension `ld`.
    #[inline(always)]
    pub fn new(extent: Coord, ld: i64) -> Self {
        Self { extent, ld }
    }

    #[inline(always)]
    fn index(&self, coord: Coord) -> i64 {
        coord[C] as i64 + coord[1 - C] as i64 * self.ld
    }
}

impl<const C: usize> Inner for Strided<C> {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundStrided<C, L>;

    const ORIGIN: Coord = [0, 0];

    #[inline(always)]
    fn run_time_extent(&self) -> Option<Coord> {
        Some(self.extent)
    }

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        thread_offset::<Thr, Val>(offset, thr)
    }

    #[inline(always)]
    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundStrided<C, L> {
        BoundStrided {
            base: self.index(offset),
            ld: self.ld,
            origin: offset,
            bounds: Bounds::new(self.extent, offset),
            outer: PhantomData,
        }
    }
}

impl<const C: usize> MatrixInner for Strided<C> {
    #[inline(always)]
    fn extent(&self) -> Coord {
        self.extent
    }
}

/// [`Strided`], bound: the offset is folded into the base.
#[derive(Clone, Copy)]
pub struct BoundStrided<const C: usize, L> {
    base: i64,
    ld: i64,
    origin: Coord,
    bounds: Bounds,
    outer: PhantomData<L>,
}

impl<const C: usize, L: StaticLayout> BoundStrided<C, L> {
    /// The coordinate of value `v` in the matrix; it may lie beyond the extents.
    #[inline(always)]
    pub fn coordinate(&self, v: usize) -> Coord {
        let of_value = coordinate::<L>(v);
        [self.origin[0] + of_value[0], self.origin[1] + of_value[1]]
    }
}

impl<const C: usize, L: StaticLayout> Bound for BoundStrided<C, L> {
    const RUN: usize = run_along::<L>(C);

    #[inline(always)]
    fn base(&self) -> i64 {
        self.base
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        let coord = coordinate::<L>(v);
        coord[C] as i64 + coord[1 - C] as i64 * self.ld
    }

    #[inline(always)]
    fn holds(&self, v: usize) -> bool {
        self.bounds.hold(coordinate::<L>(v))
    }

    #[inline(always)]
    fn holds_along(&self, v: usize, direction: usize) -> bool {
        self.bounds.hold_along(coordinate::<L>(v), direction)
    }

    #[inline(always)]
    fn count(&self, v: usize, width: usize) -> u32 {
        self.bounds.count(coordinate::<L>(v), C, width)
    }
}

/// A matrix whose strides along rows and along columns are both known at run time only. No two
/// elements are known to be consecutive.
#[derive(Clone, Copy, Debug)]
pub struct AnyStrides {
    extent: Coord,
    strides: [i64; 2],
}

impl AnyStrides {
    /// A matrix of `extent` = (rows, columns). The next row is `strides[0]` elements away, the next
    /// column `strides[1]`.
    ///
    /// ```
    /// use cutlet_layout_core::{AnyStrides, L, Tensor, Tv};
    ///
    /// let memory = [0, 1, 2, 3, 4, 5];
    /// // SAFETY: the extents and the strides stay inside the array.
    /// let every_other = unsafe { Tensor::new(memory.as_ptr(), AnyStrides::new([1, 3], [6, 2])) };
    /// let row = every_other.partition::<Tv<L!(1:1@0), L!(4:1@1)>>(0).load(-1);
    /// assert_eq!([row.get(0), row.get(1), row.get(2), row.get(3)], [0, 2, 4, -1]);
    /// ```
    #[inline(always)]
    pub fn new(extent: Coord, strides: [i64; 2]) -> Self {
        Self { extent, strides }
    }

    #[inline(always)]
    fn index(&self, coord: Coord) -> i64 {
        coord[0] as i64 * self.strides[0] + coord[1] as i64 * self.strides[1]
    }
}

impl Inner for AnyStrides {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundAnyStrides<L>;

    const ORIGIN: Coord = [0, 0];

    #[inline(always)]
    fn run_time_extent(&self) -> Option<Coord> {
        Some(self.extent)
    }

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        thread_offset::<Thr, Val>(offset, thr)
    }

    #[inline(always)]
    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundAnyStrides<L> {
        BoundAnyStrides {
            base: self.index(offset),
            strides: self.strides,
            origin: offset,
            bounds: Bounds::new(self.extent, offset),
            outer: PhantomData,
        }
    }
}

impl MatrixInner for AnyStrides {
    #[inline(always)]
    fn extent(&self) -> Coord {
        self.extent
    }
}

/// [`AnyStrides`], bound: the offset is folded into the base.
#[derive(Clone, Copy)]
pub struct BoundAnyStrides<L> {
    base: i64,
    strides: [i64; 2],
    origin: Coord,
    bounds: Bounds,
    outer: PhantomData<L>,
}

impl<L: StaticLayout> BoundAnyStrides<L> {
    /// The coordinate of value `v` in the matrix; it may lie beyond the extents.
    #[inline(always)]
    pub fn coordinate(&self, v: usize) -> Coord {
        let of_value = coordinate::<L>(v);
        [self.origin[0] + of_value[0], self.origin[1] + of_value[1]]
    }
}

impl<L: StaticLayout> Bound for BoundAnyStrides<L> {
    const RUN: usize = 1;

    #[inline(always)]
    fn base(&self) -> i64 {
        self.base
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        let [row, column] = coordinate::<L>(v);
        row as i64 * self.strides[0] + column as i64 * self.strides[1]
    }

    #[inline(always)]
    fn holds(&self, v: usize) -> bool {
        self.bounds.hold(coordinate::<L>(v))
    }

    #[inline(always)]
    fn holds_along(&self, v: usize, direction: usize) -> bool {
        self.bounds.hold_along(coordinate::<L>(v), direction)
    }

    #[inline(always)]
    fn count(&self, v: usize, _: usize) -> u32 {
        self.holds(v) as u32
    }
}
