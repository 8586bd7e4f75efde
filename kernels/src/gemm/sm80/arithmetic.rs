//! How a warp loads and multiplies blocks: by which instructions, and in which order of k, rows and columns.
//!
//! | type | A and B | C | instruction |
//! |---|---|---|---|
//! | [`Mma16816`] | `bf16`, `f16` | `f32` | `mma.m16n8k16` |
//! | [`Mma1688Tf32`] | `f32`, rounded to tf32 | `f32` | `mma.m16n8k8` |
//! | [`Tf32x3`] | `f32`, each the sum of two tf32 | `f32` | three `mma.m16n8k8` |
//! | [`Mma16832`] | `i8` | `i32` | `mma.m16n8k32` |
//! | [`Mma884F64`] | `f64` | `f64` | `mma.m8n8k4` |

use cutlet_device::sm80::{
    Mma884F64, Mma1688Tf32, Mma16816, Mma16832, WarpMma, ldmatrix, ldmatrix_transposed,
};
use cutlet_device::sm90::{KMajor, Major, MnMajor};
use cutlet_device::{DeviceData, MmaInstruction, Shared};
use cutlet_layout_core::{
    AccessWidth, Engine, Fragment, L, Layout, M as Mode, Mma, StaticLayout, ThreadValue, Width,
    each,
};
use half::{bf16, f16};

use crate::gemm::epilogue::Accumulator;
use crate::gemm::multistage::staging::{GlobalMajor, StagedElement};

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
    type Accumulators: StaticLayout;
    /// Thread-value layout of a block of C.
    type C: ThreadValue;
    /// The parts of a product. Each waits for the one before it.
    type Parts: StaticLayout;

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
    /// The (mn, k) of the element whose address a lane passes: of A (0) and of B (1).
    const LANES: [Layout; 2];

    /// Loads. `from` is the lane's element. All lanes of the warp call it.
    ///
    /// # Safety
    /// The elements were written, and no thread writes them.
    unsafe fn load(from: Shared<I::Element>) -> I::Loaded;
}

/// Arithmetic that loads by `ldmatrix`, four matrices at a time.
trait ByMatrices: Arithmetic<Loaded = [u32; 4]> {}

impl<I: ByMatrices> Lines<I> for KMajor {
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

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(from: Shared<I::Element>) -> [u32; 4] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { ldmatrix(from) }
    }
}

impl<T> Lines<Mma16816<T>> for MnMajor
where
    Mma16816<T>: Arithmetic<Element: DeviceData, Loaded = [u32; 4]>,
{
    /// As of [`KMajor`], but a matrix has a row for each k.
    const LANES: [Layout; 2] = [
        <L!((8, 2, 2):(1@1, 8@0, 8@1))>::LAYOUT,
        <L!((8, 2, 2):(1@1, 8@1, 8@0))>::LAYOUT,
    ];

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(from: Shared<<Mma16816<T> as Arithmetic>::Element>) -> [u32; 4] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { ldmatrix_transposed(from) }
    }
}

/// A thread-value layout of a block of C.
#[derive(Clone, Copy, Debug)]
pub struct BlockOfC<Thr, Val, W>(core::marker::PhantomData<(Thr, Val, W)>);

impl<Thr: StaticLayout, Val: StaticLayout, W: AccessWidth> ThreadValue for BlockOfC<Thr, Val, W> {
    type Thr = Thr;
    type Val = Val;
    type Width = W;
}

/// The threads of an instruction over its rows and columns of C.
type ThreadsOfC<I> = <<<I as WarpMma>::Atom as Mma>::C as ThreadValue>::Thr;
/// A thread's accumulators of an instruction.
type ValuesOfC<I> = <I as MmaInstruction>::Values;

/// A block's 16 rows of A and 16 columns of B, by two instructions with 8 columns each.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn add_halves<I: WarpMma<FragmentA = [u32; 4], FragmentB = [u32; 2]>>(
    accumulators: &mut Fragment<I::Acc, (I::Values, Mode<2, 8>)>,
    a: [u32; 4],
    [b0, b1, b2, b3]: [u32; 4],
) {
    add_half::<I>(accumulators, 0, a, [b0, b1]);
    add_half::<I>(accumulators, I::Values::SIZE, a, [b2, b3]);
}

/// The half of a block whose accumulators start with `first`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn add_half<I: WarpMma<FragmentA = [u32; 4], FragmentB = [u32; 2]>>(
    accumulators: &mut Fragment<I::Acc, (I::Values, Mode<2, 8>)>,
    first: usize,
    a: [u32; 4],
    b: [u32; 2],
) {
    let mut half = Fragment::from_fn(|v| accumulators.get(first + v));
    I::mma(&mut half, a, b);
    each::<I::Values>(|v| accumulators.set(first + v, half.get(v)));
}

/// [`Arithmetic`] by instructions with 16 rows and 8 columns: their elements and accumulators, the lines of MN-major
/// operands, and how they are multiplied.
macro_rules! by_matrices {
    ($($arithmetic:ty: $instruction:ty, $element:ty => $acc:ty, $lines:ident, $operand:ty, $parts:literal,
        prepare $prepare:expr, add ($part:ident, $acc_name:ident, $a:ident, $b:ident) $add:expr;)+) => {$(
        impl Arithmetic for $arithmetic {
            type Element = $element;
            type Acc = $acc;
            type Loaded = [u32; 4];
            type Operand = $operand;
            type LinesOfMn = $lines;
            const STEP: usize = 32 / size_of::<$element>();
            const BLOCK: usize = 16;
            type Accumulators = (ValuesOfC<$instruction>, Mode<2, 8>);
            type C = BlockOfC<ThreadsOfC<$instruction>, (ValuesOfC<$instruction>, L!(2:8@1)), Width<2>>;
            type Parts = Mode<$parts, 1>;

            #[inline(always)]
            fn prepare(loaded: [u32; 4]) -> $operand {
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

        impl ByMatrices for $arithmetic {}
    )+};
}
by_matrices! {
    Mma16816<bf16>: Self, bf16 => f32, MnMajor, [u32; 4], 1,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self>(sums, a, b);
    Mma16816<f16>: Self, f16 => f32, MnMajor, [u32; 4], 1,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self>(sums, a, b);
    Mma1688Tf32: Self, f32 => f32, KMajor, [u32; 4], 1,
        prepare rounded, add (_part, sums, a, b) add_halves::<Self>(sums, a, b);
    Tf32x3: Mma1688Tf32, f32 => f32, KMajor, InTwo, 1,
        prepare InTwo::new, add (_part, sums, a, b) {
            // The small products first: their sum is rounded less.
            let mut of_step = Fragment::filled(0.0);
            add_halves::<Mma1688Tf32>(&mut of_step, a.small, b.big);
            add_halves::<Mma1688Tf32>(&mut of_step, a.big, b.small);
            add_halves::<Mma1688Tf32>(&mut of_step, a.big, b.big);
            *sums = sums.map(|v, sum| sum + of_step.get(v));
        };
    Mma16832<i8>: Self, i8 => i32, KMajor, [u32; 4], 1,
        prepare as_loaded, add (_part, sums, a, b) add_halves::<Self>(sums, a, b);
}

#[inline(always)]
fn as_loaded(loaded: [u32; 4]) -> [u32; 4] {
    loaded
}

/// The nearest numbers of tf32.
#[inline(always)]
fn rounded([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    [round(a), round(b), round(c), round(d)]
}

/// The number rounded to tf32, ties away from zero. The instruction ignores the bits that tf32 lacks. `cvt.rna` would
/// take longer than the product.
#[inline(always)]
fn round(number: u32) -> u32 {
    match f32::from_bits(number).is_nan() {
        true => number,
        false => number.wrapping_add(BELOW_TF32.div_ceil(2)),
    }
}

/// Products of `f32`, each of which is taken as the sum of two tf32: a big one, and a small one, which is what the big one
/// lacks. The product of the small ones is left out.
///
/// Tensor cores round sums towards zero. So they add the products of one step, and f32 additions add the steps.
#[derive(Clone, Copy, Debug)]
pub struct Tf32x3;

/// The big and the small numbers of tf32 of a load.
#[derive(Clone, Copy, Debug)]
pub struct InTwo {
    big: [u32; 4],
    small: [u32; 4],
}

impl InTwo {
    #[inline(always)]
    fn new([a, b, c, d]: [u32; 4]) -> Self {
        let big = [big(a), big(b), big(c), big(d)];
        Self {
            big,
            small: [
                small(a, big[0]),
                small(b, big[1]),
                small(c, big[2]),
                small(d, big[3]),
            ],
        }
    }
}

/// The bits of an `f32` that tf32 lacks.
const BELOW_TF32: u32 = 0x1FFF;

/// The nearest number of tf32, ties away from zero. Of a NaN, any number: what it lacks is NaN.
#[inline(always)]
fn big(number: u32) -> u32 {
    number.wrapping_add(BELOW_TF32.div_ceil(2)) & !BELOW_TF32
}

/// What `big` lacks of a number. It has at most 12 bits, and the instruction ignores those that tf32 lacks.
#[inline(always)]
fn small(number: u32, big: u32) -> u32 {
    (f32::from_bits(number) - f32::from_bits(big)).to_bits()
}

/// A load of f64 has 8 rows and 8 k. A thread reads two neighbours along k, and the instruction of part `n` multiplies
/// neighbour `n` of each. So its four k are every other one. The rows that are loaded at the same time are four apart,
/// which the swizzle brings to different banks. Rows and columns of C are in the same order.
impl Arithmetic for Mma884F64 {
    type Element = f64;
    type Acc = f64;
    type Loaded = [f64; 2];
    type Operand = [f64; 2];
    type LinesOfMn = KMajor;
    const STEP: usize = 8;
    const BLOCK: usize = 8;
    type Accumulators = Mode<2, 1>;
    type C = BlockOfC<L!((4, 2, 4):(1@1, 4@0, 1@0)), L!(2:4@1), Width<1>>;
    type Parts = Mode<2, 1>;

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

impl Lines<Mma884F64> for KMajor {
    const LANES: [Layout; 2] = [<L!((4, 2, 4):(2@1, 4@0, 1@0))>::LAYOUT; 2];

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(from: Shared<f64>) -> [f64; 2] {
        // SAFETY: as promised by the caller. Swizzles keep 16 bytes together.
        unsafe { from.load_vector(0) }
    }
}
