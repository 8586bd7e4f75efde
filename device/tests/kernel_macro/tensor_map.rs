use cutlet_device::tma::TensorMap;
use cutlet_device::{DeviceData, kernel};

type Alias = TensorMap;

#[derive(Clone, Copy, DeviceData)]
#[repr(C, align(64))]
pub struct WithMap {
    map: TensorMap,
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn by_value(map: TensorMap) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn by_another_name(map: Alias) {
    let _ = map;
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn several(n: u32, maps: [TensorMap; 2]) {
    let _ = (n, maps);
}

#[kernel(threads = 32, arch = "sm_90a")]
pub fn within(with_map: WithMap) {
    let _ = with_map.map;
}

macro_rules! takes {
    ($name:ident, $data:ty) => {
        #[kernel(threads = 32, arch = "sm_90a")]
        pub fn $name(data: $data) {
            let _ = data;
        }
    };
}
takes!(of_a_macro, TensorMap);

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

#[kernel(threads = 32, arch = "sm_90a")]
pub fn right_within(#[grid_constant] maps: &[WithMap; 2]) {
    let _ = maps;
}

fn main() {
    let _: &cutlet_device::Kernel<(u32, TensorMap)> = &right;
}
