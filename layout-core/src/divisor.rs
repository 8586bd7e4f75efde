//! Division by a divisor that is known before a kernel runs: the kernel multiplies instead.

use core::num::NonZeroU32;

/// A divisor of numbers below 2³¹.
pub trait Divide: Copy {
    /// The divisor as a number.
    fn divisor(self) -> u32;

    /// Quotient and remainder of `dividend`.
    fn div_rem(self, dividend: u32) -> (u32, u32);
}

impl Divide for NonZeroU32 {
    #[inline(always)]
    fn divisor(self) -> u32 {
        self.get()
    }

    #[inline(always)]
    fn div_rem(self, dividend: u32) -> (u32, u32) {
        (dividend / self, dividend % self)
    }
}

/// A divisor with its multiplier: a quotient takes a GPU some 10 clocks instead of 100.
///
/// With `2ˡ⁻¹ < d ≤ 2ˡ` and `m = ⌈2³¹⁺ˡ / d⌉`, the quotient of `n` is `⌊n·m / 2³¹⁺ˡ⌋`: `m·d`
/// exceeds `2³¹⁺ˡ` by less than `2ˡ`, so the error of `n·m / 2³¹⁺ˡ` is below `1/d` for an `n` below
/// 2³¹ and does not change the quotient (Granlund and Montgomery, "Division by invariant integers
/// using multiplication", 1994).
///
/// ```
/// use core::num::NonZeroU32;
/// use cutlet_layout_core::{Divide, Divisor};
///
/// const BY_SEVEN: Divisor = Divisor::new(NonZeroU32::new(7).unwrap());
/// assert_eq!(BY_SEVEN.div_rem(100), (14, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Divisor {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// A divisor of at most 2³¹.
    ///
    /// # Panics
    /// If it is larger.
    pub const fn new(divisor: NonZeroU32) -> Self {
        let divisor = divisor.get();
        assert!(
            divisor <= 1 << 31,
            "Divisor: the divisor is above 2³¹: use a smaller one"
        );
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        Self {
            divisor,
            multiplier: (1u64 << shift).div_ceil(divisor as u64) as u32,
            shift,
        }
    }
}

impl Divide for Divisor {
    #[inline(always)]
    fn divisor(self) -> u32 {
        self.divisor
    }

    #[inline(always)]
    fn div_rem(self, dividend: u32) -> (u32, u32) {
        debug_assert!(
            dividend < 1 << 31,
            "Divisor: the dividend {dividend} is not below 2³¹"
        );
        let quotient = ((u64::from(dividend) * u64::from(self.multiplier)) >> self.shift) as u32;
        (quotient, dividend - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_remainders_are_those_of_the_operators() {
        let most = (1 << 31) - 1;
        let divisors = (1..=70).chain([127, 1000, 4093, 65_537, most / 2, most - 1, most, 1 << 31]);
        for divisor in divisors {
            let by = Divisor::new(NonZeroU32::new(divisor).unwrap());
            let multiples = [0, 1, 2, most / divisor / 2, most / divisor]
                .map(|n: u32| divisor.saturating_mul(n).min(most));
            let around = multiples
                .into_iter()
                .flat_map(|n| [n.saturating_sub(1), n, n + 1]);
            for dividend in around.chain(0..200).chain([most]).map(|n| n.min(most)) {
                assert_eq!(
                    by.div_rem(dividend),
                    (dividend / divisor, dividend % divisor),
                    "{dividend} by {divisor}"
                );
            }
        }
    }
}
