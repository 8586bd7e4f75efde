//! Float conversions, and the functions that are one instruction each.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{
    Float, Float16, GlobalMut, cos_approx, exp_approx, exp2_approx, fma, funnel_shift_right,
    kernel, ln_approx, log2_approx, max_nan, rcp_approx, rsqrt_approx, sin_approx, sqrt_approx,
    tanh_approx, tanh_approx_f16,
};
use half::{bf16, f16};

/// Conversions from and to `T`.
///
/// # Safety
/// `wide` has one element, and `narrow` has three.
#[inline(always)]
unsafe fn conversions<T: Float>(wide: GlobalMut<f32>, narrow: GlobalMut<T>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let value = wide.load(0);
        wide.store(0, narrow.load(0).to_f32());
        narrow.store(0, T::from_f32(value));
        narrow.store_vec(1, T::pair_from_f32([value, 1.0]));
    }
}

/// Pairs of numbers, rounded into registers and read from them.
///
/// # Safety
/// `wide` has four elements. `pairs` has two.
#[kernel(threads = 32)]
pub unsafe fn pairs(wide: GlobalMut<f32>, pairs: GlobalMut<u32>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let [a, b, c, d] = wide.load_vec(0);
        let [brains, halves] = pairs.load_vec(0);
        let (low, high) = (bf16::unpack_f32(brains), f16::unpack_f32(halves));
        wide.store_vec(0, [low[0], low[1], high[0], high[1]]);
        pairs.store_vec(0, [bf16::pack_f32([a, b]), f16::pack_f32([c, d])]);
    }
}

/// Conversions between `f32` and the 16-bit floats.
///
/// # Safety
/// `wide` has two elements. `halves` and `brains` have three each.
#[kernel(threads = 32)]
pub unsafe fn floats(wide: GlobalMut<f32>, halves: GlobalMut<f16>, brains: GlobalMut<bf16>) {
    // SAFETY: as promised by the caller.
    unsafe {
        conversions(wide, halves);
        conversions(wide.offset(1), brains);
    }
}

/// Two numbers of e4m3, where there is an instruction for them.
///
/// # Safety
/// `wide` has two elements, and `narrow` has two.
#[kernel(threads = 32)]
pub unsafe fn numbers_of_8_bits(wide: GlobalMut<f32>, narrow: GlobalMut<F8E4M3>) {
    // SAFETY: as promised by the caller.
    unsafe {
        if let Some(pair) = F8E4M3::pair_from_f32(wide.load_vec(0)) {
            narrow.store_vec(0, pair);
        }
    }
}

/// Functions of one number and of several numbers.
///
/// # Safety
/// `values` has 13 elements, and `double` has one.
#[kernel(threads = 32)]
pub unsafe fn functions(x: f32, values: GlobalMut<f32>, double: GlobalMut<f64>) {
    // SAFETY: as promised by the caller.
    unsafe {
        values.store(0, exp2_approx(x));
        values.store(1, log2_approx(x));
        values.store(2, rcp_approx(x));
        values.store(3, rsqrt_approx(x));
        values.store(4, tanh_approx(x));
        values.store_vec(6, tanh_approx_f16([x, 1.0]));
        values.store(5, max_nan(x, fma(x, x, 1.0)));
        values.store(8, sqrt_approx(x));
        values.store(9, sin_approx(x));
        values.store(10, cos_approx(x));
        values.store(11, exp_approx(x));
        values.store(12, ln_approx(x));
        double.store(0, fma(f64::from(x), f64::from(x), 1.0));
    }
}

/// Functions of words.
///
/// # Safety
/// `words` has three elements.
#[kernel(threads = 32)]
pub unsafe fn words(bits: u32, words: GlobalMut<u32>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let [low, high] = words.load_vec(0);
        words.store(2, funnel_shift_right(low, high, bits));
    }
}
