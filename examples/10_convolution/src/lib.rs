//! Example 10: convolution is a layout. A matrix product whose A is a layout of overlapping windows of the input.
#![no_std]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[cfg(not(target_arch = "nvptx64"))]
pub mod check;
#[cfg(not(target_arch = "nvptx64"))]
mod host;
pub mod kernel;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::Convolution;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
