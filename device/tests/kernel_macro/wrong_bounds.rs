#![allow(unused)]

use cutlet_device::kernel;

#[kernel(threads = 256, thread = 1)]
fn unknown(n: u32) {}

#[kernel(threads = 256, threads = 128)]
fn twice(n: u32) {}

#[kernel(threads = 256, arch = "hopper")]
fn no_target(n: u32) {}

#[kernel(threads = 256, arch = "sm_90aa")]
fn two_letters(n: u32) {}

const BYTES: usize = 1024;

#[kernel(threads = 256, shared = BYTES)]
fn not_u32(n: u32) {}

fn main() {}
