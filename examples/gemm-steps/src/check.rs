//! Random operands, and whether a C is the product.

use std::format;
use std::string::String;
use std::vec::Vec;

use cutlet_device::Float;
use half::bf16;

/// `count` numbers from -1 to 1.
pub fn random(seed: u64, count: usize) -> Vec<bf16> {
    let mut generator = fastrand::Rng::with_seed(seed);
    (0..count)
        .map(|_| Float::from_f32(2.0 * generator.f32() - 1.0))
        .collect()
}

/// `A·B` in f64, of A as m×k and B as n×k.
pub fn product([m, n, k]: [usize; 3], a: &[bf16], b: &[bf16]) -> Vec<f64> {
    let [a, b] = [a, b].map(|it| it.iter().map(|it| it.to_f64()).collect::<Vec<_>>());
    let element = |row: usize, column: usize| -> f64 {
        let (a, b) = (&a[row * k..][..k], &b[column * k..][..k]);
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    };
    (0..m * n).map(|i| element(i / n, i % n)).collect()
}

/// Checks that C, of rows of `n` elements, is what is expected: but for an f32 sum of `k` products of numbers up to 1,
/// and the rounding to bf16, of both.
///
/// # Errors
/// Names the first element that is further off.
pub fn check(
    [n, k]: [usize; 2],
    c: &[bf16],
    expected: impl IntoIterator<Item = f64>,
) -> Result<(), String> {
    for (i, (c, expected)) in c.iter().zip(expected).enumerate() {
        let found = c.to_f64();
        let allowed = expected.abs() / 128.0 + 1e-5 * k as f64;
        // So that NaN is not allowed either.
        if (found - expected).abs() <= allowed {
            continue;
        }
        let (row, column) = (i / n, i % n);
        return Err(format!("C at ({row}, {column}) is {found}, not {expected}"));
    }
    Ok(())
}
