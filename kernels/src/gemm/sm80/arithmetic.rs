//! How a warp loads and multiplies blocks: by which instructions, and in which order of k, rows and columns.
//!
//! | type | A and B | C | instruction |
//! |---|---|---|---|
//! | [`Mma16816`] | `bf16`, `f16` | `f32` | `mma.m16n8k16` |
//! | [`Mma1688Tf32`](cutlet_device::sm80::Mma1688Tf32) | `f32`, rounded to tf32 | `f32` | `mma.m16n8k8` |
//! | [`Tf32x3`] | `f32`, each the sum of two tf32 | `f32` | three `mma.m16n8k8` |
//! | [`Mma16832`] | `i8` | `i32` | `mma.m16n8k32` |
//! | [`Mma884F64`](cutlet_device::sm80::Mma884F64) | `f64` | `f64` | `mma.m8n8k4` |
//! | [`Mma1688F64`](cutlet_device::sm80::Mma1688F64) | `f64` | `f64` | `mma.m16n8k8`, of Hopper and later |
//!
//! A block's rows and columns are in an order of their own, which the [`Lines`] of A and B choose so that their loads
//! are free of bank conflicts.

use core::marker::PhantomData;

use cutlet_device::sm80::{Mma16816, Mma16832, WarpMma};
use cutlet_device::tile::{KMajor, Major, MnMajor};
use cutlet_device::{DeviceData, MmaInstruction, Shared, ldmatrix, ldmatrix_transposed};
use cutlet_layout_core::{
    AccessWidth, Fragment, FragmentLayout, L, Layout, M as Mode, Mma, StaticLayout, StaticSwizzle,
    ThreadValue, Width, each,
};
use half::{bf16, f16};

use super::config::StageSwizzle;
use crate::gemm::epilogue::Accumulator;
use crate::gemm::multistage::staging::{GlobalMajor, StagedElement};

mod double;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
mod double_sm90;
mod tf32;

pub use tf32::Tf32x3;

/// How a warp multiplies: a *load* brings some rows of A, or columns of B, in one step along k. A load of each gives a
/// *block* of products.
pub trait Arithmetic: Copy + 'static {
    /// The elements of A and B.
    type Element: StagedElement;
    /// The accumulators.
    type Acc: Accumulator;
    /// What a thread gets by a load.
    type Loaded: Copy;
    /// A load's elements as the instructions take them.
    type Operand: Copy;
    /// How stages keep an operand of which rows, or columns, are consecutive in global memory.
    type LinesOfMn: GlobalMajor;

    /// The k of a step.
    const STEP: usize;
    /// The rows of a load of A, and the columns of one of B.
    const BLOCK: usize;
    /// A thread's accumulators of a block.
    type Accumulators: FragmentLayout;
    /// Thread-value layout of a block of C, over the rows and columns of its instructions.
    type C: ThreadValue;
    /// The parts of a product. Each waits for the one before it.
    type Parts: StaticLayout;
    /// Whether the products of a step are added on their own first, and their sums then to the accumulators.
    const ADDS_STEPS: bool;

    /// Makes operands of what was loaded.
    fn prepare(loaded: Self::Loaded) -> Self::Operand;

    /// Adds a part of the product of two loads to the accumulators of their block.
    fn add(
        part: usize,
        accumulators: &mut Fragment<Self::Acc, Self::Accumulators>,
        a: Self::Operand,
        b: Self::Operand,
    );
}

/// The direction of a stage's lines, along which [`Arithmetic`] `I` can load.
pub trait Lines<I: Arithmetic>: Major {
    /// The swizzle of a stage with these extents. With it, loads are free of bank conflicts.
    type Swizzle<const MN: usize, const K: usize>: StaticSwizzle;
    /// The (mn, k) of a lane's first vector in a load of A (0) and of B (1).
    const LANES: [Layout; 2];
    /// The (mn, k) of each of a lane's vectors, from its first one.
    type Vectors: StaticLayout;
    /// Bytes of a vector.
    const VECTOR_BYTES: usize;
    /// The row of a block (0), or the column (1), that each row or column of the instructions is.
    const ORDER: [Layout; 2];
    /// Neighbours in a row of C among a thread's accumulators, if B has these lines.
    type Width: AccessWidth;

    /// Loads for A (`SIDE` 0) or B (1). `vector` tells where each of the lane's vectors is. All lanes of the warp call
    /// it.
    ///
    /// # Safety
    /// The elements were written, and no thread writes them.
    unsafe fn load<const SIDE: usize>(vector: impl Fn(usize) -> Shared<I::Element>) -> I::Loaded;
}

/// Rows and columns of 16×16 blocks in the order of memory.
const IN_ORDER: [Layout; 2] = [<L!(16:1@0)>::LAYOUT, <L!(16:1@1)>::LAYOUT];

/// Arithmetic that loads by `ldmatrix`, four matrices at a time.
trait ByMatrices: Arithmetic<Loaded = [u32; 4]> {}

impl<I: ByMatrices> Lines<I> for KMajor {
    type Swizzle<const MN: usize, const K: usize> = StageSwizzle<I::Element, Self, MN, K>;
    /// Two matrices below one another, and two along k. The registers of A go through rows first, those of B through k.
    const LANES: [Layout; 2] = {
        let unit = (16 / size_of::<I::Element>()) as i64;
        let row = Layout::static_basis_mode(8, 1, 0);
        let rows = Layout::static_basis_mode(2, 8, 0);
        let k = Layout::static_basis_mode(2, unit, 1);
        [
            Layout::concat(&[row, rows, k]),
            Layout::concat(&[row, k, rows]),
        ]
    };
    type Vectors = Mode<1, 0>;
    const VECTOR_BYTES: usize = 16;
    const ORDER: [Layout; 2] = IN_ORDER;
    type Width = Width<2>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(vector: impl Fn(usize) -> Shared<I::Element>) -> [u32; 4] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { ldmatrix(vector(0)) }
    }
}

impl<T> Lines<Mma16816<T>> for MnMajor
where
    Mma16816<T>: Arithmetic<Element: DeviceData, Loaded = [u32; 4]>,
{
    type Swizzle<const MN: usize, const K: usize> =
        StageSwizzle<<Mma16816<T> as Arithmetic>::Element, Self, MN, K>;
    /// As of [`KMajor`], but a matrix has a row for each k.
    const LANES: [Layout; 2] = [
        <L!((8, 2, 2):(1@1, 8@0, 8@1))>::LAYOUT,
        <L!((8, 2, 2):(1@1, 8@1, 8@0))>::LAYOUT,
    ];
    type Vectors = Mode<1, 0>;
    const VECTOR_BYTES: usize = 16;
    const ORDER: [Layout; 2] = IN_ORDER;
    type Width = Width<2>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(
        vector: impl Fn(usize) -> Shared<<Mma16816<T> as Arithmetic>::Element>,
    ) -> [u32; 4] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { ldmatrix_transposed(vector(0)) }
    }
}

/// Arithmetic by instructions with 16 rows, 8 columns and 8 k, whose registers hold one element each.
pub trait ByElements: Arithmetic<Element: DeviceData, Loaded = [Self::Register; 4]> {
    /// A register.
    type Register: Copy;
    /// The swizzle of stages with a line for each k.
    type SwizzleOfMn<const MN: usize, const K: usize>: StaticSwizzle;
    /// The two k of a lane with number `t` of four, from 0 on: `t` times the first, and the second more.
    const K: [i64; 2];

    /// A register with an element.
    fn register(element: Self::Element) -> Self::Register;
}

/// The registers of A (`SIDE` 0) or B (1), of elements `[mn][k]`: those of A go through rows first, those of B through
/// k.
#[inline(always)]
fn in_registers<I: ByElements, const SIDE: usize>(
    [[a, b], [c, d]]: [[I::Element; 2]; 2],
) -> [I::Register; 4] {
    match SIDE {
        0 => [a, c, b, d].map(I::register),
        _ => [a, b, c, d].map(I::register),
    }
}

/// A lane reads two rows, or columns, that are neighbours, at two k. An instruction has the first one of all lanes, and
/// the second one of all lanes: they are its two halves of rows, or two instructions' columns.
impl<I: ByElements> Lines<I> for MnMajor {
    type Swizzle<const MN: usize, const K: usize> = I::SwizzleOfMn<MN, K>;
    const LANES: [Layout; 2] = [Layout::concat(&[
        Layout::static_basis_mode(4, I::K[0], 1),
        Layout::static_basis_mode(8, 2, 0),
    ]); 2];
    type Vectors = SecondK<I>;
    const VECTOR_BYTES: usize = 2 * size_of::<I::Element>();
    const ORDER: [Layout; 2] = [
        <L!((8, 2):(2@0, 1@0))>::LAYOUT,
        <L!((8, 2):(2@1, 1@1))>::LAYOUT,
    ];
    type Width = Width<1>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const SIDE: usize>(
        vector: impl Fn(usize) -> Shared<I::Element>,
    ) -> [I::Register; 4] {
        // SAFETY: as promised by the caller. Swizzles keep the bytes of a vector together.
        let [[a, c], [b, d]] = unsafe { [vector(0).load_vec(0), vector(1).load_vec(0)] };
        in_registers::<I, SIDE>([[a, b], [c, d]])
    }
}

/// A lane's two k.
#[derive(Clone, Copy, Debug)]
pub struct SecondK<I>(PhantomData<I>);

impl<I: ByElements> StaticLayout for SecondK<I> {
    const LAYOUT: Layout = Layout::static_basis_mode(2, I::K[1], 1);
}

impl<I: ByElements> FragmentLayout for SecondK<I> {
    type Storage = [(); 2];
}

/// A thread-value layout of a block of C.
#[derive(Clone, Copy, Debug)]
pub struct BlockOfC<Thr, Val>(PhantomData<(Thr, Val)>);

impl<Thr: StaticLayout, Val: FragmentLayout> ThreadValue for BlockOfC<Thr, Val> {
    type Thr = Thr;
    type Val = Val;
    type Width = Width<1>;
}

/// The threads of an instruction over its rows and columns of C.
type ThreadsOfC<I> = <<I as Mma>::LayoutC as ThreadValue>::Thr;
/// A thread's accumulators of an instruction.
type ValuesOfC<I> = <I as MmaInstruction>::Values;

/// A block's 16 rows of A and 16 columns of B, by two instructions with 8 columns each.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn add_halves<I: WarpMma<FragmentA = [R; 4], FragmentB = [R; 2]>, R>(
    accumulators: &mut Fragment<I::Acc, (I::Values, Mode<2, 8>)>,
    a: [R; 4],
    [b0, b1, b2, b3]: [R; 4],
) where
    R: Copy,
{
    add_half::<I, R>(accumulators, 0, a, [b0, b1]);
    add_half::<I, R>(accumulators, I::Values::SIZE, a, [b2, b3]);
}

/// The half of a block whose accumulators start with `first`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn add_half<I: WarpMma<FragmentA = [R; 4], FragmentB = [R; 2]>, R: Copy>(
    accumulators: &mut Fragment<I::Acc, (I::Values, Mode<2, 8>)>,
    first: usize,
    a: [R; 4],
    b: [R; 2],
) {
    let mut half = Fragment::from_fn(|v| accumulators.get(first + v));
    I::mma(&mut half, a, b);
    each::<I::Values>(|v| accumulators.set(first + v, half.get(v)));
}

/// [`Arithmetic`] by instructions with 16 rows and 8 columns: their elements, registers and accumulators, the lines of
/// MN-major operands, the k of a step, and how they are multiplied.
macro_rules! by_halves {
    ($($arithmetic:ty: $instruction:ty, $element:ty as $register:ty => $acc:ty, $lines:ident, step $step:literal,
        $operand:ty, $parts:literal, steps apart $adds_steps:literal,
        prepare $prepare:expr, add ($part:ident, $acc_name:ident, $a:ident, $b:ident) $add:expr;)+) => {$(
        impl Arithmetic for $arithmetic {
            type Element = $element;
            type Acc = $acc;
            type Loaded = [$register; 4];
            type Operand = $operand;
            type LinesOfMn = $lines;
            const STEP: usize = $step;
            const BLOCK: usize = 16;
            type Accumulators = (ValuesOfC<$instruction>, Mode<2, 8>);
            type C = BlockOfC<ThreadsOfC<$instruction>, (ValuesOfC<$instruction>, L!(2:8@1))>;
            type Parts = Mode<$parts, 1>;
            const ADDS_STEPS: bool = $adds_steps;

            #[inline(always)]
            fn prepare(loaded: [$register; 4]) -> $operand {
                $prepare(loaded)
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn add(
                $part: usize,
                $acc_name: &mut Fragment<$acc, Self::Accumulators>,
                $a: $operand,
                $b: $operand,
            ) {
                $add
            }
        }
    )+};
}
use by_halves;
by_halves! {
    Mma16816<bf16>: Self, bf16 as u32 => f32, MnMajor, step 16, [u32; 4], 1, steps apart false,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self, _>(sums, a, b);
    Mma16816<f16>: Self, f16 as u32 => f32, MnMajor, step 16, [u32; 4], 1, steps apart false,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self, _>(sums, a, b);
    Mma16832<i8>: Self, i8 as u32 => i32, KMajor, step 32, [u32; 4], 1, steps apart false,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self, _>(sums, a, b);
}

impl ByMatrices for Mma16816<bf16> {}
impl ByMatrices for Mma16816<f16> {}
impl ByMatrices for Mma16832<i8> {}

macro_rules! by_elements {
    ($($arithmetic:ty: $register:ty, swizzle $swizzle:ident, k $k:expr, $as_register:expr;)+) => {$(
        impl ByElements for $arithmetic {
            type Register = $register;
            type SwizzleOfMn<const MN: usize, const K: usize> = $swizzle<<Self as Arithmetic>::Element, MnMajor, MN, K>;
            const K: [i64; 2] = $k;

            #[inline(always)]
            fn register(element: <Self as Arithmetic>::Element) -> $register {
                $as_register(element)
            }
        }
    )+};
}
use by_elements;

#[inline(always)]
fn as_loaded<R>(loaded: [R; 4]) -> [R; 4] {
    loaded
}
