//! Random inputs: normally distributed, the same for the same seed.

use fastrand::Rng;

/// `len` numbers from N(0, 1).
pub fn normal(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Rng::with_seed(seed);
    let mut numbers = Vec::with_capacity(len + 1);
    while numbers.len() < len {
        // Box and Muller: two uniform numbers give two normal ones.
        let radius = (-2.0 * (1.0 - random.f32()).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * random.f32()).sin_cos();
        numbers.extend([radius * cos, radius * sin]);
    }
    numbers.truncate(len);
    numbers
}
