#![allow(unused)]

use cutlet_device::{GlobalMut, kernel};

#[derive(Clone, Copy)]
struct Options {
    transposed: bool,
}

#[kernel(threads = 256)]
fn transpose(options: Options, y: GlobalMut<f32>) {}

fn main() {}
