//! Elements with padding, which a kernel would load and store like data.

#![allow(unused)]

use cutlet_device::{DeviceData, Global, GlobalMut, Shared, kernel};

#[derive(Clone, Copy, DeviceData)]
#[repr(C)]
struct Generic<T: DeviceData> {
    rows: u32,
    stride: T,
}

#[kernel(threads = 256)]
fn reads(elements: Global<Generic<u64>>) {}

#[kernel(threads = 256)]
fn writes(elements: GlobalMut<[Generic<f64>; 2]>) {}

#[kernel(threads = 256)]
fn is_fine(elements: GlobalMut<Generic<f32>>) {}

const MADE: GlobalMut<Generic<i64>> = GlobalMut::from_ptr(std::ptr::null_mut());

const SHARED: Shared<Generic<usize>> = Shared::from_address(0);

fn main() {}
