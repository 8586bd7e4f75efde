//! Accumulators of `mma.sync` as operand A of the next product, in registers.

use cutlet_layout_core::{Fragment, L, M16N8K16Bits16, Mma, StaticLayout, ThreadValue, coalesce};

use super::{Mma16816, WarpMma};
use crate::{Float16, MmaInstruction};

/// The operands of `mma.m16n8k16`.
type Atom = M16N8K16Bits16;
type A = <Atom as Mma>::LayoutA;
type C = <Atom as Mma>::LayoutC;
type ThreadsOf<Operand> = <Operand as ThreadValue>::Thr;
type ValuesOf<Operand> = <Operand as ThreadValue>::Val;
/// A thread's accumulators of two blocks of 8 columns.
type OfTwoBlocks = (ValuesOf<C>, L!(2:8@1));

/// Rounds the accumulators of `N` neighbouring blocks of 8 columns to `T`, and regroups them as operand A of
/// [`Mma16816<T>`](Mma16816): A of k-step `s` is columns `16 · s` to `16 · s + 15`. `K_STEPS` is N / 2.
///
/// Every thread already holds the elements of A that it needs, so no data moves between threads. A const assertion
/// compares the layouts. This is how attention multiplies its probabilities by V. A pair takes one instruction.
///
/// ```
/// use cutlet_device::sm80::accumulators_to_a;
/// use cutlet_device::Float16;
/// use cutlet_layout_core::Fragment;
/// use half::bf16;
///
/// // 16×32 scores: four blocks of 8 columns are two k-steps of 16.
/// let scores: [_; 4] = core::array::from_fn(|block| Fragment::from_fn(|v| (4 * block + v) as f32));
/// let a = accumulators_to_a::<bf16, 4, 2>(&scores);
/// assert_eq!(a[1].map(bf16::unpack_f32), [[8.0, 9.0], [10.0, 11.0], [12.0, 13.0], [14.0, 15.0]]);
/// ```
///
/// The number of blocks must be even:
///
/// ```compile_fail,E0080
/// # use cutlet_device::sm80::accumulators_to_a;
/// # use cutlet_layout_core::Fragment;
/// # use half::bf16;
/// let scores = [Fragment::filled(0.0); 3];
/// let a = accumulators_to_a::<bf16, 3, 1>(&scores);
/// ```
#[inline(always)]
pub fn accumulators_to_a<T, const N: usize, const K_STEPS: usize>(
    accumulators: &[Fragment<f32, <Mma16816<T> as MmaInstruction>::Values>; N],
) -> [<Mma16816<T> as WarpMma>::FragmentA; K_STEPS]
where
    T: Float16,
    Mma16816<T>: WarpMma<FragmentA = [u32; 4], Acc = f32>,
{
    const {
        assert!(
            2 * K_STEPS == N,
            "accumulators_to_a: two blocks of 8 columns are a k-step of 16, for an even number of blocks"
        );
        assert!(
            is_a(),
            "accumulators_to_a: a thread needs other elements for A than it has accumulators"
        );
    }
    core::array::from_fn(|k_step| {
        let (first, second) = (&accumulators[2 * k_step], &accumulators[2 * k_step + 1]);
        [
            T::pack_f32([first.get(0), first.get(1)]),
            T::pack_f32([first.get(2), first.get(3)]),
            T::pack_f32([second.get(0), second.get(1)]),
            T::pack_f32([second.get(2), second.get(3)]),
        ]
    })
}

/// Whether a thread's accumulators of two blocks, in the order in which it has them, are its elements of A.
const fn is_a() -> bool {
    let same_threads = ThreadsOf::<A>::LAYOUT.eq(&ThreadsOf::<C>::LAYOUT);
    same_threads && coalesce(&OfTwoBlocks::LAYOUT).eq(&coalesce(&ValuesOf::<A>::LAYOUT))
}
