//! Owners: how threads share rows that they sum.

use cutlet_device::DeviceData;
use cutlet_kernels::gather::owners;
use cutlet_layout_core::tile_extent;

use super::access::alignment;
use crate::{Matrix, MatrixMut};

/// The shape of a block's tile of owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// 16-byte accesses, rows from 256 bytes.
    Long,
    /// 16-byte accesses, short rows.
    Short,
    /// Accesses of one number.
    Single,
}

impl Owners {
    /// The shape with the widest access that the alignment of all rows of both matrices allows.
    pub fn of<T: DeviceData>(from: &Matrix<'_, T>, to: &MatrixMut<'_, T>) -> Self {
        match (alignment(from, to), to.columns() * size_of::<T>()) {
            (16, 256..) => Owners::Long,
            (16, _) => Owners::Short,
            _ => Owners::Single,
        }
    }

    /// Blocks for this many owners of rows of `columns` elements.
    pub fn grid<T: DeviceData>(self, owners: usize, columns: usize) -> (u32, u32) {
        let [tile_owners, tile_columns] = self.tile::<T>();
        (
            owners.div_ceil(tile_owners) as u32,
            columns.div_ceil(tile_columns) as u32,
        )
    }

    /// Owners and columns of a block's tile.
    fn tile<T: DeviceData>(self) -> [usize; 2] {
        match (self, size_of::<T>()) {
            (Owners::Long, 2) => extent::<owners::Long8>(),
            (Owners::Long, _) => extent::<owners::Long4>(),
            (Owners::Short, 2) => extent::<owners::Short8>(),
            (Owners::Short, _) => extent::<owners::Short4>(),
            (Owners::Single, _) => extent::<owners::Single>(),
        }
    }
}

fn extent<S: owners::Owners>() -> [usize; 2] {
    tile_extent::<S::Tile>().map(|extent| extent as usize)
}
