//! The MMA instructions of a thread and of a warp, as types.
//!
//! The distribution of operands over threads depends only on the width of their elements: bf16 and
//! f16 share a layout, as do 8-bit integers and floats.

use super::MmaAtom;
use crate::{FragmentLayout, L, M as Mode, StaticLayout, ThreadValue, Tv};

/// A matrix multiply-accumulate instruction, D = A·B + C, as a type. Its thread-value layouts map
/// to the coordinates of A (M×K), B (N×K) and C (M×N); kernels partition tiles by them.
///
/// ```
/// use cutlet_layout_core::{M16N8K16Bits16, Mma, StaticLayout, ThreadValue};
///
/// type Values = <<M16N8K16Bits16 as Mma>::LayoutA as ThreadValue>::Val;
/// assert_eq!(Values::SIZE, 8);
/// ```
pub trait Mma: Copy + 'static {
    /// Thread-value layout of A.
    type LayoutA: ThreadValue;
    /// Thread-value layout of B.
    type LayoutB: ThreadValue;
    /// Thread-value layout of C and D.
    type LayoutC: ThreadValue;
    /// The rows of C of which a thread has elements, as the mode `M<ROWS, 1>`.
    type RowsOfC: FragmentLayout;
    /// Rows of A and C, as the mode `M<ROWS, 1>`.
    type M: StaticLayout;
    /// Rows of B and columns of C, as the mode `M<COLUMNS, 1>`.
    type N: StaticLayout;
    /// Products that are added to each accumulator, as the mode `M<PRODUCTS, 1>`.
    type K: StaticLayout;
    /// The instruction's name in PTX.
    const NAME: &'static str;
    /// The shape (M, N, K).
    const SHAPE: [i64; 3] = [
        Self::M::SIZE as i64,
        Self::N::SIZE as i64,
        Self::K::SIZE as i64,
    ];
    /// The instruction as a value.
    const ATOM: MmaAtom =
        MmaAtom::of::<Self::LayoutA, Self::LayoutB, Self::LayoutC>(Self::NAME, Self::SHAPE);
}

macro_rules! instruction {
    (
        $(#[$doc:meta])*
        $name:ident, $ptx:literal, [$m:literal, $n:literal, $k:literal],
        A: $a:ty, B: $b:ty, C: $c:ty, rows $rows:literal $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Mma for $name {
            type LayoutA = $a;
            type LayoutB = $b;
            type LayoutC = $c;
            type RowsOfC = Mode<$rows, 1>;
            type M = Mode<$m, 1>;
            type N = Mode<$n, 1>;
            type K = Mode<$k, 1>;
            const NAME: &'static str = $ptx;
        }

        // The evaluation checks that each element of every operand is held once.
        const _: MmaAtom = $name::ATOM;
    };
}

/// C and D of the warp's instructions: a thread holds two neighbours of a row, and the two 8 rows
/// below them.
type Accumulators = Tv<L!((4, 8):(2@1, 1@0)), L!((2, 2):(1@1, 8@0))>;

instruction! {
    /// One thread's multiply-add.
    Fma, "fma", [1, 1, 1],
    A: Tv<L!(1:0), L!(1:0)>,
    B: Tv<L!(1:0), L!(1:0)>,
    C: Tv<L!(1:0), L!(1:0)>,
    rows 1,
}

instruction! {
    /// `mma.sync.m16n8k8` of 32-bit elements: tf32.
    M16N8K8Bits32, "mma.sync.aligned.m16n8k8", [16, 8, 8],
    A: Tv<L!((4, 8):(1@1, 1@0)), L!((2, 2):(8@0, 4@1))>,
    B: Tv<L!((4, 8):(1@1, 1@0)), L!(2:4@1)>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m8n8k4` of 64-bit elements: f64.
    M8N8K4Bits64, "mma.sync.aligned.m8n8k4", [8, 8, 4],
    A: Tv<L!((4, 8):(1@1, 1@0)), L!(1:0)>,
    B: Tv<L!((4, 8):(1@1, 1@0)), L!(1:0)>,
    C: Tv<L!((4, 8):(2@1, 1@0)), L!(2:1@1)>,
    rows 1,
}

instruction! {
    /// `mma.sync.m16n8k8` of 64-bit elements: f64, from sm_90 on.
    M16N8K8Bits64, "mma.sync.aligned.m16n8k8", [16, 8, 8],
    A: Tv<L!((4, 8):(1@1, 1@0)), L!((2, 2):(8@0, 4@1))>,
    B: Tv<L!((4, 8):(1@1, 1@0)), L!(2:4@1)>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m16n8k16` of 64-bit elements: f64, from sm_90 on.
    M16N8K16Bits64, "mma.sync.aligned.m16n8k16", [16, 8, 16],
    A: Tv<L!((4, 8):(1@1, 1@0)), L!((2, 4):(8@0, 4@1))>,
    B: Tv<L!((4, 8):(1@1, 1@0)), L!(4:4@1)>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m16n8k8` of 16-bit elements: bf16 and f16.
    M16N8K8Bits16, "mma.sync.aligned.m16n8k8", [16, 8, 8],
    A: Tv<L!((4, 8):(2@1, 1@0)), L!((2, 2):(1@1, 8@0))>,
    B: Tv<L!((4, 8):(2@1, 1@0)), L!(2:1@1)>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m16n8k16` of 16-bit elements: bf16 and f16.
    M16N8K16Bits16, "mma.sync.aligned.m16n8k16", [16, 8, 16],
    A: Tv<L!((4, 8):(2@1, 1@0)), L!((2, 2, 2):(1@1, 8@0, 8@1))>,
    B: Tv<L!((4, 8):(2@1, 1@0)), L!((2, 2):(1@1, 8@1))>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m16n8k16` of 8-bit elements: s8 and u8.
    M16N8K16Bits8, "mma.sync.aligned.m16n8k16", [16, 8, 16],
    A: Tv<L!((4, 8):(4@1, 1@0)), L!((4, 2):(1@1, 8@0))>,
    B: Tv<L!((4, 8):(4@1, 1@0)), L!(4:1@1)>,
    C: Accumulators,
    rows 2,
}

instruction! {
    /// `mma.sync.m16n8k32` of 8-bit elements: s8, u8, e4m3 and e5m2.
    M16N8K32Bits8, "mma.sync.aligned.m16n8k32", [16, 8, 32],
    A: Tv<L!((4, 8):(4@1, 1@0)), L!((4, 2, 2):(1@1, 8@0, 16@1))>,
    B: Tv<L!((4, 8):(4@1, 1@0)), L!((4, 2):(1@1, 16@1))>,
    C: Accumulators,
    rows 2,
}
