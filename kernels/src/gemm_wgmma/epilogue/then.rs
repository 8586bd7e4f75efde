//! One epilogue after another.

use cutlet_device::DeviceData;
use cutlet_layout_core::Coord;

use super::{Epilogue, Pair};

/// What `A` makes of a sum is what `B` takes for one.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Then<A: Epilogue, B: Epilogue> {
    /// What is applied first.
    pub first: A,
    /// What is applied to what comes out.
    pub second: B,
}

impl<A: Epilogue, B: Epilogue> Epilogue for Then<A, B> {
    type Row = (A::Row, B::Row);
    type Columns = (A::Columns, B::Columns);

    #[inline(always)]
    fn row(&self, row: i32) -> Self::Row {
        (self.first.row(row), self.second.row(row))
    }

    #[inline(always)]
    fn columns(&self, first: i32) -> Self::Columns {
        (self.first.columns(first), self.second.columns(first))
    }

    #[inline(always)]
    fn reads_old(&self) -> bool {
        self.first.reads_old() || self.second.reads_old()
    }

    #[inline(always)]
    fn is_identity(&self) -> bool {
        self.first.is_identity() && self.second.is_identity()
    }

    #[inline(always)]
    fn apply(&self, sum: f32, old: Option<f32>, at: Coord) -> f32 {
        let value = self.first.apply(sum, old, at);
        self.second.apply(value, old, at)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        sums: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<Self::Row, Self::Columns>,
    ) {
        self.first.apply_pairs(sums, |nth| {
            pair(nth).for_part(|row, columns| (row.0, columns.0))
        });
        self.second.apply_pairs(sums, |nth| {
            pair(nth).for_part(|row, columns| (row.1, columns.1))
        });
    }
}
