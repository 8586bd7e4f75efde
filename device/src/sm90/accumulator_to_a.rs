//! Accumulators of one `wgmma` as operand A of the next, in registers.

use cutlet_layout_core::{Fragment, Layout, StaticLayout, ThreadValue, coalesce};

use super::{FragmentA, RegisterElement, WarpgroupThreads, WgmmaInstruction};
use crate::Float16;

/// The k of an instruction whose operands have 16 bits.
const K: i64 = 16;

/// Rounds a thread's accumulators to `T`, and regroups them as its fragments of A: A of k-step `s` is columns `16 · s`
/// to `16 · s + 15`. `K_STEPS` is N / 16.
///
/// Every thread already holds the elements of A that it needs, so no data moves between threads. A const assertion
/// compares the layouts. This is how attention multiplies its probabilities by V.
///
/// ```
/// use cutlet_device::MmaInstruction;
/// use cutlet_device::sm90::{Wgmma, accumulator_to_a};
/// use cutlet_layout_core::Fragment;
/// use half::bf16;
///
/// type Scores = Wgmma<64, bf16>;
/// type Values = <Scores as MmaInstruction>::Values;
///
/// let scores = Fragment::<f32, Values>::from_fn(|v| v as f32);
/// let a: [_; 4] = accumulator_to_a::<Scores, bf16, _>(&scores);
/// assert_eq!(a[3].get(7), bf16::from_f32(31.0));
/// ```
///
/// N must be a multiple of 16:
///
/// ```compile_fail,E0080
/// # use cutlet_device::MmaInstruction;
/// # use cutlet_device::sm90::{Wgmma, accumulator_to_a};
/// # use cutlet_layout_core::Fragment;
/// # use half::bf16;
/// type Scores = Wgmma<24, bf16>;
/// let scores = Fragment::<f32, <Scores as MmaInstruction>::Values>::filled(0.0);
/// let a: [_; 2] = accumulator_to_a::<Scores, bf16, _>(&scores);
/// ```
#[inline(always)]
pub fn accumulator_to_a<I, T, const K_STEPS: usize>(
    accumulators: &Fragment<f32, I::Values>,
) -> [FragmentA<T>; K_STEPS]
where
    I: WgmmaInstruction,
    T: Float16 + RegisterElement,
{
    const {
        assert!(
            K_STEPS as i64 * K == I::N as i64,
            "accumulator_to_a: N columns are N / 16 k-steps, for an N that is a multiple of 16"
        );
        assert!(
            is_a_by_k_steps::<I, T>(K_STEPS as i64),
            "accumulator_to_a: a thread needs other elements for A than it has accumulators"
        );
    }
    core::array::from_fn(|k_step| {
        let pair = |n: usize| {
            let v = 8 * k_step + 2 * n;
            T::pack_f32([accumulators.get(v), accumulators.get(v + 1)])
        };
        let words = [pair(0), pair(1), pair(2), pair(3)];
        // SAFETY: the words are the fragment's eight elements, two in each.
        unsafe { Fragment::read(words.as_ptr().cast()) }
    })
}

/// Whether the accumulators of `I`, in the order in which a thread has them, are its elements of A of `T` for one
/// k-step after the other.
const fn is_a_by_k_steps<I: WgmmaInstruction, T: RegisterElement>(k_steps: i64) -> bool {
    let threads = <T::LayoutA as ThreadValue>::Thr::LAYOUT;
    let values = Layout::concat2(
        &<T::LayoutA as ThreadValue>::Val::LAYOUT,
        &Layout::static_basis_mode(k_steps, K, 1),
    );
    WarpgroupThreads::LAYOUT.eq(&threads) && coalesce(&I::Values::LAYOUT).eq(&coalesce(&values))
}
