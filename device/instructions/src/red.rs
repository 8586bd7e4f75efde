//! Additions of every type and width in the L2 cache.

use cutlet_device::{Global, GlobalMut, RedAdd, RedAddElement, kernel};
use cutlet_layout_core::EngineMut;
use half::{bf16, f16};

/// Adds one, two and four elements.
///
/// # Safety
/// `from` and `to` have four elements.
#[inline(always)]
unsafe fn add<T: RedAddElement>(from: Global<T>, to: GlobalMut<T>) {
    let to = RedAdd::to(to);
    // SAFETY: as promised by the caller.
    unsafe {
        to.store(0, from.load(0));
        to.store_vector::<2>(0, from.load_vec(0));
        to.store_vector::<4>(0, from.load_vec(0));
    }
}

/// Additions of `f32`.
///
/// # Safety
/// Each pointer has four elements.
#[kernel(threads = 32)]
pub unsafe fn red_f32(from: Global<f32>, to: GlobalMut<f32>) {
    // SAFETY: as promised by the caller.
    unsafe { add(from, to) };
}

/// Additions of `f16`.
///
/// # Safety
/// Each pointer has four elements.
#[kernel(threads = 32)]
pub unsafe fn red_f16(from: Global<f16>, to: GlobalMut<f16>) {
    // SAFETY: as promised by the caller.
    unsafe { add(from, to) };
}

/// Additions of `bf16`.
///
/// # Safety
/// Each pointer has four elements.
#[kernel(threads = 32)]
pub unsafe fn red_bf16(from: Global<bf16>, to: GlobalMut<bf16>) {
    // SAFETY: as promised by the caller.
    unsafe { add(from, to) };
}

/// Additions of `[f16; 2]`.
///
/// # Safety
/// Each pointer has four elements.
#[kernel(threads = 32)]
pub unsafe fn red_f16_pairs(from: Global<[f16; 2]>, to: GlobalMut<[f16; 2]>) {
    // SAFETY: as promised by the caller.
    unsafe { add(from, to) };
}

/// Additions of `[bf16; 2]`.
///
/// # Safety
/// Each pointer has four elements.
#[kernel(threads = 32)]
pub unsafe fn red_bf16_pairs(from: Global<[bf16; 2]>, to: GlobalMut<[bf16; 2]>) {
    // SAFETY: as promised by the caller.
    unsafe { add(from, to) };
}
