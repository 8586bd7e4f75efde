//! GELU in f64, by the hyperbolic tangent and by the normal distribution.

/// GELU by the hyperbolic tangent.
pub fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

/// `Φ(x)` by the series around 0, or by the continued fraction of the tail.
fn normal_distribution(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < -3.0 {
        let fraction = (1..200)
            .rev()
            .fold(-x, |below, k| -x + f64::from(k) / below);
        return density / fraction;
    }
    if x > 3.0 {
        return 1.0 - normal_distribution(-x);
    }
    let (mut term, mut sum) = (x, x);
    for k in 1..100 {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + density * sum
}

/// GELU without an approximation.
pub fn gelu_erf(x: f64) -> f64 {
    x * normal_distribution(x)
}
