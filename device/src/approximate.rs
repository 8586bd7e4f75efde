//! Approximations of functions by the GPU's instructions for them.
//!
//! The error bounds are those of the PTX ISA. On the CPU, the functions are those of the standard library, which are
//! more exact. A GPU *flushes* subnormal arguments and results (of less than 2^-126) to 0 of the same sign, except
//! where a function says otherwise. The CPU does not.

macro_rules! approximate {
    ($($(#[$docs:meta])* $name:ident = $instruction:literal, |$x:ident| $cpu:expr;)*) => {$(
        $(#[$docs])*
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
    /// `2` to the power of `x`, with an error of at most 2 units in the last place. A GPU flushes subnormal numbers
    /// (`ex2.approx.ftz`).
    exp2_approx = "ex2.approx.ftz.f32", |x| x.exp2();
    /// The logarithm of `x` to the base 2. The error is at most 2^-22: absolute from 1/2 to 2, and relative elsewhere.
    /// A GPU flushes subnormal numbers (`lg2.approx.ftz`), so that their logarithm is minus infinity.
    log2_approx = "lg2.approx.ftz.f32", |x| x.log2();
    /// The reciprocal `1 / x`, with an error of at most 1 unit in the last place. A GPU flushes subnormal numbers
    /// (`rcp.approx.ftz`): the result is infinite for a subnormal `x`, and 0 for an `x` above 2^126.
    rcp_approx = "rcp.approx.ftz.f32", |x| x.recip();
    /// The square root of `x`, with a relative error of at most 2^-23. A GPU flushes subnormal numbers
    /// (`sqrt.approx.ftz`).
    sqrt_approx = "sqrt.approx.ftz.f32", |x| x.sqrt();
    /// `1 / sqrt(x)`, with a relative error of at most 2^-22.9. A GPU flushes subnormal numbers (`rsqrt.approx.ftz`):
    /// the result is infinite for a subnormal `x`.
    rsqrt_approx = "rsqrt.approx.ftz.f32", |x| x.sqrt().recip();
    /// The sine of `x` in radians. The absolute error is at most 2^-20.5 from -2π to 2π, and 2^-14.7 from -100π to
    /// 100π. It has no bound beyond. A GPU flushes subnormal numbers (`sin.approx.ftz`).
    sin_approx = "sin.approx.ftz.f32", |x| x.sin();
    /// The cosine of `x` in radians, with the errors of [`sin_approx`] (`cos.approx.ftz`).
    cos_approx = "cos.approx.ftz.f32", |x| x.cos();
    /// The hyperbolic tangent of `x`, with a relative error of at most 2^-11. Subnormal numbers are not flushed
    /// (`tanh.approx`).
    tanh_approx = "tanh.approx.f32", |x| x.tanh();
}

/// The exponential function of `x`: [`exp2_approx`] of `x · log2(e)`, two instructions.
///
/// The product is rounded, so the relative error grows with `x`: it is at most `2^-22 + |x| · 2^-23.7`. A GPU flushes
/// subnormal numbers.
///
/// ```
/// use cutlet_device::{exp_approx, ln_approx};
///
/// assert!((exp_approx(1.0) - core::f32::consts::E).abs() < 1e-6);
/// assert!((ln_approx(10.0) - core::f32::consts::LN_10).abs() < 1e-6);
/// ```
#[inline(always)]
pub fn exp_approx(x: f32) -> f32 {
    exp2_approx(x * core::f32::consts::LOG2_E)
}

/// The natural logarithm of `x`: [`log2_approx`] of `x`, times `ln(2)`.
///
/// The error is at most 2^-22 absolute from 1/2 to 2, and 2^-21.6 relative elsewhere. Of subnormal numbers, a GPU
/// returns minus infinity.
#[inline(always)]
pub fn ln_approx(x: f32) -> f32 {
    log2_approx(x) * core::f32::consts::LN_2
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
