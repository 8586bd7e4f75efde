//! Register reallocation, dependent launch, and the election of a lane.

use cutlet_device::warpgroup::{decrease_registers, increase_registers, warpgroup_idx};
use cutlet_device::{
    Global, GlobalMut, elect_one, grid_dependency_wait, kernel, launch_dependents,
};

/// One warpgroup releases registers, and another one requests them.
#[kernel(threads = 256, min_blocks = 1, arch = "sm_90a")]
pub fn registers() {
    if warpgroup_idx().is_first() {
        decrease_registers::<24>();
    } else {
        increase_registers::<232>();
    }
}

/// A kernel that may begin while the kernel before it ends.
///
/// # Safety
/// `from` and `to` have an element each.
#[kernel(threads = 32, arch = "sm_90a")]
pub unsafe fn dependent(from: Global<f32>, to: GlobalMut<f32>) {
    // SAFETY: as promised by the caller.
    unsafe { from.prefetch(0) };
    grid_dependency_wait();
    launch_dependents();
    if elect_one() {
        // SAFETY: as promised by the caller.
        unsafe { to.store(0, from.load(0)) };
    }
}
