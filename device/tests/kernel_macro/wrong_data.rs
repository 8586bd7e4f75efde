#![allow(unused)]

use cutlet_device::tma::TensorMap;
use cutlet_device::{DeviceData, kernel};

#[derive(Clone, Copy, DeviceData)]
struct OrderUnknown {
    rows: u32,
}

#[derive(Clone, Copy, DeviceData)]
#[repr(C, packed)]
struct Packed {
    kind: u8,
    rows: u32,
}

#[derive(Clone, Copy, DeviceData)]
#[repr(u32)]
enum Mode {
    Read,
}

#[derive(Clone, Copy, DeviceData)]
#[repr(C)]
struct Flagged {
    rows: u32,
    transposed: bool,
}

#[derive(Clone, Copy, DeviceData)]
#[repr(C)]
struct Padded {
    rows: u32,
    stride: u64,
}

#[derive(Clone, Copy, DeviceData)]
#[repr(C)]
struct MapLast {
    rows: [u64; 2],
    map: TensorMap,
}

#[kernel(threads = 256)]
fn takes(padded: Padded) {}

fn main() {}
