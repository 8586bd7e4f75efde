//! The atom of the family: a multiply-add of each lane of a warp.

use core::marker::PhantomData;

use cutlet_device::sm80::WarpMma;
use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_device::tiled::Vectors;
use cutlet_device::{MmaInstruction, fma};
use cutlet_layout_core::{AccessWidth, E, Fragment, Layout, M as Mode, Mma, Tv, Width, each};

use super::config::{Lanes, ThreadTile, group};
use crate::gemm::multistage::arithmetic::{Arithmetic, Lines};

/// A multiply-add in f32 of each lane, of which there are `Ln`, at each k that a lane reads at a time. `Tt` is a lane's
/// [`ThreadTile`].
#[derive(Clone, Copy, Debug)]
pub struct MultiplyAdd<Tt, Ln>(PhantomData<(Tt, Ln)>);

/// A lane's one accumulator.
type One = Mode<1, 0>;

impl<const TM: usize, const TN: usize, const TK: usize, const LM: usize, const LN: usize>
    MmaInstruction for MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>
{
    type A = f32;
    type B = f32;
    type Acc = f32;
    const M: usize = LM;
    const N: usize = LN;
    const K: usize = TK;
    type Values = One;
}

impl<const TM: usize, const TN: usize, const TK: usize, const LM: usize, const LN: usize> Mma
    for MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>
{
    type LayoutA = Tv<(E<LN, 0, 0>, E<LM, 1, 0>), E<TK, 1, 1>>;
    type LayoutB = Tv<(E<LN, 1, 0>, E<LM, 0, 0>), E<TK, 1, 1>>;
    type LayoutC = Tv<(E<LN, 1, 1>, E<LM, 1, 0>), One>;
    type RowsOfC = Mode<1, 1>;
    type M = Mode<LM, 1>;
    type N = Mode<LN, 1>;
    type K = Mode<TK, 1>;
    const NAME: &'static str = "fma";
}

impl<const TM: usize, const TN: usize, const TK: usize, const LM: usize, const LN: usize> WarpMma
    for MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>
{
    type FragmentA = [f32; TK];
    type FragmentB = [f32; TK];

    #[inline(always)]
    fn registers_a(element: impl Fn(usize) -> f32) -> [f32; TK] {
        core::array::from_fn(element)
    }

    #[inline(always)]
    fn registers_b(element: impl Fn(usize) -> f32) -> [f32; TK] {
        core::array::from_fn(element)
    }

    #[inline(always)]
    fn mma(accumulator: &mut Fragment<f32, One>, a: [f32; TK], b: [f32; TK]) {
        each::<Mode<TK, 1>>(|k| Self::add(k, accumulator, a, b));
    }
}

impl<const TM: usize, const TN: usize, const TK: usize, const LM: usize, const LN: usize> Arithmetic
    for MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>
{
    type OperandA = [f32; TK];
    type OperandB = [f32; TK];
    type Parts = Mode<TK, 1>;
    const ORDER_OF_K: Layout = Layout::static_mode(TK as i64, 1);

    #[inline(always)]
    fn prepare_a(registers: [f32; TK]) -> [f32; TK] {
        registers
    }

    #[inline(always)]
    fn prepare_b(registers: [f32; TK]) -> [f32; TK] {
        registers
    }

    #[inline(always)]
    fn add(k: usize, accumulator: &mut Fragment<f32, One>, a: [f32; TK], b: [f32; TK]) {
        accumulator.set(0, fma(a[k], b[k], accumulator.get(0)));
    }
}

/// The rows, or columns, of a warp's lanes with `count` of them each: groups of neighbours.
const fn in_groups(lanes: usize, count: usize) -> Layout {
    let group = group(count) as i64;
    Layout::concat(&[
        Layout::static_mode(lanes as i64, group),
        Layout::static_mode(group, 1),
    ])
}

macro_rules! lines {
    ($($major:ident, along $direction:literal, A by $a:ident, B by $b:ident;)+) => {$(
        impl<
            const TM: usize,
            const TN: usize,
            const TK: usize,
            const LM: usize,
            const LN: usize,
        > Lines<MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>> for $major
        where
            Count<TM>: Neighbours,
            Count<TN>: Neighbours,
            Count<TK>: Neighbours,
        {
            type LoadA = Vectors<<Count<$a> as Neighbours>::Width, $direction>;
            type LoadB = Vectors<<Count<$b> as Neighbours>::Width, $direction>;
            const ORDER: [Layout; 2] = [in_groups(LM, TM), in_groups(LN, TN)];
            type Width = <Count<TN> as Neighbours>::Width;
        }
    )+};
}
lines! {
    KMajor, along 1, A by TK, B by TK;
    MnMajor, along 0, A by TM, B by TN;
}

/// A thread's number of rows, columns, or k of a step.
#[derive(Clone, Copy, Debug)]
pub struct Count<const N: usize>;

/// How many neighbours a thread has that has so many rows, columns, or k.
pub trait Neighbours: Copy + 'static {
    /// Accesses to so many.
    type Width: AccessWidth;
}

macro_rules! neighbours {
    ($($n:literal: $width:literal),+) => {$(
        impl Neighbours for Count<$n> {
            type Width = Width<$width>;
        }
    )+};
}
neighbours!(1: 1, 2: 2, 4: 4, 8: 4, 16: 4);
