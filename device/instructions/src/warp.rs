//! Shuffles and votes.

use cutlet_device::{
    GlobalMut, all, any, ballot, kernel, lane_idx, shfl, shfl_down, shfl_up, shfl_xor,
};

/// Shuffles.
///
/// # Safety
/// `values` has four elements.
#[kernel(threads = 32)]
pub unsafe fn shuffles(value: f32, values: GlobalMut<f32>) {
    let own = if lane_idx().is_first() { value } else { 0.0 };
    let others = [
        shfl(own, 3),
        shfl_xor(own, 1),
        shfl_up(own, 1),
        shfl_down(own, 1),
    ];
    // SAFETY: as promised by the caller.
    unsafe { values.store_vec(0, others) };
}

/// Votes.
///
/// # Safety
/// `numbers` has three elements.
#[kernel(threads = 32)]
pub unsafe fn votes(value: f32, numbers: GlobalMut<u32>) {
    let condition = lane_idx().is_first() && value > 0.0;
    // SAFETY: as promised by the caller.
    unsafe {
        numbers.store(0, u32::from(any(condition)));
        numbers.store(1, u32::from(all(condition)));
        numbers.store(2, ballot(condition));
    }
}
