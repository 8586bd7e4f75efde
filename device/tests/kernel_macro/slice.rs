#![allow(unused)]

use cutlet_device::kernel;

#[kernel(threads = 256)]
fn scale(factor: f32, y: &mut [f32]) {}

fn main() {}
