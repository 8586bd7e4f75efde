//! The strided inner transform: a matrix in memory with a leading dimension known at run time.

use super::{Bound, Bounds, Inner, MatrixInner, coordinate, run_along};
use crate::static_layout::evaluate;
use crate::{Coord, StaticLayout, tile_extent};
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
    type Bound<L: StaticLayout> = BoundStrided<C, L>;

    const ORIGIN: Coord = [0, 0];

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        // Refuses negative coordinates, which `Bounds` does not check.
        const { tile_extent::<(Thr, Val)>() };
        [
            offset[0] + evaluate::<Thr>(thr, 0),
            offset[1] + evaluate::<Thr>(thr, 1),
        ]
    }

    #[inline(always)]
    fn bind<L: StaticLayout>(&self, offset: Coord) -> BoundStrided<C, L> {
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
}
