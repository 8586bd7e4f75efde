//! `mma.sync`: a kernel for each type of operands, and the conversion to tf32.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::sm80::{
    Mma884F64, Mma1688F64, Mma1688Tf32, Mma16816, Mma16816F64, Mma16832, WarpMma,
    accumulators_to_a, to_tf32,
};
use cutlet_device::{GlobalMut, kernel, thread_idx};
use cutlet_layout_core::Fragment;
use half::{bf16, f16};

macro_rules! kernels {
    ($($name:ident: $mma:ty, $arch:literal;)*) => {$(
        #[doc = concat!("Adds a product to accumulators by `", stringify!($mma), "`.")]
        ///
        /// # Safety
        /// `a`, `b` and `sums` have an element for each thread.
        #[kernel(threads = 32, arch = $arch)]
        pub unsafe fn $name(
            a: GlobalMut<<$mma as WarpMma>::FragmentA>,
            b: GlobalMut<<$mma as WarpMma>::FragmentB>,
            sums: GlobalMut<<$mma as cutlet_device::MmaInstruction>::Acc>,
        ) {
            let thread = i64::from(thread_idx().get());
            // SAFETY: the caller promises the elements.
            unsafe {
                let mut sum = Fragment::filled(sums.load(thread));
                let a = a.offset(thread).as_ptr().read();
                let b = b.offset(thread).as_ptr().read();
                <$mma>::mma(&mut sum, a, b);
                sums.store(thread, sum.get(1));
            }
        }
    )*};
}

kernels! {
    of_bf16: Mma16816<bf16>, "sm_80";
    of_f16: Mma16816<f16>, "sm_80";
    of_tf32: Mma1688Tf32, "sm_80";
    of_i8: Mma16832<i8>, "sm_80";
    of_u8: Mma16832<u8>, "sm_80";
    of_f64: Mma884F64, "sm_80";
    of_e4m3: Mma16832<F8E4M3>, "sm_90a";
    of_e5m2: Mma16832<F8E5M2>, "sm_90a";
    of_f64_k8: Mma1688F64, "sm_90a";
    of_f64_k16: Mma16816F64, "sm_90a";
}

/// Two products in a row: the first one's accumulators, rounded, are operand A of the second.
///
/// # Safety
/// `a`, `b` and `sums` have an element for each thread.
#[kernel(threads = 32)]
pub unsafe fn chained(a: GlobalMut<[u32; 4]>, b: GlobalMut<[u32; 2]>, sums: GlobalMut<f32>) {
    let thread = i64::from(thread_idx().get());
    // SAFETY: the caller promises the elements.
    unsafe {
        let mut scores = [Fragment::filled(0.0); 2];
        let a = a.offset(thread).as_ptr().read();
        let b = b.offset(thread).as_ptr().read();
        for block in &mut scores {
            Mma16816::<bf16>::mma(block, a, b);
        }
        let [a] = accumulators_to_a::<bf16, 2, 1>(&scores);
        let mut sum = Fragment::filled(sums.load(thread));
        Mma16816::<bf16>::mma(&mut sum, a, b);
        sums.store(thread, sum.get(1));
    }
}

/// Rounds numbers to tf32.
///
/// # Safety
/// `values` has an element for each thread, and so has `rounded`.
#[kernel(threads = 32)]
pub unsafe fn round_to_tf32(values: GlobalMut<f32>, rounded: GlobalMut<u32>) {
    let thread = i64::from(thread_idx().get());
    // SAFETY: as promised by the caller.
    unsafe { rounded.store(thread, to_tf32(values.load(thread))) };
}
