use cutlet_device::hopper::TensorMap;
use cutlet_device::kernel;

#[kernel(threads = 32, arch = "sm_90a")]
pub fn by_value(map: TensorMap) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn not_marked(map: &TensorMap) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn marked_value(#[grid_constant] map: TensorMap) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn mutable(#[grid_constant] map: &mut TensorMap) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn right(n: u32, #[grid_constant] map: &TensorMap) {
    let _ = (n, map);
}

fn main() {
    let _: &cutlet_device::Kernel<(u32, TensorMap)> = &right;
}
