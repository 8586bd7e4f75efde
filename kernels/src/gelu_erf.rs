//! GELU by the error function, and the exponential that it needs: of f32, and exact to a few units in the last place.

use core::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

use cutlet_device::{exp2_approx, fma, rcp_approx};

/// `e^x`. The relative error is a few units in the last place.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// What f32 loses of log₂ e.
    const REST: f32 = 1.925_963e-8;
    let power = x * LOG2_E;
    // What the product lost. The results of larger numbers are 0 and infinity.
    let lost = match x.abs() < 256.0 {
        true => fma(x, LOG2_E, -power) + x * REST,
        false => 0.0,
    };
    exp2_approx(power) * fma(lost, LN_2, 1.0)
}

/// `x · Φ(x)`, where Φ is the distribution function of the normal distribution: GELU without an approximation. At −∞ it is
/// 0, its limit. The relative error is a few units in the last place for positive `x` and down to −4, and 2·10⁻⁵ for the
/// tiny results below.
#[inline(always)]
pub fn gelu_erf(x: f32) -> f32 {
    /// `ln(erfc(z) · e^(z²) / t)` by powers of `t = 1 / (1 + z/2)`, for a z from 0 to 12: the error is 6·10⁻⁸.
    const LOGARITHM: [f32; 10] = [
        -1.265_485_3,
        0.999_412_24,
        0.379_770_64,
        0.068_157_904,
        -0.099_208_16,
        0.111_748_44,
        -0.931_416_45,
        1.335_334_4,
        -0.757_416_9,
        0.159_103_13,
    ];
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = rcp_approx(fma(0.5, z, 1.0));
    let [lowest @ .., highest] = LOGARITHM;
    let mut logarithm = highest;
    for coefficient in lowest.iter().rev() {
        logarithm = fma(logarithm, t, *coefficient);
    }
    // Φ(−|x|)
    let tail = 0.5 * t * exp(fma(-z, z, logarithm));
    // The tail of an infinity is 0.
    let part = x.abs().min(f32::MAX) * tail;
    match x < 0.0 {
        true => -part,
        false => x - part,
    }
}
