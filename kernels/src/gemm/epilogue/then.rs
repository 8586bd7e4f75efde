//! One epilogue after another.

use cutlet_device::DeviceData;
use cutlet_device::collective::Group;
use cutlet_layout_core::Coord;

use super::{Epilogue, Pair};

/// `B` applied to the result of `A`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Then<A: Epilogue, B: Epilogue<Acc = A::Acc>> {
    /// Applied first.
    pub first: A,
    /// Applied second.
    pub second: B,
}

impl<A: Epilogue, B: Epilogue<Acc = A::Acc>> Epilogue for Then<A, B> {
    type Acc = A::Acc;
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
    fn of_group(self, group: Group, to_c: i64) -> Self {
        Self {
            first: self.first.of_group(group, to_c),
            second: self.second.of_group(group, to_c),
        }
    }

    #[inline(always)]
    fn apply(&self, acc: A::Acc, old: Option<A::Acc>, at: Coord) -> A::Acc {
        let value = self.first.apply(acc, old, at);
        self.second.apply(value, old, at)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[A::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<Self::Row, Self::Columns>,
    ) {
        self.first.apply_pairs(accs, |nth| {
            pair(nth).for_part(|row, columns| (row.0, columns.0))
        });
        self.second.apply_pairs(accs, |nth| {
            pair(nth).for_part(|row, columns| (row.1, columns.1))
        });
    }
}
