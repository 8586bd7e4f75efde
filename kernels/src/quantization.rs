//! The scales of numbers that are quantised to e4m3.

/// The largest number of e4m3.
const LARGEST: f32 = 448.0;

/// Elements of a row that have a scale together.
pub const BLOCK: usize = 128;

/// The scale by which numbers of at most this magnitude are divided, and its inverse.
#[inline(always)]
pub(crate) fn scale_of(amax: f32, powers: u32) -> [f32; 2] {
    // Infinity has no share of a scale.
    let scale = amax.min(f32::MAX) * (1.0 / LARGEST);
    if amax == 0.0 {
        return [1.0, 1.0];
    }
    if powers == 0 {
        return [scale, 1.0 / scale];
    }
    // The next power of two that is not below, unless the scale is smaller than all normal numbers.
    let bits = scale.max(f32::MIN_POSITIVE).to_bits();
    let power = (bits + 0x7f_ffff) & 0x7f80_0000;
    let inverse = (254 << 23) - power;
    [f32::from_bits(power), f32::from_bits(inverse)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two_that_are_large_enough() {
        for amax in [
            448.0,
            449.0,
            1.0,
            1e-30,
            3e-39,
            1e30,
            f32::MAX,
            f32::INFINITY,
        ] {
            let [scale, inverse] = scale_of(amax, 1);
            assert_eq!(scale.to_bits() & 0x7f_ffff, 0, "{amax}: {scale}");
            assert_eq!(scale * inverse, 1.0);
            assert!(scale >= amax.min(f32::MAX) / 448.0);
            assert!(
                scale < amax / 224.0 || scale == f32::MIN_POSITIVE,
                "{amax}: {scale}"
            );
        }
        assert_eq!(scale_of(448.0, 1), [1.0, 1.0]);
        assert_eq!(scale_of(0.0, 1), [1.0, 1.0]);
        assert_eq!(scale_of(0.0, 0), [1.0, 1.0]);
    }
}
