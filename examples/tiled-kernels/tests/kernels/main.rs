//! The kernels on the CPU backend, or on a GPU if there is one, against sums in f64.

mod attention;
mod gemm;
mod rms_norm;

use half::bf16;

/// Numbers from −1 to 1 without a pattern.
fn random(count: usize, seed: u64) -> Vec<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        bf16::from_f64((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}
