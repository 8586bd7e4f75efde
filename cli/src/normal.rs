//! Normally distributed random inputs, the same for the same seed.

use fastrand::Rng;

/// An endless sequence of numbers from N(0, 1) in f32.
pub fn normal(seed: u64) -> impl Iterator<Item = f32> {
    let mut random = Rng::with_seed(seed);
    let pairs = std::iter::repeat_with(move || {
        // Box–Muller: two uniform numbers give two normal numbers.
        let radius = (-2.0 * (1.0 - random.f32()).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * random.f32()).sin_cos();
        [radius * cos, radius * sin]
    });
    pairs.flatten()
}

/// [`normal`] in f64, with all bits.
pub fn normal_f64(seed: u64) -> impl Iterator<Item = f64> {
    let mut random = Rng::with_seed(seed);
    let pairs = std::iter::repeat_with(move || {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * random.f64()).sin_cos();
        [radius * cos, radius * sin]
    });
    pairs.flatten()
}
