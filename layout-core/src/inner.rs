//! The inner transform of a tensor: from coordinates to memory.
//!
//! Every tensor is `inner(offset + outer(c))`. Tiling and partitioning act on the static outer
//! layout and on the offset alone; what memory looks like (run-time strides, a swizzle, an index
//! table) is the inner transform's business, so one piece of partitioning code serves them all.
//!
//! An inner transform is *bound* once per thread: it sees the offset and all of the outer layout,
//! does what can be done ahead (folds the offset into a base, reads each index of a table once),
//! and then answers by value index.

mod fixed;
mod gather;
mod strided;

pub use fixed::{Fixed, NoSwizzle, StaticSwizzle, Sw};
pub use gather::{Gather, RowIndex};
pub use strided::{ColMajor, RowMajor, Strided};

use crate::entry::entry;
use crate::static_layout::Coordinates;
use crate::{Coord, StaticLayout};

/// A transform from coordinates to element indices of an [`Engine`](crate::Engine).
pub trait Inner: Copy {
    /// Where in this inner's domain a tensor begins.
    type Offset: Copy;
    /// The transform, once the offset and the outer layout `L` are known.
    type Bound<L: StaticLayout>: Bound;

    /// The beginning of the whole tensor.
    const ORIGIN: Self::Offset;

    /// `offset` moved to where thread `thr` of the thread layout `Thr` begins.
    fn partition<Thr: StaticLayout, Val: StaticLayout>(
        &self,
        offset: Self::Offset,
        thr: u32,
    ) -> Self::Offset;

    /// Does everything that is the same for all values of `L`.
    fn bind<L: StaticLayout>(&self, offset: Self::Offset) -> Self::Bound<L>;
}

/// An [`Inner`] whose domain is a matrix with run-time extents, from which tiles are taken.
pub trait MatrixInner: Inner<Offset = Coord> {
    /// The extents of the matrix: (rows, columns).
    fn extent(&self) -> Coord;
}

/// An inner transform that knows its offset and outer layout: memory by value index.
pub trait Bound: Copy {
    /// The longest run `1, 2, 4, …, 16` such that each aligned group of that many values is
    /// consecutive in memory: what a vector access may cover.
    const RUN: usize;

    /// The element index that all values share.
    fn base(&self) -> i64;

    /// The element index of value `v`, counted from [`base`](Self::base).
    fn index(&self, v: usize) -> i64;

    /// Whether value `v` exists: it lies inside the tensor's extents.
    fn holds(&self, v: usize) -> bool;
}

/// Whether a run-time coordinate plus a value's constant one stays inside the extents.
///
/// Only the upper ends are compared: thread and value coordinates are those of a tile, so they are
/// not negative, and neither is where the tile begins, as the creator of the tensor promised.
#[derive(Clone, Copy)]
struct Bounds {
    /// How much of each extent lies beyond the offset; negative where the offset is outside.
    rest: Coord,
}

impl Bounds {
    #[inline(always)]
    fn new(extent: Coord, offset: Coord) -> Self {
        debug_assert!(
            offset[0] >= 0 && offset[1] >= 0,
            "a tile begins before its matrix: the tile's index, times its extent, is beyond 31 bits"
        );
        let rest = [
            extent[0].wrapping_sub(offset[0]),
            extent[1].wrapping_sub(offset[1]),
        ];
        Self { rest }
    }

    #[inline(always)]
    fn hold(&self, coord: Coord) -> bool {
        coord[0] < self.rest[0] && coord[1] < self.rest[1]
    }
}

/// The coordinate of value `v` of `L`.
#[inline(always)]
fn coordinate<L: StaticLayout>(v: usize) -> Coord {
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
