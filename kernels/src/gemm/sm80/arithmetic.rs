//! The atoms of the family.
//!
//! | type | A and B | C | instruction |
//! |---|---|---|---|
//! | [`Mma16816`] | `bf16`, `f16` | `f32` | `mma.m16n8k16` |
//! | [`Tf32`] | `f32`, rounded to tf32 | `f32` | `mma.m16n8k8` |
//! | [`Tf32x3`] | `f32`, each the sum of two tf32 | `f32` | three `mma.m16n8k8` |
//! | [`Mma16832`] | `i8` | `i32` | `mma.m16n8k32` |
//! | [`Double`] | `f64` | `f64` | two `mma.m8n8k4` |
//! | [`Mma1688F64`](cutlet_device::sm80::Mma1688F64) | `f64` | `f64` | `mma.m16n8k8`, of Hopper and later |
//!
//! A warp has blocks of 16 rows and 16 columns. Their order, and the loads, are chosen so that loads are free of bank
//! conflicts.

use cutlet_device::sm80::{Mma16816, Mma16832, WarpMma};
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_device::tiled::{LdMatrix, LdMatrixTransposed, VectorsAlongMn};
use cutlet_layout_core::{Fragment, L, Layout, M as Mode, Mma, StaticLayout, StaticSwizzle, Width};
use half::{bf16, f16};

use super::config::StageSwizzle;
use crate::gemm::multistage::arithmetic::{Arithmetic, ElementOf, Lines};
use crate::gemm::multistage::staging::GlobalMajor;

mod double;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod double_sm90;
mod tf32;

pub use double::Double;
pub use tf32::{Tf32, Tf32x3};

/// An arithmetic of the family.
pub trait TensorCore: Arithmetic {
    /// How stages keep an operand of which rows, or columns, are consecutive in global memory.
    type LinesOfMn: GlobalMajor;
}

/// The lines of a stage, with a swizzle that spreads the loads of the arithmetic `I` over all banks.
pub trait SwizzledLines<I: Arithmetic>: Lines<I> {
    /// The swizzle of a stage with these extents.
    type Swizzle<const MN: usize, const K: usize>: StaticSwizzle;
}

/// Rows and columns of blocks in the order of memory.
const IN_ORDER: [Layout; 2] = [<L!(16:1)>::LAYOUT; 2];
/// Pairs of neighbours: one of them is in the first half of a block, and the other one in the second half. A thread has
/// both.
const IN_PAIRS: [Layout; 2] = [<L!((8, 2):(2, 1))>::LAYOUT; 2];

/// Arithmetic that loads K-major operands by `ldmatrix`.
trait ByMatrices: Arithmetic<FragmentA = [u32; 4], FragmentB: From<[u32; 2]>> + Mma {}

impl<I: ByMatrices> Lines<I> for KMajor {
    type LoadA = LdMatrix;
    type LoadB = LdMatrix;
    const ORDER: [Layout; 2] = IN_ORDER;
    type Width = Width<2>;
}

impl<I: ByMatrices> SwizzledLines<I> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<ElementOf<I>, Self, MN, K>;
}

impl<T> Lines<Mma16816<T>> for MnMajor
where
    Mma16816<T>: Arithmetic<FragmentA = [u32; 4], FragmentB = [u32; 2]>,
{
    type LoadA = LdMatrixTransposed;
    type LoadB = LdMatrixTransposed;
    const ORDER: [Layout; 2] = IN_ORDER;
    type Width = Width<2>;
}

impl<T> SwizzledLines<Mma16816<T>> for MnMajor
where
    Mma16816<T>: Arithmetic<FragmentA = [u32; 4], FragmentB = [u32; 2]>,
{
    type Swizzle<const MN: usize, const K: usize> =
        StageSwizzle<ElementOf<Mma16816<T>>, Self, MN, K>;
}

/// Arithmetic whose registers hold one element each, and which loads MN-major operands in pairs of neighbours.
pub trait ByPairs: Arithmetic {
    /// The swizzle of stages with a line for each k.
    type SwizzleOfMn<const MN: usize, const K: usize>: StaticSwizzle;
}

impl<I: ByPairs> Lines<I> for MnMajor {
    type LoadA = VectorsAlongMn<2>;
    type LoadB = VectorsAlongMn<2>;
    const ORDER: [Layout; 2] = IN_PAIRS;
    type Width = Width<1>;
}

impl<I: ByPairs> SwizzledLines<I> for MnMajor {
    type Swizzle<const MN: usize, const K: usize> = I::SwizzleOfMn<MN, K>;
}

/// [`Arithmetic`] by one instruction whose operands are what was loaded.
macro_rules! one_instruction {
    ($($atom:ty, lines of mn $lines:ident, order of k $k:ty;)+) => {$(
        impl TensorCore for $atom {
            type LinesOfMn = $lines;
        }

        impl Arithmetic for $atom {
            type OperandA = Self::FragmentA;
            type OperandB = Self::FragmentB;
            type Parts = Mode<1, 1>;
            const ORDER_OF_K: Layout = <$k>::LAYOUT;

            #[inline(always)]
            fn prepare_a(registers: Self::FragmentA) -> Self::FragmentA {
                registers
            }

            #[inline(always)]
            fn prepare_b(registers: Self::FragmentB) -> Self::FragmentB {
                registers
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn add(
                _part: usize,
                accumulators: &mut Fragment<Self::Acc, Self::Values>,
                a: Self::FragmentA,
                b: Self::FragmentB,
            ) {
                Self::mma(accumulators, a, b);
            }
        }
    )+};
}
use one_instruction;
one_instruction! {
    Mma16816<bf16>, lines of mn MnMajor, order of k L!(16:1);
    Mma16816<f16>, lines of mn MnMajor, order of k L!(16:1);
    Mma16832<i8>, lines of mn KMajor, order of k L!(32:1);
}

impl ByMatrices for Mma16816<bf16> {}
impl ByMatrices for Mma16816<f16> {}
impl ByMatrices for Mma16832<i8> {}

/// An atom of this package: its elements and accumulators, M, N and K, the instruction whose layouts it has, and the
/// registers of A and of B, which has two, of one element each.
macro_rules! atom {
    ($atom:ident: $element:ty => $acc:ty, [$m:literal, $n:literal, $k:literal] as $layouts:ty,
        A $a:ty, B $b:ty, of elements by $as_register:expr) => {
        impl MmaInstruction for $atom {
            type A = $element;
            type B = $element;
            type Acc = $acc;
            const M: usize = $m;
            const N: usize = $n;
            const K: usize = $k;
            type Values = <<$layouts as Mma>::LayoutC as ThreadValue>::Val;
        }

        impl Mma for $atom {
            type LayoutA = <$layouts as Mma>::LayoutA;
            type LayoutB = <$layouts as Mma>::LayoutB;
            type LayoutC = <$layouts as Mma>::LayoutC;
            type RowsOfC = <$layouts as Mma>::RowsOfC;
            type M = <$layouts as Mma>::M;
            type N = <$layouts as Mma>::N;
            type K = <$layouts as Mma>::K;
            const NAME: &'static str = <$layouts as Mma>::NAME;
        }

        impl WarpMma for $atom {
            type FragmentA = $a;
            type FragmentB = $b;

            #[inline(always)]
            fn registers_a(element: impl Fn(usize) -> $element) -> $a {
                core::array::from_fn(|v| $as_register(element(v)))
            }

            #[inline(always)]
            fn registers_b(element: impl Fn(usize) -> $element) -> $b {
                [0, 1].map(|v| $as_register(element(v))).into()
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn mma(accumulators: &mut Fragment<$acc, Self::Values>, a: $a, b: $b) {
                let (a, b) = (Self::prepare_a(a), Self::prepare_b(b));
                each::<<Self as Arithmetic>::Parts>(|part| Self::add(part, accumulators, a, b));
            }
        }
    };
}
use atom;
