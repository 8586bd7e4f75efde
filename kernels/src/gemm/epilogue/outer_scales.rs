//! Scales of rows and columns.

use cutlet_device::collective::Group;
use cutlet_device::{DeviceData, Global};
use cutlet_layout_core::Coord;

use super::{Epilogue, Pair};

/// `x · alpha · of_rows[row] · of_columns[column]`: the product of A, whose rows have scales, and of B, whose columns
/// have scales.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OuterScales {
    of_rows: Global<f32>,
    of_columns: Global<f32>,
    /// Elements from the scales of one product of a batch, or of one group, to those of the next one.
    to_next: [i64; 2],
    /// The last row, and the last column, that has a scale of its own. 0 if all have the first one's.
    last: [i32; 2],
    alpha: f32,
    /// 0 if there are no scales.
    are_some: u32,
}

impl OuterScales {
    /// The factor alone.
    pub const fn one(alpha: f32) -> Self {
        let nowhere = Global::from_ptr(core::ptr::null());
        Self {
            of_rows: nowhere,
            of_columns: nowhere,
            to_next: [0; 2],
            last: [0; 2],
            alpha,
            are_some: 0,
        }
    }

    /// The scales of a C of `extent` = (rows, columns), which has elements, with a factor of all of them. `is_one` says of
    /// the rows and of the columns whether a single scale is that of all.
    ///
    /// # Safety
    /// The scales must exist while a kernel with the epilogue runs. Only earlier kernels may write them. (They may
    /// still run when this one begins.) If [`columns`](Epilogue::columns) is called and columns have scales of their
    /// own, their number must be even and the first one aligned to two. The same holds for each
    /// [product of several](Self::of_several).
    pub const unsafe fn new(
        alpha: f32,
        [of_rows, of_columns]: [Global<f32>; 2],
        [rows, columns]: Coord,
        is_one: [bool; 2],
    ) -> Self {
        Self {
            of_rows,
            of_columns,
            to_next: [0; 2],
            last: [
                if is_one[0] { 0 } else { rows - 1 },
                if is_one[1] { 0 } else { columns - 1 },
            ],
            alpha,
            are_some: 1,
        }
    }

    /// The scales of several products. Those of rows, and of columns, begin so many elements after those of the product
    /// before. Groups that lie in one A have the scales of its rows instead.
    pub const fn of_several(self, to_next: [i64; 2]) -> Self {
        Self { to_next, ..self }
    }

    /// The scale of a column, or the last one's beyond the last.
    #[inline(always)]
    pub(super) fn column(&self, column: i32) -> f32 {
        match self.are_some {
            0 => 1.0,
            _ => scale(self.of_columns, column.min(self.last[1])),
        }
    }
}

impl Epilogue for OuterScales {
    type Acc = f32;
    /// All factors but those of columns.
    type Row = f32;
    type Columns = [f32; 2];

    #[inline(always)]
    fn row(&self, row: i32) -> f32 {
        match self.are_some {
            0 => self.alpha,
            _ => self.alpha * scale(self.of_rows, row.min(self.last[0])),
        }
    }

    #[inline(always)]
    fn columns(&self, first: i32) -> [f32; 2] {
        if self.are_some == 0 {
            return [1.0; 2];
        }
        if self.last[1] == 0 {
            return [scale(self.of_columns, 0); 2];
        }
        // SAFETY: the number of scales is even, so that the second one exists too.
        unsafe {
            self.of_columns
                .load_vec(first.min(self.last[1] & !1).into())
        }
    }

    #[inline(always)]
    fn of_group(self, group: Group, _: i64) -> Self {
        let nth = i64::from(group.index);
        let [rows, columns] = self.to_next;
        let (last_row, first_row) = match self.last[0] {
            0 => (0, 0),
            _ => (group.rows - 1, i64::from(group.first_row)),
        };
        Self {
            of_rows: self.of_rows.offset(nth * rows + first_row),
            of_columns: self.of_columns.offset(nth * columns),
            last: [last_row, self.last[1]],
            ..self
        }
    }

    #[inline(always)]
    fn apply(&self, acc: f32, _: Option<f32>, [row, column]: Coord) -> f32 {
        acc * self.row(row) * self.column(column)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<f32, [f32; 2]>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let Pair { row, columns, .. } = pair(nth);
            *accs = [accs[0] * row * columns[0], accs[1] * row * columns[1]];
        }
    }
}

/// The scale number `index`.
#[inline(always)]
fn scale(scales: Global<f32>, index: i32) -> f32 {
    // SAFETY: the caller of `new` promised the scale. It may be written after this kernel began, so it must not be read
    // through the read-only cache.
    let [scale] = unsafe { scales.load_vec(index.into()) };
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scales of columns, aligned to pairs.
    #[repr(align(8))]
    struct Aligned([f32; 4]);

    #[test]
    fn pairs_and_single_values_have_the_same_scales() {
        let rows = [0.5, 3.0];
        let columns = Aligned([1.0, -2.0, 4.0, 0.25]);
        let all = [rows.as_ptr(), columns.0.as_ptr()].map(Global::from_ptr);
        for (is_one, expected) in [
            ([false, false], [3.0 * 4.0, 3.0 * 0.25]),
            ([true, false], [0.5 * 4.0, 0.5 * 0.25]),
            ([false, true], [3.0, 3.0]),
        ] {
            // SAFETY: the arrays outlive the calls and have the extents.
            let scales = unsafe { OuterScales::new(2.0, all, [2, 4], is_one) };
            let mut pairs = [[10.0, 100.0]];
            scales.apply_pairs(&mut pairs, |_| Pair {
                at: [1, 2],
                row: scales.row(1),
                columns: scales.columns(2),
            });
            let single = [
                scales.apply(10.0, None, [1, 2]),
                scales.apply(100.0, None, [1, 3]),
            ];
            assert_eq!(pairs[0], single);
            assert_eq!(single, [20.0 * expected[0], 200.0 * expected[1]]);
        }
    }

    #[test]
    fn a_group_has_scales_of_its_own() {
        let rows = [0.5, 3.0, 5.0];
        let columns = Aligned([1.0, -2.0, 4.0, 0.25]);
        let all = [rows.as_ptr(), columns.0.as_ptr()].map(Global::from_ptr);
        // Groups of one row and of two, in one A. Each has two columns.
        let group = Group {
            index: 1,
            first_row: 1,
            rows: 2,
        };
        // SAFETY: the arrays outlive the calls and have the extents of both groups.
        let scales = unsafe { OuterScales::new(2.0, all, [3, 2], [false; 2]) };
        let second = scales.of_several([0, 2]).of_group(group, 0);
        assert_eq!(second.apply(1.0, None, [1, 1]), 2.0 * 5.0 * 0.25);
        // Beyond the group's rows, the last one's is read.
        assert_eq!(second.row(2), 2.0 * 5.0);
        // A scale for each of the groups.
        // SAFETY: as above.
        let scales = unsafe { OuterScales::new(1.0, all, [3, 2], [true; 2]) };
        let second = scales.of_several([1, 3]).of_group(group, 0);
        assert_eq!(second.apply(1.0, None, [0, 0]), 3.0 * 0.25);
    }

    #[test]
    fn a_factor_needs_no_scales() {
        let factor = OuterScales::one(3.0);
        assert_eq!(factor.apply(5.0, None, [7, 9]), 15.0);
        assert_eq!((factor.row(7), factor.columns(8)), (3.0, [1.0; 2]));
    }
}
