//! The inner transform of a tensor: from coordinates to memory.
//!
//! Every tensor is `inner(offset + outer(c))`. Tiling and partitioning act on the static outer
//! layout and the offset only. The inner transform describes the memory: run-time strides, a
//! swizzle, an index table. The same partitioning code therefore serves all of them.
//!
//! An inner transform is *bound* once per thread. Binding sees the offset and the whole outer
//! layout, so it can fold the offset into a base and read each entry of a table once. The bound
//! transform maps value indices to element indices.

mod fixed;
mod gather;
mod strided;

pub use fixed::{Fixed, NoSwizzle, StaticSwizzle, Sw};
pub use gather::{BoundGather, Gather, RowIndex};
pub use strided::{AnyStrides, ColMajor, RowMajor, Strided};

use crate::entry::entry;
use crate::static_layout::{Coordinates, evaluate};
use crate::{Coord, FragmentLayout, StaticLayout, tile_extent};

/// A transform from coordinates to element indices of an [`Engine`](crate::Engine).
pub trait Inner: Copy {
    /// A tensor's beginning in the transform's domain.
    type Offset: Copy;
    /// The transform bound to an offset and the outer layout `L`.
    type Bound<L: FragmentLayout>: Bound;

    /// The beginning of the whole tensor.
    const ORIGIN: Self::Offset;

    /// The extents of the domain along up to four directions, if the compiler knows them.
    const EXTENTS: Option<[i64; 4]> = None;

    /// The extents of the whole domain, if they are known at run time only.
    #[inline(always)]
    fn run_time_extent(&self) -> Option<Coord> {
        None
    }

    /// `offset` moved to where thread `thr` of the thread layout `Thr` begins.
    fn partition<Thr: StaticLayout, Val: StaticLayout>(
        &self,
        offset: Self::Offset,
        thr: u32,
    ) -> Self::Offset;

    /// Binds the transform: computes everything that all values of `L` share.
    fn bind<L: FragmentLayout>(&self, offset: Self::Offset) -> Self::Bound<L>;
}

/// An [`Inner`] whose domain is a matrix with run-time extents, from which tiles are taken.
pub trait MatrixInner: Inner<Offset = Coord> {
    /// The extents of the matrix: (rows, columns).
    fn extent(&self) -> Coord;
}

/// An inner transform bound to its offset and outer layout: element indices by value index.
pub trait Bound: Copy {
    /// The widest vector access: the largest of 1, 2, 4, 8 and 16 such that each aligned group of
    /// so many values is consecutive in memory.
    const RUN: usize;

    /// The element index that all values share.
    fn base(&self) -> i64;

    /// The element index of value `v`, counted from [`base`](Self::base).
    fn index(&self, v: usize) -> i64;

    /// Whether value `v` exists: it lies inside the tensor's extents.
    fn holds(&self, v: usize) -> bool;

    /// Whether value `v` lies inside the tensor's extent along `direction`, 0 or 1, wherever it lies along the other
    /// one.
    fn holds_along(&self, v: usize, direction: usize) -> bool;

    /// How many of the `width` values from `v` on exist, if they are consecutive in memory. Those that exist come
    /// first.
    fn count(&self, v: usize, width: usize) -> u32;
}

/// The check that an offset plus a value's constant coordinate is inside the extents.
///
/// Only the upper ends are compared. Thread and value coordinates are those of a tile, so they are
/// not negative. The creator of the tensor promised that no tile begins at a negative coordinate.
#[derive(Clone, Copy)]
struct Bounds {
    /// The part of each extent beyond the offset; negative if the offset is outside.
    rest: Coord,
}

impl Bounds {
    #[inline(always)]
    fn new(extent: Coord, offset: Coord) -> Self {
        debug_assert!(
            offset[0] >= 0 && offset[1] >= 0,
            "a tile begins before its matrix: the tile's index times its extent must fit 31 bits"
        );
        let rest = [
            extent[0].wrapping_sub(offset[0]),
            extent[1].wrapping_sub(offset[1]),
        ];
        Self { rest }
    }

    /// The same check for an offset that is `columns` further on.
    #[inline(always)]
    fn moved_along_rows(&self, columns: i32) -> Self {
        let [rows, rest] = self.rest;
        Self {
            rest: [rows, rest.wrapping_sub(columns)],
        }
    }

    #[inline(always)]
    fn hold(&self, coord: Coord) -> bool {
        coord[0] < self.rest[0] && coord[1] < self.rest[1]
    }

    #[inline(always)]
    fn hold_along(&self, coord: Coord, direction: usize) -> bool {
        coord[direction] < self.rest[direction]
    }

    /// How many of `width` coordinates from `coord` on along `direction` are inside.
    #[inline(always)]
    fn count(&self, coord: Coord, direction: usize, width: usize) -> u32 {
        let inside = match coord[1 - direction] < self.rest[1 - direction] {
            true => self.rest[direction] - coord[direction],
            false => 0,
        };
        inside.clamp(0, width as i32) as u32
    }
}

/// A matrix coordinate moved to where thread `thr` of the thread layout `Thr` begins.
#[inline(always)]
fn thread_offset<Thr: StaticLayout, Val: StaticLayout>(offset: Coord, thr: u32) -> Coord {
    // Refuses negative coordinates, which `Bounds` does not check.
    const { tile_extent::<(Thr, Val)>() };
    [
        offset[0] + evaluate::<Thr>(thr, 0),
        offset[1] + evaluate::<Thr>(thr, 1),
    ]
}

/// The coordinate of value `v` of `L`.
#[inline(always)]
pub(crate) fn coordinate<L: StaticLayout>(v: usize) -> Coord {
    let [row, column, ..] = entry(const { &Coordinates::<L>::TABLE }, v);
    [*row, *column]
}

/// The longest aligned run of values of `L` that advances one step at a time in `direction`.
const fn run_along<L: StaticLayout>(direction: usize) -> usize {
    let table = &Coordinates::<L>::TABLE;
    let mut run = 16;
    while run > 1 {
        let mut fits = L::SIZE.is_multiple_of(run);
        let mut v = 0;
        while fits && v < L::SIZE && v < table.len() {
            let start = v / run * run;
            let step = (v - start) as i32;
            fits = table[v][direction] == table[start][direction] + step
                && table[v][1 - direction] == table[start][1 - direction];
            v += 1;
        }
        if fits {
            return run;
        }
        run /= 2;
    }
    1
}
