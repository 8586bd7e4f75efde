#![allow(unused)]

use cutlet_device::{GlobalMut, kernel};

#[kernel(threads = 256)]
fn scale(factor: &f32, y: GlobalMut<f32>) {}

fn main() {}
