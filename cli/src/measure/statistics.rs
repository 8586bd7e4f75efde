//! Medians, spreads and verdicts are those of every measurement. Suites also have means.

pub use cutlet_host::measure::{Spread, Verdict};

/// The geometric mean; `None` if there is no figure.
pub fn geometric_mean(figures: &[f64]) -> Option<f64> {
    let logarithms: f64 = figures.iter().map(|figure| figure.ln()).sum();
    (!figures.is_empty()).then(|| (logarithms / figures.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_means_balance_twice_and_half() {
        let mean = geometric_mean(&[2.0, 0.5]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
