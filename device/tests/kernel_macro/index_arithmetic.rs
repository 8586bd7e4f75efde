#![allow(unused)]

use cutlet_device::{block_idx, kernel, thread_idx};

#[kernel(threads = 256)]
fn next() {
    let next = thread_idx() + 1;
    let element = block_idx().x * 256;
}

fn main() {}
