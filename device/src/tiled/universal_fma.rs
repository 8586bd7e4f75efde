//! The matrix instruction of one thread: a multiply-add.

use core::marker::PhantomData;

use cutlet_layout_core::{Fma as Atom, Fragment, Mma, ThreadValue};

use crate::sm80::WarpMma;
use crate::{MmaInstruction, fma};

/// A multiply-add as an atom: CuTe's `UniversalFMA`. A tiled MMA of it has threads in place of warps.
#[derive(Clone, Copy, Debug)]
pub struct UniversalFma<T>(PhantomData<T>);

macro_rules! universal_fma {
    ($($element:ty),+) => {$(
        impl MmaInstruction for UniversalFma<$element> {
            type A = $element;
            type B = $element;
            type Acc = $element;
            const M: usize = 1;
            const N: usize = 1;
            const K: usize = 1;
            type Values = <<Atom as Mma>::LayoutC as ThreadValue>::Val;
        }

        impl Mma for UniversalFma<$element> {
            type LayoutA = <Atom as Mma>::LayoutA;
            type LayoutB = <Atom as Mma>::LayoutB;
            type LayoutC = <Atom as Mma>::LayoutC;
            type RowsOfC = <Atom as Mma>::RowsOfC;
            type M = <Atom as Mma>::M;
            type N = <Atom as Mma>::N;
            type K = <Atom as Mma>::K;
            const NAME: &'static str = Atom::NAME;
        }

        impl WarpMma for UniversalFma<$element> {
            type FragmentA = [$element; 1];
            type FragmentB = [$element; 1];

            #[inline(always)]
            fn registers_a(element: impl Fn(usize) -> $element) -> [$element; 1] {
                [element(0)]
            }

            #[inline(always)]
            fn registers_b(element: impl Fn(usize) -> $element) -> [$element; 1] {
                [element(0)]
            }

            #[inline(always)]
            fn mma(acc: &mut Fragment<$element, Self::Values>, [a]: [$element; 1], [b]: [$element; 1]) {
                acc.set(0, fma(a, b, acc.get(0)));
            }
        }
    )+};
}
universal_fma!(f32, f64);
