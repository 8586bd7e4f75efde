//! A fragment's values by row and column.

use core::marker::PhantomData;

use super::{Fragment, FragmentLayout};
use crate::entry::entry;
use crate::{Layout, StaticLayout};

/// The values of a layout that steps along rows and along columns, by row and column.
struct Grid<L>(PhantomData<L>);

impl<L: StaticLayout> Grid<L> {
    const EXTENT: [usize; 2] = {
        let mut extent = [1; 2];
        let mut n = 0;
        while n < L::LAYOUT.num_leaves() {
            extent[direction(&L::LAYOUT, n)] *= L::LAYOUT.leaf_shape(n).value() as usize;
            n += 1;
        }
        assert!(
            extent[0] * extent[1] <= 256,
            "a fragment has more than 256 values, too many for registers: use a smaller one"
        );
        extent
    };

    /// The row and the column of value `v`.
    const PLACES: [[u8; 2]; 256] = {
        let mut places = [[0; 2]; 256];
        let mut v = 0;
        while v < L::SIZE {
            places[v] = place::<L>(v);
            v += 1;
        }
        places
    };

    /// The value at row `m` and column `n`: entry `m + n · rows`.
    const VALUES: [u8; 256] = {
        let mut values = [0; 256];
        let mut v = 0;
        while v < L::SIZE {
            let [m, n] = Self::PLACES[v];
            values[m as usize + n as usize * Self::EXTENT[0]] = v as u8;
            v += 1;
        }
        values
    };

    #[inline(always)]
    fn value(m: usize, n: usize) -> usize {
        let [rows, columns] = const { Self::EXTENT };
        assert!(m < rows && n < columns);
        *entry(const { &Self::VALUES }, m + n * rows) as usize
    }
}

/// The row and the column of value `v`: its coordinates in the leaves that step along each.
const fn place<L: StaticLayout>(v: usize) -> [u8; 2] {
    let (mut place, mut scale) = ([0; 2], [1; 2]);
    let (mut rest, mut n) = (v, 0);
    while n < L::LAYOUT.num_leaves() {
        let shape = L::LAYOUT.leaf_shape(n).value() as usize;
        let along = direction(&L::LAYOUT, n);
        place[along] += rest % shape * scale[along];
        scale[along] *= shape;
        rest /= shape;
        n += 1;
    }
    [place[0] as u8, place[1] as u8]
}

/// Whether a leaf counts rows (0) or columns (1).
const fn direction(layout: &Layout, leaf: usize) -> usize {
    if !layout.has_basis() && layout.rank() == 2 {
        return (leaf >= layout.mode(0).num_leaves()) as usize;
    }
    let stride = layout.leaf_stride(leaf);
    assert!(
        stride.component(2) == 0 && stride.component(3) == 0,
        "a fragment is read by row and column, and its layout steps in another direction: use strides along @0 and @1"
    );
    (stride.component(1) != 0) as usize
}

/// A thread's values by row and column.
///
/// `m` counts the rows in which the thread has values, and `n` their columns, each from 0 in the order of the layout.
/// So loops over rows and columns need not know how an instruction arranges its accumulators:
///
/// ```
/// use cutlet_layout_core::{Fragment, L};
///
/// // Accumulators of `mma.sync`: columns 0, 1, 8, 9, 16, 17, 24 and 25 of rows 0 and 8.
/// type Scores = Fragment<f32, L!((2, 2, 4):(1@1, 8@0, 8@1))>;
///
/// let scores = Scores::from_fn(|v| v as f32);
/// assert_eq!((Scores::ROWS, Scores::COLUMNS), (2, 8));
/// assert_eq!(scores.at(1, 2), 6.0); // row 8, column 8
///
/// let largest: [f32; 2] = core::array::from_fn(|m| {
///     (0..Scores::COLUMNS).fold(f32::MIN, |largest, n| largest.max(scores.at(m, n)))
/// });
/// assert_eq!(largest, [13.0, 15.0]);
/// let shifted = scores.map(|v, score| score - largest[Scores::place(v)[0]]);
/// assert_eq!(shifted.get(0), -13.0);
/// ```
///
/// In a layout of plain strides with two modes, the first one counts rows, and the second one columns:
///
/// ```
/// use cutlet_layout_core::{Fragment, L};
///
/// let mut tile = Fragment::<i32, L!((4, 2):(1, 4))>::filled(0);
/// tile.set_at(3, 1, 5);
/// assert_eq!(tile.get(7), 5);
/// ```
impl<T: Copy, L: FragmentLayout> Fragment<T, L> {
    /// Rows in which the thread has values.
    pub const ROWS: usize = Grid::<L>::EXTENT[0];

    /// Columns in which the thread has values.
    pub const COLUMNS: usize = Grid::<L>::EXTENT[1];

    /// The value at row `m` and column `n`.
    ///
    /// # Panics
    /// If there is no such row or column; with constants the check costs nothing.
    #[inline(always)]
    pub fn at(&self, m: usize, n: usize) -> T {
        self.get(Grid::<L>::value(m, n))
    }

    /// Sets the value at row `m` and column `n`.
    ///
    /// # Panics
    /// As [`at`](Self::at).
    #[inline(always)]
    pub fn set_at(&mut self, m: usize, n: usize, value: T) {
        self.set(Grid::<L>::value(m, n), value);
    }

    /// The row and the column of value `v`, as [`at`](Self::at) counts them.
    ///
    /// # Panics
    /// If `v` is not below `L::SIZE`; with a constant `v` the check costs nothing.
    #[inline(always)]
    pub fn place(v: usize) -> [usize; 2] {
        assert!(v < L::SIZE);
        let [m, n] = *entry(const { &Grid::<L>::PLACES }, v);
        [m as usize, n as usize]
    }
}
