//! Accumulators of one `wgmma` as operand A of the next, in registers.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{Fragment, Layout, StaticLayout, ThreadValue, coalesce};

use super::register_a::{Words, imp::Registers};
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
        let words = words::<I, T>(accumulators, k_step);
        // SAFETY: the words are the fragment's eight elements, two in each.
        unsafe { Fragment::read(words.as_ptr().cast()) }
    })
}

/// A thread's words of A of a k-step.
#[inline(always)]
fn words<I: WgmmaInstruction, T: Float16>(
    accumulators: &Fragment<f32, I::Values>,
    k_step: usize,
) -> Words {
    let pair = |n: usize| {
        let v = 8 * k_step + 2 * n;
        T::pack_f32([accumulators.get(v), accumulators.get(v + 1)])
    };
    [pair(0), pair(1), pair(2), pair(3)]
}

/// A thread's accumulators of the instruction `I`, rounded to `T`, in the registers that the instructions of the next
/// product read as A: [`accumulator_to_a`] and a [`RegisterA`](super::RegisterA) for each k-step.
///
/// Instructions read the registers until the thread has waited for their group. Drop it after that.
///
/// ```
/// use cutlet_device::MmaInstruction;
/// use cutlet_device::sm90::{AccumulatorsAsA, Wgmma};
/// use cutlet_device::{GlobalMut, kernel};
/// use cutlet_layout_core::Fragment;
/// use half::bf16;
///
/// type Scores = Wgmma<64, bf16>;
///
/// /// Has registers for four k-steps.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// pub fn weights() {
///     let scores = Fragment::<f32, <Scores as MmaInstruction>::Values>::filled(1.0);
///     let _a = AccumulatorsAsA::<Scores, bf16>::new(&scores);
/// }
/// assert_eq!(weights.bounds().threads(), 128);
/// ```
pub struct AccumulatorsAsA<I: WgmmaInstruction, T> {
    registers: I::KSteps<Registers>,
    element: PhantomData<T>,
}

impl<I: WgmmaInstruction, T: Float16 + RegisterElement> AccumulatorsAsA<I, T> {
    /// Rounds the accumulators, and moves them to the registers. It comes before
    /// [`warpgroup_arrive`](super::warpgroup_arrive).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn new(accumulators: &Fragment<f32, I::Values>) -> Self {
        const {
            assert!(
                I::N % K as usize == 0 && is_a_by_k_steps::<I, T>(I::N as i64 / K),
                "AccumulatorsAsA: N columns are N / 16 k-steps, for an N that is a multiple of 16"
            );
        }
        Self {
            registers: I::k_steps(|k_step| Registers::new(words::<I, T>(accumulators, k_step))),
            element: PhantomData,
        }
    }
}

impl<I: WgmmaInstruction, T> AccumulatorsAsA<I, T> {
    /// The registers of each k-step.
    #[inline(always)]
    pub(super) fn registers(&self) -> &[Registers] {
        self.registers.as_ref()
    }
}

/// As of [`RegisterA`](super::RegisterA), which says why.
impl<I: WgmmaInstruction, T> Drop for AccumulatorsAsA<I, T> {
    #[inline(always)]
    fn drop(&mut self) {
        for registers in self.registers() {
            registers.release();
        }
    }
}

impl<I: WgmmaInstruction, T> fmt::Debug for AccumulatorsAsA<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccumulatorsAsA")
    }
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
