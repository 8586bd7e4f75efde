//! `wgmma`: a kernel for each pair of types of the device crate's table, with every N in every major.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::operand::{MatrixDescriptor, OperandA, OperandB};
use cutlet_device::sm90::{
    Accumulator, FragmentA, RegisterA, RegisterElement, Wgmma, WgmmaInstruction, warpgroup_arrive,
    warpgroup_wait,
};
use cutlet_device::tile::{KMajor, Major, MnMajor};
use cutlet_device::{
    __wgmma_n, __wgmma_types, Global, GlobalMut, MmaInstruction, SharedMma, kernel,
};
use cutlet_layout_core::Fragment;
use half::{bf16, f16};

/// Issues the instruction `I` once and then four times, if its N is `n`. If A is K-major, also issues it once with A in
/// registers, for which A has no major. The branch keeps the accumulators of different
/// instructions from being live at the same time.
///
/// # Safety
/// The descriptors describe operands of `I` in shared memory. `elements` points to a fragment of A. `result` has room
/// for a value.
#[inline(always)]
unsafe fn products<I: WgmmaInstruction<A: RegisterElement>>(
    n: usize,
    a: u64,
    b: u64,
    elements: Global<u32>,
    result: GlobalMut<I::Acc>,
) {
    if n != I::N {
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe {
        let a = MatrixDescriptor::<OperandA<I>>::from_bits(a);
        let b = MatrixDescriptor::<OperandB<I>>::from_bits(b);
        let elements = FragmentA::<I::A>::read(elements.as_ptr().cast());
        let in_registers = RegisterA::new(&elements);
        let mut accumulator = Accumulator::<I>::new();
        let group = warpgroup_arrive();
        group.mma(&mut accumulator, a, b, false);
        group.mma_x4(&mut accumulator, [a; 4], [b; 4], true);
        if <I as SharedMma>::MajorA::IS_K_MAJOR {
            group.mma_from_registers(&mut accumulator, &in_registers, b, true);
        }
        group.commit();
        result.store(0, accumulator.wait().get(0));
    }
}

/// [`products`] of a pair of types for every N that it has, in the majors that it may have.
macro_rules! every_n {
    ({ any, $a:ty, $b:ty, $arguments:tt } $($row:tt)*) => {
        every_n! { @ $a, $b, KMajor, KMajor, $arguments $($row)* }
        every_n! { @ $a, $b, KMajor, MnMajor, $arguments $($row)* }
        every_n! { @ $a, $b, MnMajor, KMajor, $arguments $($row)* }
        every_n! { @ $a, $b, MnMajor, MnMajor, $arguments $($row)* }
    };
    ({ integers, $a:ty, $b:ty, $arguments:tt }) => {};
    ({ integers, $a:ty, $b:ty, $arguments:tt } $n:literal: floats $registers:tt, $($rest:tt)*) => {
        every_n! { { integers, $a, $b, $arguments } $($rest)* }
    };
    ({ integers, $a:ty, $b:ty, $arguments:tt } $n:literal: all $registers:tt, $($rest:tt)*) => {
        every_n! { @ $a, $b, KMajor, KMajor, $arguments $n: all $registers, }
        every_n! { { integers, $a, $b, $arguments } $($rest)* }
    };
    ({ $form:ident, $a:ty, $b:ty, $arguments:tt } $($row:tt)*) => {
        every_n! { @ $a, $b, KMajor, KMajor, $arguments $($row)* }
    };
    (@ $a:ty, $b:ty, $ja:ty, $jb:ty, $arguments:tt $($n:literal: $operands:ident $registers:tt,)*) => {$(
        // SAFETY: the kernel's caller promises the same.
        unsafe { products::<Wgmma<$n, $a, $b, $ja, $jb>> $arguments };
    )*};
}

macro_rules! kernels {
    ({} $($name:ident: $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal, $form:ident;)*) => {$(
        #[doc = concat!("Products of ", $types, ".")]
        pub mod $name {
            use super::*;

            #[doc = concat!("Products of ", $types, ", of every N and in every major.")]
            ///
            /// # Safety
            /// The descriptors describe operands in shared memory. `elements` has a fragment of A. `result` has room
            /// for a value.
            #[kernel(threads = 128, arch = "sm_90a")]
            pub unsafe fn $name(
                n: usize,
                a: u64,
                b: u64,
                elements: Global<u32>,
                result: GlobalMut<$acc>,
            ) {
                __wgmma_n! { every_n! { $form, $a, $b, (n, a, b, elements, result) } }
            }
        }
    )*};
}

__wgmma_types! { kernels! {} }

/// Products added to initial values, with one group left pending.
///
/// # Safety
/// The descriptors describe operands in shared memory. `results` has room for two values.
#[kernel(threads = 128, arch = "sm_90a")]
pub unsafe fn accumulators_with_values(a: u64, b: u64, values: [f32; 4], results: GlobalMut<f32>) {
    type Mma = Wgmma<8, bf16>;
    type Values = <Mma as MmaInstruction>::Values;
    // SAFETY: as promised by the caller.
    unsafe {
        let a = MatrixDescriptor::from_bits(a);
        let b = MatrixDescriptor::from_bits(b);
        let values = Fragment::<f32, Values>::from_fn(|v| values[v]);
        let mut both = [
            Accumulator::<Mma>::from_values(&values),
            Accumulator::<Mma>::from_values(&values),
        ];
        let group = warpgroup_arrive();
        group.mma(&mut both[0], a, b, true);
        group.commit();
        warpgroup_wait::<1>();
        let group = warpgroup_arrive();
        group.mma(&mut both[1], a, b, true);
        group.commit();
        let [first, second] = Accumulator::wait_array(both);
        results.store_vec(0, [first.get(0), second.get(0)]);
    }
}
