//! Shuffles, votes and reductions.

use cutlet_device::{
    GlobalMut, all, any, ballot, kernel, lane_idx, shfl, shfl_down, shfl_up, shfl_xor, warp_max,
    warp_min, warp_sum,
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

/// Sums and extremes of a warp's integers.
///
/// # Safety
/// `ints` and `words` have three elements each.
#[kernel(threads = 32)]
pub unsafe fn reductions(value: u32, ints: GlobalMut<i32>, words: GlobalMut<u32>) {
    let own = if lane_idx().is_first() { value } else { 0 };
    // SAFETY: as promised by the caller.
    unsafe {
        ints.store(0, warp_sum(own as i32));
        ints.store(1, warp_max(own as i32));
        ints.store(2, warp_min(own as i32));
        words.store(0, warp_sum(own));
        words.store(1, warp_max(own));
        words.store(2, warp_min(own));
    }
}
