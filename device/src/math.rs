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

macro_rules! approximate {
    ($($(#[$docs:meta])* $name:ident = $instruction:literal, |$x:ident| $cpu:expr;)*) => {$(
        $(#[$docs])*
        ///
        /// On a GPU this is one instruction, with an error of a few units in the last place. The CPU is more exact.
        #[inline(always)]
        pub fn $name($x: f32) -> f32 {
            #[cfg(target_arch = "nvptx64")]
            {
                let result;
                // SAFETY: arithmetic.
                unsafe {
                    core::arch::asm!(concat!($instruction, " {}, {};"), out(reg32) result, in(reg32) $x,
                        options(pure, nomem, nostack));
                }
                result
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                $cpu
            }
        }
    )*};
}

approximate! {
    /// `2` to the power of `x`.
    exp2_approx = "ex2.approx.ftz.f32", |x| x.exp2();
    /// The logarithm of `x` to the base 2.
    log2_approx = "lg2.approx.ftz.f32", |x| x.log2();
    /// `1 / x`.
    rcp_approx = "rcp.approx.ftz.f32", |x| x.recip();
    /// `1 / sqrt(x)`.
    rsqrt_approx = "rsqrt.approx.ftz.f32", |x| x.sqrt().recip();
    /// The hyperbolic tangent of `x`. On a GPU it has a relative error of at most 2^-11.
    tanh_approx = "tanh.approx.f32", |x| x.tanh();
}

/// The hyperbolic tangents of two numbers, computed in f16. It takes half the time of two [`tanh_approx`], and has an
/// error of at most 2^-10.
#[inline(always)]
pub fn tanh_approx_f16([first, second]: [f32; 2]) -> [f32; 2] {
    #[cfg(target_arch = "nvptx64")]
    {
        let (a, b);
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!(
                "{{",
                ".reg .b32 pair;",
                ".reg .b16 low, high;",
                "cvt.rn.f16x2.f32 pair, {second}, {first};",
                "tanh.approx.f16x2 pair, pair;",
                "mov.b32 {{low, high}}, pair;",
                "cvt.f32.f16 {a}, low;",
                "cvt.f32.f16 {b}, high;",
                "}}",
                a = out(reg32) a, b = out(reg32) b, first = in(reg32) first, second = in(reg32) second,
                options(pure, nomem, nostack)
            );
        }
        [a, b]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        [first, second]
            .map(|x| half::f16::from_f32(half::f16::from_f32(x).to_f32().tanh()).to_f32())
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
