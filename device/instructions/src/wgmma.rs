//! Matrix instructions: a kernel for each column of the device crate's table, with every row of it in every
//! major.

use cutlet_device::sm90::{Accumulator, F8E4M3, F8E5M2, KMajor, MatrixDescriptor, MnMajor, OperandA, OperandB, Wgmma, WgmmaInstruction, warpgroup_arrive, warpgroup_wait};
use cutlet_device::{__wgmma_n, __wgmma_types, GlobalMut, kernel};
use cutlet_layout_core::Fragment;
use half::{bf16, f16};

/// One product, and then four, by the instruction `I`, if that is the one of this `n`: the branch keeps the registers
/// of one instruction's sums free of those of the next.
///
/// # Safety
/// The descriptors describe operands of `I` in shared memory, and there is a place for a value at `sum`.
#[inline(always)]
unsafe fn products<I: WgmmaInstruction>(n: usize, a: u64, b: u64, sum: GlobalMut<f32>) {
    if n != I::N {
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe {
        let a = MatrixDescriptor::<OperandA<I>>::from_bits(a);
        let b = MatrixDescriptor::<OperandB<I>>::from_bits(b);
        let mut sums = Accumulator::<I>::new();
        let batch = warpgroup_arrive();
        batch.mma(&mut sums, a, b, false);
        batch.mma_x4(&mut sums, [a; 4], [b; 4], true);
        batch.commit();
        sum.store(0, sums.wait().get(0));
    }
}

/// [`products`] of these types for every N, in the majors that they may have.
macro_rules! every_n {
    ({ any, $a:ty, $b:ty, $arguments:tt } $($row:tt)*) => {
        every_n! { @ $a, $b, KMajor, KMajor, $arguments $($row)* }
        every_n! { @ $a, $b, KMajor, MnMajor, $arguments $($row)* }
        every_n! { @ $a, $b, MnMajor, KMajor, $arguments $($row)* }
        every_n! { @ $a, $b, MnMajor, MnMajor, $arguments $($row)* }
    };
    ({ k, $a:ty, $b:ty, $arguments:tt } $($row:tt)*) => {
        every_n! { @ $a, $b, KMajor, KMajor, $arguments $($row)* }
    };
    (@ $a:ty, $b:ty, $ja:ty, $jb:ty, $arguments:tt $($n:literal: $registers:tt,)*) => {$(
        // SAFETY: the kernel's caller promises the same.
        unsafe { products::<Wgmma<$n, $a, $b, $ja, $jb>> $arguments };
    )*};
}

macro_rules! kernels {
    ({} $($name:ident: $k:literal, $a:ty, $b:ty, $types:literal, $majors:ident;)*) => {$(
        #[doc = concat!("Products of ", $types, ".")]
        pub mod $name {
            use super::*;

            #[doc = concat!("Products of ", $types, ", of every N and in every major.")]
            ///
            /// # Safety
            /// The descriptors describe operands in shared memory, and there is a place for a value at `sum`.
            #[kernel(threads = 128, arch = "sm_90a")]
            pub unsafe fn $name(n: usize, a: u64, b: u64, sum: GlobalMut<f32>) {
                __wgmma_n! { every_n! { $majors, $a, $b, (n, a, b, sum) } }
            }
        }
    )*};
}

__wgmma_types! { kernels! {} }

/// Products that are added to values, and a batch that is left under way.
///
/// # Safety
/// The descriptors describe operands in shared memory, and there are places for two values at `sums`.
#[kernel(threads = 128, arch = "sm_90a")]
pub unsafe fn sums_with_values(a: u64, b: u64, values: [f32; 4], sums: GlobalMut<f32>) {
    type Mma = Wgmma<8, bf16>;
    type Values = <Mma as WgmmaInstruction>::Values;
    // SAFETY: as promised by the caller.
    unsafe {
        let a = MatrixDescriptor::from_bits(a);
        let b = MatrixDescriptor::from_bits(b);
        let values = Fragment::<f32, Values>::from_fn(|v| values[v]);
        let mut both = [
            Accumulator::<Mma>::from_values(&values),
            Accumulator::<Mma>::from_values(&values),
        ];
        let batch = warpgroup_arrive();
        batch.mma(&mut both[0], a, b, true);
        batch.commit();
        warpgroup_wait::<1>();
        let batch = warpgroup_arrive();
        batch.mma(&mut both[1], a, b, true);
        batch.commit();
        let [first, second] = Accumulator::wait_array(both);
        sums.store_vec(0, [first.get(0), second.get(0)]);
    }
}
