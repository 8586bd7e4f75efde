//! Atoms: what the threads of one instruction hold, as layouts.
//!
//! An atom is data: layouts from (thread, value) to the elements of an instruction's operands.
//! [`MmaAtom`] and [`CopyAtom`] describe one instruction. [`MmaTiling`] and [`CopyTiling`] repeat it
//! over more threads and values, and partition layouts and tensors. An instruction with fixed
//! operands is also a type ([`Mma`]).
//!
//! [`TiledMma`](crate::TiledMma) and [`TiledCopy`](crate::TiledCopy) are the types of tiled
//! operations, which kernels use. The compiler computes their layouts by these values.

mod copy;
mod copy_tiling;
mod instructions;
mod mma;
mod mma_tiling;
mod wgmma;

pub use copy::CopyAtom;
pub use copy_tiling::CopyTiling;
pub use instructions::{
    Fma, M8N8K4Bits64, M16N8K8Bits16, M16N8K8Bits32, M16N8K8Bits64, M16N8K16Bits8, M16N8K16Bits16,
    M16N8K16Bits64, M16N8K32Bits8, Mma,
};
pub use mma::MmaAtom;
pub use mma_tiling::MmaTiling;
pub use wgmma::{WgmmaA8, WgmmaA16, WgmmaA32, WgmmaC};

use crate::Layout;

/// Whether a layout (thread, value) → element maps onto exactly `0 .. size`, to each element once.
/// Threads that share all their elements (stride 0) count as one.
pub(crate) const fn covers(layout: &Layout, size: i64) -> bool {
    let mut reached = 1;
    let mut used = 1;
    let mut grown = true;
    while grown {
        grown = false;
        let mut i = 0;
        while i < layout.num_leaves() {
            let extent = layout.leaf_shape(i).value();
            if extent > 1 && layout.leaf_stride(i).value() == reached {
                reached *= extent;
                grown = true;
                break;
            }
            i += 1;
        }
    }
    let mut i = 0;
    while i < layout.num_leaves() {
        if layout.leaf_stride(i).value() != 0 {
            used *= layout.leaf_shape(i).value();
        }
        i += 1;
    }
    reached == size && used == size
}
