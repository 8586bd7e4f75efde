//! f64 by an instruction of Hopper with 16 rows, 8 columns and 8 k. Hopper runs it at twice the rate of Ampere's.

use cutlet_device::sm80::{Mma1688F64, WarpMma};
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_device::tiled::VectorsAlongK;
use cutlet_layout_core::{Fragment, L, Layout, M as Mode, StaticLayout, Width};

use super::{ByPairs, SwizzledLines, TensorCore, one_instruction};
use crate::gemm::multistage::arithmetic::{Arithmetic, Lines};
use crate::gemm::sm80::config::StageSwizzle;

one_instruction! {
    // A thread has two neighbours along k.
    Mma1688F64, lines of mn MnMajor, order of k L!((4, 2):(2, 1));
}

impl ByPairs for Mma1688F64 {
    type SwizzleOfMn<const MN: usize, const K: usize> = StageSwizzle<f64, MnMajor, MN, K>;
}

/// The rows that are loaded at the same time are four apart, which the swizzle brings to different banks.
impl Lines<Mma1688F64> for KMajor {
    type LoadA = VectorsAlongK<2>;
    type LoadB = VectorsAlongK<2>;
    const ORDER: [Layout; 2] = [<L!((2, 4, 2):(4, 1, 8))>::LAYOUT; 2];
    type Width = Width<1>;
}

impl SwizzledLines<Mma1688F64> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
}
