//! Launches kernels with instructions that no kernel of the library has, on the CPU and on a GPU if there is one, and
//! compares them with plain loops.

mod approximations;
mod boxes;
mod chained;
mod column_sums;
mod flags;
mod reductions;
mod register_operand;
mod tiled;

use cutlet_host::Device;

/// The CPU, and the GPU if it has TMA and `wgmma`.
fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.compute_capability() {
        Some((9, _)) => vec![Device::cpu(), auto],
        _ => vec![Device::cpu()],
    }
}
