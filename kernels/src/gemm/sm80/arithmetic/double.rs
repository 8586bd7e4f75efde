//! f64 by the instruction of Ampere, with 8 rows, 8 columns and 4 k.

use cutlet_device::Shared;
use cutlet_device::sm80::{Mma884F64, WarpMma};
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_layout_core::{Fragment, L, Layout, M as Mode, StaticLayout, Width, each};

use super::{Arithmetic, BlockOfC, Lines};
use crate::gemm::sm80::config::StageSwizzle;

/// A load has 8 rows and 8 k. A thread reads two neighbours along k, and the instruction of part `n` multiplies
/// neighbour `n` of each. So its four k are every other one.
impl Arithmetic for Mma884F64 {
    type Element = f64;
    type Acc = f64;
    type Loaded = [f64; 2];
    type Operand = [f64; 2];
    type LinesOfMn = MnMajor;
    const STEP: usize = 8;
    const BLOCK: usize = 8;
    type Accumulators = Mode<2, 1>;
    type C = BlockOfC<L!((4, 8):(2@1, 1@0)), L!(2:1@1)>;
    type Parts = Mode<2, 1>;
    const ADDS_STEPS: bool = false;

    #[inline(always)]
    fn prepare(loaded: [f64; 2]) -> [f64; 2] {
        loaded
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add(part: usize, accumulators: &mut Fragment<f64, Mode<2, 1>>, a: [f64; 2], b: [f64; 2]) {
        let mut sums = Fragment::from_fn(|v| accumulators.get(v));
        match part {
            0 => Mma884F64::mma(&mut sums, [a[0]], [b[0]]),
            _ => Mma884F64::mma(&mut sums, [a[1]], [b[1]]),
        }
        each::<Mode<2, 1>>(|v| accumulators.set(v, sums.get(v)));
    }
}

/// The rows that are loaded at the same time are four apart, which the swizzle brings to different banks.
impl Lines<Mma884F64> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
    const LANES: [Layout; 2] = [<L!((4, 2, 4):(2@1, 4@0, 1@0))>::LAYOUT; 2];
    type Vectors = Mode<1, 0>;
    const VECTOR_BYTES: usize = 16;
    const ORDER: [Layout; 2] = [
        <L!((2, 4):(4@0, 1@0))>::LAYOUT,
        <L!((2, 4):(4@1, 1@1))>::LAYOUT,
    ];
    type Width = Width<1>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(vector: impl Fn(usize) -> Shared<f64>) -> [f64; 2] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { vector(0).load_vec(0) }
    }
}

impl Lines<Mma884F64> for MnMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
    const LANES: [Layout; 2] = [<L!((4, 8):(2@1, 1@0))>::LAYOUT; 2];
    type Vectors = L!(2:1@1);
    const VECTOR_BYTES: usize = 8;
    const ORDER: [Layout; 2] = [<L!(8:1@0)>::LAYOUT, <L!(8:1@1)>::LAYOUT];
    type Width = Width<1>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(vector: impl Fn(usize) -> Shared<f64>) -> [f64; 2] {
        // SAFETY: as promised by the caller.
        unsafe { [vector(0).load(0), vector(1).load(0)] }
    }
}
