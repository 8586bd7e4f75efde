#![allow(unused)]

use cutlet_device::{DeviceData, GlobalMut, kernel};

#[kernel(threads = 256)]
fn fill<T: DeviceData>(value: T, y: GlobalMut<T>) {}

fn main() {}
