//! Operations on each row of a tensor, which its last mode is.

mod map;
mod norm;
mod operand;
mod quantize;
mod reduce;
mod reduce_modes;
mod rope;
mod rope_append;
mod sample;
mod softmax;
mod space;
mod splits;

pub use map::{
    CastElement, MapElement, MapKernels, add, binary, binary_in_place, cast, map1, map2, map3, mul,
    unary, unary_in_place,
};
pub use norm::{Norm, NormElement, layer_norm, rms_norm};
pub use quantize::{Quantize, QuantizedElement};
pub use reduce::{ReducedElement, argmax, argmin, reduce};
pub use reduce_modes::reduce_modes;
pub use rope::{Pairing, Rope, RopeElement, RopeTable};
pub use rope_append::CacheElement;
pub use sample::{SampledElement, Sampling};
pub use softmax::{Softmax, SoftmaxElement, softmax};

use cutlet_kernels::rows::{Shape, Warp4, Warp8, WarpAny};
use cutlet_layout_core::tile_extent;

use crate::{Error, Result};
use space::RowSet;

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

/// Rows of a block whose warps have a row each.
const WARPS: usize = 8;

/// Elements of a row that a warp holds, if its accesses have this many elements, or if they are not aligned.
fn held_by_warp(width: usize, is_aligned: bool) -> usize {
    const fn tile<S: Shape>() -> usize {
        let [rows, columns] = tile_extent::<S::Tile>();
        assert!(
            rows as usize == WARPS,
            "the warps of a block have as many rows"
        );
        columns as usize
    }
    match (is_aligned, width) {
        (false, _) => const { tile::<WarpAny>() },
        (true, 4) => const { tile::<Warp4>() },
        (true, _) => const { tile::<Warp8>() },
    }
}

impl<K> ForRows<K> {
    /// The kernel for these rows of elements `T`, and its blocks. A warp has a row that it can hold.
    fn choose<T>(&self, rows: &RowSet) -> (&'static K, u32) {
        let [count, columns] = rows.extent();
        let held = held_by_warp(WIDEST / size_of::<T>(), rows.is_aligned);
        match (rows.is_aligned, columns <= held) {
            (true, true) => (self.warp, count.div_ceil(WARPS) as u32),
            (true, false) => (self.block, count as u32),
            (false, true) => (self.warp_any, count.div_ceil(WARPS) as u32),
            (false, false) => (self.block_any, count as u32),
        }
    }
}
