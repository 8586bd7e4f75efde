//! The gather inner transform: a table of indices maps each row to a row of a source.

use super::{Bound, Bounds, Inner, MatrixInner, coordinate, run_along, thread_offset};
use crate::static_layout::Coordinates;
use crate::{Coord, Engine, Fragment, FragmentLayout, StaticLayout};
use core::marker::PhantomData;

/// An integer type that indexes rows.
pub trait RowIndex: Copy {
    /// The index as a 64-bit integer, sign kept.
    fn to_i64(self) -> i64;
}

impl RowIndex for i32 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self as i64
    }
}

impl RowIndex for i64 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self
    }
}

/// A matrix whose row `r` is row `table[r]` of a row-major source.
///
/// Reading through it gathers; writing through it scatters. Rows whose index is not in
/// `0 .. source_rows` do not exist: they are neither read nor written. [`clamped`](Self::clamped) gives them the
/// nearest row.
#[derive(Clone, Copy, Debug)]
pub struct Gather<X> {
    table: X,
    extent: Coord,
    source_rows: i64,
    ld: i64,
    clamps: bool,
}

impl<X: Engine<Element: RowIndex>> Gather<X> {
    /// A matrix of `extent` = (rows, columns): row `r` is row `table[r]` of a source with
    /// `source_rows` rows that are `ld` elements apart.
    ///
    /// # Safety
    /// The first `extent[0]` entries of `table` must be readable.
    #[inline(always)]
    pub unsafe fn new(table: X, extent: Coord, source_rows: i64, ld: i64) -> Self {
        Self {
            table,
            extent,
            source_rows,
            ld,
            clamps: false,
        }
    }

    /// The same matrix, in which an index outside of `0 .. source_rows` stands for the nearest row of the source if
    /// `clamps` is true. It is a value, so that a kernel can decide at run time.
    #[inline(always)]
    pub fn clamped(self, clamps: bool) -> Self {
        Self { clamps, ..self }
    }

    /// The row of the source that entry `r` of the table names, or one outside of it if `inside` is false.
    ///
    /// # Safety
    /// If `inside` is true, the entry must be readable.
    #[inline(always)]
    unsafe fn row(&self, r: i64, inside: bool) -> i64 {
        // SAFETY: as promised by the caller.
        let index = unsafe { self.table.load_if(r, inside) }.map_or(-1, RowIndex::to_i64);
        match self.clamps {
            true => index.max(0).min(self.source_rows - 1),
            false => index,
        }
    }
}

impl<X: Engine<Element: RowIndex>> Inner for Gather<X> {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundGather<L>;

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
    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundGather<L> {
        let bounds = Bounds::new(self.extent, offset);
        let mut rows = Fragment::<Row, L>::filled(Row {
            start: 0,
            exists: false,
        });
        crate::each::<L>(|v| {
            let first = const { &FirstOfRow::<L>::TABLE }[v] as usize;
            let row = if first < v {
                rows.get(first)
            } else {
                let r = coordinate::<L>(v)[0];
                // SAFETY: if the row lies inside the extents, its entry is readable: the creator of this transform
                // promised so.
                let index = unsafe { self.row(offset[0] as i64 + r as i64, r < bounds.rest[0]) };
                Row {
                    // May wrap for an index outside the source; such a row is never accessed.
                    start: index.wrapping_mul(self.ld).wrapping_add(offset[1] as i64),
                    exists: index >= 0 && index < self.source_rows,
                }
            };
            rows.set(v, row);
        });
        BoundGather {
            rows,
            bounds,
            origin: offset,
        }
    }
}

impl<X: Engine<Element: RowIndex>> MatrixInner for Gather<X> {
    #[inline(always)]
    fn extent(&self) -> Coord {
        self.extent
    }
}

/// The beginning of a value's row in the source, and whether the table names an existing row.
#[derive(Clone, Copy)]
struct Row {
    start: i64,
    exists: bool,
}

/// [`Gather`], bound: each distinct row's index has been read once.
#[derive(Clone, Copy)]
pub struct BoundGather<L: FragmentLayout> {
    rows: Fragment<Row, L>,
    bounds: Bounds,
    origin: Coord,
}

impl<L: FragmentLayout> BoundGather<L> {
    /// The coordinate of value `v` in the gathered matrix; it may lie beyond the extents.
    #[inline(always)]
    pub fn coordinate(&self, v: usize) -> Coord {
        let of_value = coordinate::<L>(v);
        [self.origin[0] + of_value[0], self.origin[1] + of_value[1]]
    }

    /// The same values `columns` further on, for an engine that is moved as far.
    #[inline(always)]
    pub(crate) fn moved_along_rows(&self, columns: i32) -> Self {
        let [row, column] = self.origin;
        Self {
            bounds: self.bounds.moved_along_rows(columns),
            origin: [row, column + columns],
            ..*self
        }
    }

    /// Calls `f(r)` for each row `r` of the values that lies inside the extents, but whose table entry names no row of
    /// the source.
    #[inline(always)]
    pub fn each_missing_row(&self, mut f: impl FnMut(i64)) {
        crate::each::<L>(|v| {
            let coord = coordinate::<L>(v);
            let reads_index = const { &FirstOfRow::<L>::TABLE }[v] as usize == v;
            if reads_index && self.bounds.hold(coord) && !self.rows.get(v).exists {
                f(self.origin[0] as i64 + coord[0] as i64);
            }
        });
    }
}

impl<L: FragmentLayout> Bound for BoundGather<L> {
    const RUN: usize = run_along::<L>(1);

    #[inline(always)]
    fn base(&self) -> i64 {
        0
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        self.rows.get(v).start + coordinate::<L>(v)[1] as i64
    }

    #[inline(always)]
    fn holds(&self, v: usize) -> bool {
        self.rows.get(v).exists && self.bounds.hold(coordinate::<L>(v))
    }

    #[inline(always)]
    fn holds_along(&self, v: usize, direction: usize) -> bool {
        (direction != 0 || self.rows.get(v).exists)
            && self.bounds.hold_along(coordinate::<L>(v), direction)
    }

    #[inline(always)]
    fn count(&self, v: usize, width: usize) -> u32 {
        match self.rows.get(v).exists {
            true => self.bounds.count(coordinate::<L>(v), 1, width),
            false => 0,
        }
    }
}

/// For each value of `L`, the first value in the same row: the one that reads the row's index.
struct FirstOfRow<L>(PhantomData<L>);

impl<L: StaticLayout> FirstOfRow<L> {
    const TABLE: [u8; 256] = {
        let coords = &Coordinates::<L>::TABLE;
        let mut table = [0; 256];
        let mut v = 0;
        while v < 256 && v < L::SIZE {
            let mut first = 0;
            while coords[first][0] != coords[v][0] {
                first += 1;
            }
            table[v] = first as u8;
            v += 1;
        }
        table
    };
}
