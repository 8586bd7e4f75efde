#![allow(unused)]

use cutlet_device::{Global, kernel};

#[kernel(threads = 256)]
fn sum(n: u32, x: Global<f32>) -> f32 {
    n as f32
}

fn main() {}
