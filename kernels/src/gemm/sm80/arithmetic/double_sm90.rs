//! f64 by an instruction of Hopper with 16 rows, 8 columns and 8 k. Hopper runs it at twice the rate of Ampere's.

use cutlet_device::Shared;
use cutlet_device::sm80::Mma1688F64;
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_layout_core::{Fragment, L, Layout, M as Mode, StaticLayout, Width};

use super::{
    Arithmetic, BlockOfC, ByElements, Lines, ThreadsOfC, ValuesOfC, add_halves, as_loaded,
    by_elements, by_halves, in_registers,
};
use crate::gemm::sm80::config::StageSwizzle;

by_halves! {
    Mma1688F64: Self, f64 as f64 => f64, MnMajor, step 8, [f64; 4], 1, steps apart false,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self, _>(sums, a, b);
}
by_elements! {
    // The k of K-major lines, of which a lane reads two neighbours.
    Mma1688F64: f64, swizzle StageSwizzle, k [2, 1], core::convert::identity;
}

/// A lane reads two neighbours along k of two rows, or columns. The rows that are loaded at the same time are four
/// apart, which the swizzle brings to different banks.
impl Lines<Mma1688F64> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
    const LANES: [Layout; 2] = [<L!((4, 2, 4):(2@1, 4@0, 1@0))>::LAYOUT; 2];
    type Vectors = L!(2:8@0);
    const VECTOR_BYTES: usize = 16;
    const ORDER: [Layout; 2] = [
        <L!((2, 4, 2):(4@0, 1@0, 8@0))>::LAYOUT,
        <L!((2, 4, 2):(4@1, 1@1, 8@1))>::LAYOUT,
    ];
    type Width = Width<1>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(vector: impl Fn(usize) -> Shared<f64>) -> [f64; 4] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        let loaded = unsafe { [vector(0).load_vec(0), vector(1).load_vec(0)] };
        in_registers::<Mma1688F64, SIDE>(loaded)
    }
}
