#![allow(unused)]

use cutlet_device::kernel;

struct Tile;

impl Tile {
    #[kernel(threads = 256)]
    fn method(self) {}
}

#[kernel(threads = 256)]
async fn waits(n: u32) {}

#[kernel(threads = 256)]
const fn evaluated(n: u32) {}

#[kernel(threads = 256)]
fn constrained(n: u32)
where
    u32: Copy,
{
}

#[kernel(threads = 256)]
unsafe fn any_number(n: u32, _: ...) {}

#[kernel(threads = 256)]
fn taken_apart(#[grid_constant] [a, b]: &[u32; 2]) {}

#[kernel(threads = 256)]
extern "C" fn abi(n: u32) {}

#[kernel(threads = 256)]
fn operation(f: fn(f32) -> f32) {}

#[kernel(threads = 256)]
fn implied(f: impl Copy) {}

#[rustfmt::skip]
#[kernel(threads = 256)]
fn thirteen(
    a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32,
    h: u32, i: u32, j: u32, k: u32, l: u32, m: u32,
) {}

fn main() {}
