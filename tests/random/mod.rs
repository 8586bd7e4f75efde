//! Random numbers that are the same for the same seed.

/// The generator of a seed. fastrand's own generators of neighbouring seeds are correlated, and A and B of a test often
/// have such seeds: the sums of their products would be far too large.
pub fn generator(seed: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
