//! Scales of rows and columns that are read one by one.

use cutlet_device::DeviceData;
use cutlet_layout_core::Coord;

use super::{Epilogue, OuterScales, Pair};

/// [`OuterScales`], where the scales of columns may be odd in number and begin anywhere. It is for tiles of few columns:
/// each scale takes a load.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(transparent)]
pub struct UnpairedOuterScales(OuterScales);

impl From<OuterScales> for UnpairedOuterScales {
    fn from(scales: OuterScales) -> Self {
        Self(scales)
    }
}

impl Epilogue for UnpairedOuterScales {
    type Acc = f32;
    type Row = f32;
    type Columns = [f32; 2];

    #[inline(always)]
    fn row(&self, row: i32) -> f32 {
        self.0.row(row)
    }

    #[inline(always)]
    fn columns(&self, first: i32) -> [f32; 2] {
        [self.0.column(first), self.0.column(first + 1)]
    }

    #[inline(always)]
    fn apply(&self, acc: f32, old: Option<f32>, at: Coord) -> f32 {
        self.0.apply(acc, old, at)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<f32, [f32; 2]>,
    ) {
        self.0.apply_pairs(accs, pair);
    }
}

#[cfg(test)]
mod tests {
    use cutlet_device::Global;

    use super::*;

    #[test]
    fn the_last_of_an_odd_number_of_scales_is_read_alone() {
        let (rows, columns) = ([0.5], [1.0, -2.0, 4.0]);
        let all = [rows.as_ptr(), columns.as_ptr()].map(Global::from_ptr);
        // SAFETY: the arrays outlive the calls and have the extents.
        let scales = unsafe { OuterScales::new(2.0, all, [1, 3], [false; 2]) };
        let scales = UnpairedOuterScales::from(scales);
        assert_eq!(scales.columns(0), [1.0, -2.0]);
        assert_eq!(scales.columns(2), [4.0; 2]);
        assert_eq!(scales.apply(10.0, None, [0, 2]), 40.0);
    }
}
