//! Arithmetic functions that are one instruction each.

/// `a * b + c`, rounded once.
///
/// The compiler does not fuse `a * b + c` by itself.
#[inline(always)]
pub fn fma<F: Fma>(a: F, b: F, c: F) -> F {
    F::fma(a, b, c)
}

/// A type with a fused multiply-add.
pub trait Fma: Copy {
    /// `a * b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! fma {
    ($type:ty, $intrinsic:literal) => {
        impl Fma for $type {
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                unsafe extern "C" {
                    #[link_name = $intrinsic]
                    fn fma(a: $type, b: $type, c: $type) -> $type;
                }
                // SAFETY: arithmetic.
                unsafe { fma(a, b, c) }
            }

            #[cfg(not(target_arch = "nvptx64"))]
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                a.mul_add(b, c)
            }
        }
    };
}
fma!(f32, "llvm.fma.f32");
fma!(f64, "llvm.fma.f64");

/// Modulo 2³².
impl Fma for i32 {
    #[inline(always)]
    fn fma(a: Self, b: Self, c: Self) -> Self {
        a.wrapping_mul(b).wrapping_add(c)
    }
}

/// The larger of two numbers. Returns NaN if either argument is NaN.
#[inline(always)]
pub fn max_nan(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let result;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!("max.NaN.f32 {}, {}, {};", out(reg32) result, in(reg32) a,
                in(reg32) b, options(pure, nomem, nostack));
        }
        result
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        match a.is_nan() || b.is_nan() {
            true => f32::NAN,
            false => a.max(b),
        }
    }
}

/// The lower word of `high:low`, a number of 64 bits, after a shift to the right by `bits`, which is at most 32.
#[inline(always)]
pub fn funnel_shift_right(low: u32, high: u32, bits: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let result;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!("shf.r.clamp.b32 {}, {}, {}, {};", out(reg32) result, in(reg32) low,
                in(reg32) high, in(reg32) bits, options(pure, nomem, nostack));
        }
        result
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let both = u64::from(high) << 32 | u64::from(low);
        (both >> bits) as u32
    }
}
