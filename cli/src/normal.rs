//! Random inputs, the same for the same seed: normally distributed numbers, and the generator of all others.

use cutlet_kernels::fill;
use fastrand::Rng;

/// The generator of a seed. Generators of neighbouring seeds have nothing in common: [`Rng::with_seed`] alone would
/// make correlated ones, and products of their numbers would have sums that are far too large.
pub fn generator(seed: u64) -> Rng {
    Rng::with_seed(fill::bits(seed, 0))
}

/// An endless sequence of numbers from N(0, 1) in f32.
pub fn normal(seed: u64) -> impl Iterator<Item = f32> {
    let mut random = generator(seed);
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
    let mut random = generator(seed);
    let pairs = std::iter::repeat_with(move || {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * random.f64()).sin_cos();
        [radius * cos, radius * sin]
    });
    pairs.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A and B of a problem have neighbouring seeds. If they were correlated, sums of products would not be those of
    /// independent numbers.
    #[test]
    fn neighbouring_seeds_are_independent() {
        const COUNT: usize = 5000;
        let correlation = |a: Vec<f64>, b: Vec<f64>| {
            let products = a.iter().zip(&b).map(|(a, b)| a * b);
            products.sum::<f64>() / (COUNT as f64).sqrt()
        };
        for seed in (0..40).chain([u64::MAX]) {
            for distance in 1..4 {
                let other = seed.wrapping_add(distance);
                let narrow = |seed| normal(seed).take(COUNT).map(f64::from).collect();
                let wide = |seed| normal_f64(seed).take(COUNT).collect();
                let whole = |seed| {
                    let mut random = generator(seed);
                    (0..COUNT)
                        .map(|_| f64::from(random.i8(..)) / 74.0)
                        .collect()
                };
                for (kind, found) in [
                    ("f32", correlation(narrow(seed), narrow(other))),
                    ("f64", correlation(wide(seed), wide(other))),
                    ("i8", correlation(whole(seed), whole(other))),
                ] {
                    assert!(found.abs() < 5.0, "{kind} of {seed} and {other}: {found}");
                }
            }
        }
    }
}
