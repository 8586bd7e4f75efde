//! The rounding of a long sum.

/// The rounding of an f32 sum of `k` random terms, of which `magnitude` is the sum of the absolute values. Their errors
/// grow like a random walk. A bound that grew like k would not notice a lost term.
pub fn of_sum(k: usize, magnitude: f64) -> f64 {
    ((k as f64).sqrt() + 4.0) * magnitude * f64::from(f32::EPSILON)
}
