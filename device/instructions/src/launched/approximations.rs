//! The approximate functions, of one number in each thread.

use cutlet_device::{
    Global, GlobalMut, cos_approx, exp_approx, exp2_approx, kernel, ln_approx, log2_approx,
    rcp_approx, rsqrt_approx, sin_approx, sqrt_approx, tanh_approx, thread_idx,
};

/// Threads of the block.
pub const THREADS: u32 = 1024;
/// Results of a thread.
pub const RESULTS: usize = 10;

/// Writes the functions' results: of `exp2`, `log2`, `exp`, `ln`, the reciprocal, the square root, its reciprocal, the
/// sine, the cosine, and the hyperbolic tangent.
///
/// # Safety
/// `numbers` has an element for each thread. `results` has [`RESULTS`] for each.
#[kernel(threads = THREADS)]
pub unsafe fn approximate(numbers: Global<f32>, results: GlobalMut<f32>) {
    let thread = i64::from(thread_idx().get());
    // SAFETY: as promised by the caller.
    unsafe {
        let x = numbers.load(thread);
        let values = [
            exp2_approx(x),
            log2_approx(x),
            exp_approx(x),
            ln_approx(x),
            rcp_approx(x),
            sqrt_approx(x),
            rsqrt_approx(x),
            sin_approx(x),
            cos_approx(x),
            tanh_approx(x),
        ];
        for (nth, value) in values.iter().enumerate() {
            results.store(thread * RESULTS as i64 + nth as i64, *value);
        }
    }
}
