//! f64 by the instruction of Ampere, with 8 rows, 8 columns and 4 k.

use cutlet_device::MmaInstruction;
use cutlet_device::sm80::{Mma884F64, WarpMma};
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_device::tiled::{ByElement, VectorsAlongK};
use cutlet_layout_core::{
    Fragment, L, Layout, M as Mode, Mma, StaticLayout, ThreadValue, Tv, Width, each,
};

use super::{IN_ORDER, SwizzledLines, TensorCore, atom};
use crate::gemm::multistage::arithmetic::{Arithmetic, Lines};
use crate::gemm::sm80::config::StageSwizzle;

/// Two instructions: 8 rows, 8 columns and 8 k. A thread has two neighbours along k, one for each instruction. So the k
/// of an instruction are every other one.
#[derive(Clone, Copy, Debug)]
pub struct Double;

/// The layouts of [`Double`].
#[derive(Clone, Copy, Debug)]
pub struct M8N8K8Bits64;

/// A, or B, of [`Double`].
pub type Operand = Tv<L!((4, 8):(2@1, 1@0)), L!(2:1@1)>;

impl Mma for M8N8K8Bits64 {
    type LayoutA = Operand;
    type LayoutB = Operand;
    type LayoutC = <Mma884F64 as Mma>::LayoutC;
    type RowsOfC = <Mma884F64 as Mma>::RowsOfC;
    type M = Mode<8, 1>;
    type N = Mode<8, 1>;
    type K = Mode<8, 1>;
    const NAME: &'static str = <Mma884F64 as Mma>::NAME;
}

atom! {
    Double: f64 => f64, [8, 8, 8] as M8N8K8Bits64, A [f64; 2], B [f64; 2], of elements by core::convert::identity
}

impl TensorCore for Double {
    type LinesOfMn = MnMajor;
}

impl Arithmetic for Double {
    type OperandA = [f64; 2];
    type OperandB = [f64; 2];
    type Parts = Mode<2, 1>;
    const ORDER_OF_K: Layout = <L!(8:1)>::LAYOUT;

    #[inline(always)]
    fn prepare_a(registers: [f64; 2]) -> [f64; 2] {
        registers
    }

    #[inline(always)]
    fn prepare_b(registers: [f64; 2]) -> [f64; 2] {
        registers
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add(part: usize, accumulators: &mut Fragment<f64, Self::Values>, a: [f64; 2], b: [f64; 2]) {
        match part {
            0 => Mma884F64::mma(accumulators, [a[0]], [b[0]]),
            _ => Mma884F64::mma(accumulators, [a[1]], [b[1]]),
        }
    }
}

/// The rows that are loaded at the same time are four apart, which the swizzle brings to different banks.
impl Lines<Double> for KMajor {
    type LoadA = VectorsAlongK<2>;
    type LoadB = VectorsAlongK<2>;
    const ORDER: [Layout; 2] = [<L!((2, 4, 2):(4, 1, 8))>::LAYOUT; 2];
    type Width = Width<1>;
}

impl SwizzledLines<Double> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
}

impl Lines<Double> for MnMajor {
    type LoadA = ByElement;
    type LoadB = ByElement;
    const ORDER: [Layout; 2] = IN_ORDER;
    type Width = Width<1>;
}

impl SwizzledLines<Double> for MnMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<f64, Self, MN, K>;
}
