#![allow(unused)]

use cutlet_device::{instantiate, kernel};

#[kernel]
fn nothing(n: u32) {}

#[kernel(cluster = 2)]
fn cluster(n: u32) {}

fn generic<const N: u32>(_: u32) {}

instantiate! {
    fn no_attribute(n: u32) = generic::<4>;
}

instantiate! {
    #[kernel]
    fn no_threads(n: u32) = generic::<4>;
}

fn main() {}
