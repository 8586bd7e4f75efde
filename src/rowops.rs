//! Operations on each row of a tensor, which its last mode is.

mod norm;
mod operand;
mod softmax;
mod space;

pub use norm::{Norm, NormElement, layer_norm, rms_norm};
pub use softmax::{Softmax, SoftmaxElement, softmax};

use crate::{Error, Result};

/// Bytes of the widest access.
const WIDEST: usize = 16;

fn refuse<R>(operation: &'static str, found: String) -> Result<R> {
    Err(Error::Extents { operation, found })
}

/// The kernels of an operation for an element type.
#[derive(Debug)]
pub struct ForRows<K: 'static> {
    /// A warp has a row, whose vectors are aligned.
    warp: &'static K,
    /// A block has a row, whose vectors are aligned.
    block: &'static K,
    /// A warp has a row of any alignment.
    warp_any: &'static K,
    /// A block has a row of any alignment.
    block_any: &'static K,
}

impl<K> ForRows<K> {
    /// The kernel for these rows of elements `T`, and its blocks. A warp has a row that it can hold.
    fn choose<T>(&self, rows: &space::RowSet) -> (&'static K, u32) {
        use cutlet_kernels::rows::{Shape, Warp4, Warp8, WarpAny};
        use cutlet_layout_core::{StaticLayout, tile_extent};

        const fn tile<S: Shape>() -> [usize; 2] {
            let [rows, columns] = tile_extent::<S::Tile>();
            assert!(<S::Tile as StaticLayout>::SIZE > 0);
            [rows as usize, columns as usize]
        }
        let aligned = rows.is_aligned;
        let [of_block, held] = match (aligned, size_of::<T>()) {
            (false, _) => const { tile::<WarpAny>() },
            (true, 4) => const { tile::<Warp4>() },
            (true, _) => const { tile::<Warp8>() },
        };
        let [count, columns] = rows.extent();
        match (aligned, columns <= held) {
            (true, true) => (self.warp, count.div_ceil(of_block) as u32),
            (true, false) => (self.block, count as u32),
            (false, true) => (self.warp_any, count.div_ceil(of_block) as u32),
            (false, false) => (self.block_any, count as u32),
        }
    }
}
